"""Memory and throughput of the replay on a long bag of compressed frames.

    python benchmarks/replay.py [--frames 108000] [--size 320x240]

Writes a bag (two topics of joints at 30 Hz, one camera as JPEG), reads it with a bare loop of rosbags that decodes
every frame, then replays it with the policy that answers at once (the recording itself) and the two baselines beside
it. It says the throughput of both (by processor time: both are one thread, and other programs
may run beside them), their ratio, and how much memory grew after the first minute of the recording.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np
from rosbags.highlevel import AnyReader
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

from groot_ros.contract import Contract
from groot_ros.evaluation.bag_episode import BagEpisode
from groot_ros.evaluation.evaluation import Settings, evaluate
from groot_ros.evaluation.policies import RecordedActions

STORE = get_typestore(Stores.ROS2_JAZZY)
RATE_HZ = 30
HORIZON = 16
SECOND = 1_000_000_000
JOINTS = ["shoulder", "elbow", "gripper"]
IMAGE, STATE = "sensor_msgs/msg/CompressedImage", "sensor_msgs/msg/JointState"


def header(stamp_ns: int) -> object:
    time_type, header_type = STORE.types["builtin_interfaces/msg/Time"], STORE.types["std_msgs/msg/Header"]
    return header_type(stamp=time_type(sec=stamp_ns // SECOND, nanosec=stamp_ns % SECOND), frame_id="")


def joints(stamp_ns: int, time_s: float) -> bytes:
    position = np.array([np.sin(time_s), np.cos(time_s), 0.4 + 0.3 * np.sin(0.5 * time_s)])
    empty = np.empty(0)
    message = STORE.types[STATE](header=header(stamp_ns), name=JOINTS, position=position, velocity=empty, effort=empty)
    return bytes(STORE.serialize_cdr(message, STATE))


def write_bag(path: Path, frames: int, width: int, height: int) -> None:
    """A moving blob on a soft background: a few kilobytes a frame, as a real camera's JPEG compresses."""
    grid_y, grid_x = np.mgrid[0:height, 0:width]
    pictures = []
    for number in range(60):
        blob = np.exp(-((grid_x - width * number / 60) ** 2 + (grid_y - height / 2) ** 2) / (0.02 * width * height))
        picture = np.stack([255 * blob, 255 * grid_x / width, 255 * grid_y / height], axis=-1).astype(np.uint8)
        pictures.append(cv2.imencode(".jpg", picture, [cv2.IMWRITE_JPEG_QUALITY, 85])[1])
    with Writer(path, version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        camera = writer.add_connection("/front/image_raw/compressed", IMAGE, typestore=STORE)
        state = writer.add_connection("/joint_states", STATE, typestore=STORE)
        leader = writer.add_connection("/leader/joint_states", STATE, typestore=STORE)
        for row in range(frames):
            stamp_ns = SECOND + row * SECOND // RATE_HZ
            writer.write(state, stamp_ns, joints(stamp_ns, row / RATE_HZ - 0.1))
            writer.write(leader, stamp_ns, joints(stamp_ns, row / RATE_HZ))
            message = STORE.types[IMAGE](header=header(stamp_ns), format="jpeg", data=pictures[row % len(pictures)])
            writer.write(camera, stamp_ns + 5_000_000, STORE.serialize_cdr(message, IMAGE))


def contract() -> Contract:
    arm = {"topic": "joint_states", "joints": JOINTS}
    return Contract.model_validate(
        {
            "contract_version": 1,
            "robot": "benchmark",
            "embodiment_tag": "new_embodiment",
            "rate_hz": RATE_HZ,
            "cameras": {"front": {"topic": "front/image_raw/compressed"}},
            "state": {"arm": arm},
            "actions": {"arm": {"meaning": "position"}},
            "outputs": {"arm": {"type": "joint_trajectory", "topic": "trajectory", "from": {"arm": "all"}}},
            "limits": "none",
            "record": {"arm": {**arm, "topic": "leader/joint_states"}},
        }
    )


def bare_loop(path: Path) -> float:
    start = time.process_time()
    with AnyReader([path]) as reader:
        for connection, _, data in reader.messages():
            message = reader.deserialize(data, connection.msgtype)
            if connection.msgtype == IMAGE:
                cv2.cvtColor(cv2.imdecode(message.data, cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB)
    return time.process_time() - start


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


class Watched(BagEpisode):
    """Notes the memory once a minute of the recording."""

    def play(self) -> Iterator[int]:
        """See `BagEpisode.play`."""
        self.memory_mb: list[float] = []
        next_ns = None
        for now_ns in super().play():
            if next_ns is None or now_ns >= next_ns:
                next_ns = now_ns + 60 * SECOND
                self.memory_mb.append(resident_mb())
            yield now_ns
        self.memory_mb.append(resident_mb())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frames", type=int, default=108_000)
    parser.add_argument("--size", default="320x240")
    options = parser.parse_args()
    width, height = (int(part) for part in options.size.split("x"))
    with tempfile.TemporaryDirectory() as folder:
        bag = Path(folder) / "bag"
        write_bag(bag, options.frames, width, height)
        size_mb = sum(part.stat().st_size for part in bag.iterdir()) / 1e6
        print(f"{options.frames} frames of {options.size}, {size_mb:.0f} MB", flush=True)
        robot = contract()
        episode = Watched(bag, robot, video_history=(0,), state_history=(0,), horizon=HORIZON, name="bag")
        start = time.process_time()
        policy = RecordedActions(robot, HORIZON)
        result = evaluate([episode], robot, policy, Settings(), actions_path=Path(folder) / "actions.parquet")
        replay_s = time.process_time() - start
        bare_s = bare_loop(bag)
    chunks = result.logs("policy")[0].predictions
    print(f"bare read and decode: {options.frames / bare_s:.0f} frames/s")
    print(f"replay: {options.frames / replay_s:.0f} frames/s, {chunks} chunks, ratio {bare_s / replay_s:.2f}")
    memory = episode.memory_mb
    print(f"memory: {memory[1]:.0f} MB after the first minute, {max(memory[1:]) - memory[1]:+.0f} MB at most since")
    return 0


if __name__ == "__main__":
    sys.exit(main())
