"""Conversion against a plain loop that reads the same bag in one process and writes with LeRobot's own writer.

    python -m benchmarks.conversion --lerobot ~/lerobot/bin/python [--seconds 20]

The bag is made here: two raw cameras of 640x480 at 30 Hz with moving pictures, joint states at 200 Hz, commands at 60.
LeRobot's environment needs rosbags beside lerobot. It encodes H.264 as we do, and then AV1, which is its default; the
ratio is of wall-clock times in one run.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RATE_HZ, HEIGHT, WIDTH = 30, 480, 640
START_NS = 1_700_000_000_000_000_000
CAMERAS = ("front", "wrist")
CONTRACT = """contract_version: 1
robot: benchmark
embodiment_tag: new_embodiment
rate_hz: 30
instruction: measure
cameras: {front: {topic: front/image_raw}, wrist: {topic: wrist/image_raw}}
state: {arm: {topic: joint_states, joints: [a, b, c]}}
actions: {arm: {meaning: position}}
outputs: {arm: {type: joint_trajectory, topic: arm/joint_trajectory, from: {arm: all}}}
limits: none
record: {arm: {topic: leader/joint_states, joints: [a, b, c]}}
"""


def make_bag(path: Path, seconds: float) -> None:
    import numpy as np
    from rosbags.rosbag2 import StoragePlugin, Writer
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS2_JAZZY)
    time_type, header_type = store.types["builtin_interfaces/msg/Time"], store.types["std_msgs/msg/Header"]
    image_name, joints_name = "sensor_msgs/msg/Image", "sensor_msgs/msg/JointState"
    rows, columns = np.mgrid[:HEIGHT, :WIDTH]
    base = np.stack([rows % 256, columns % 256, (rows + columns) % 256], axis=-1).astype(np.uint8)

    def header(at_ns: int) -> object:
        return header_type(stamp=time_type(sec=at_ns // 10**9, nanosec=at_ns % 10**9), frame_id="")

    def image(at_ns: int, number: int, camera: int) -> object:
        picture = np.roll(base, (3 * number, 2 * number + 90 * camera), axis=(0, 1))
        return store.types[image_name](
            header=header(at_ns), height=HEIGHT, width=WIDTH, encoding="rgb8", is_bigendian=0, step=3 * WIDTH,
            data=picture.reshape(-1),
        )  # fmt: skip

    def joints(at_ns: int, lead_s: float) -> object:
        phase = (at_ns - START_NS) / 1e9 + lead_s
        values = np.array([np.sin(phase), np.cos(phase), np.sin(2 * phase)])
        none = np.empty(0)
        return store.types[joints_name](
            header=header(at_ns), name=["a", "b", "c"], position=values, velocity=none, effort=none
        )

    events = [
        (START_NS + round(n * 1e9 / RATE_HZ), f"/{camera}/image_raw", image_name, n)
        for n in range(round(seconds * RATE_HZ))
        for camera in CAMERAS
    ]
    for topic, rate_hz in (("/joint_states", 200), ("/leader/joint_states", 60)):
        events += [
            (START_NS + round(n * 1e9 / rate_hz), topic, joints_name, n) for n in range(round(seconds * rate_hz))
        ]
    with Writer(path, version=8, storage_plugin=StoragePlugin.MCAP) as writer:
        connections = {}
        for at_ns, topic, kind, number in sorted(events):
            if topic not in connections:
                connections[topic] = writer.add_connection(topic, kind, typestore=store)
            if kind == image_name:
                message = image(at_ns, number, CAMERAS.index(topic.split("/")[1]))
            else:
                message = joints(at_ns, 0.1 if "leader" in topic else 0.0)
            writer.write(connections[topic], at_ns, store.serialize_cdr(message, kind))


def plain_loop(bag: Path, out: Path, codec: str) -> None:
    """What one would write without this package: newest values at each frame, LeRobot's writer. Runs in its Python."""
    import numpy as np
    from lerobot.configs import RGBEncoderConfig
    from lerobot.datasets.lerobot_dataset import LeRobotDataset
    from rosbags.highlevel import AnyReader

    vector = {"dtype": "float32", "shape": (3,), "names": ["a", "b", "c"]}
    picture = {"dtype": "video", "shape": (HEIGHT, WIDTH, 3), "names": ["height", "width", "channels"]}
    features = {"observation.state": vector, "action": vector}
    features |= {f"observation.images.{camera}": picture for camera in CAMERAS}
    dataset = LeRobotDataset.create(
        "local/benchmark", fps=RATE_HZ, root=out, features=features, rgb_encoder=RGBEncoderConfig(vcodec=codec)
    )
    newest: dict[str, object] = {}
    with AnyReader([bag]) as reader:
        for connection, _, raw in reader.messages():
            message = reader.deserialize(raw, connection.msgtype)
            topic = connection.topic.strip("/")
            if connection.msgtype.endswith("Image"):
                newest[topic] = message.data.reshape(HEIGHT, WIDTH, 3)
            else:
                newest[topic] = np.asarray(message.position, np.float32)
            if topic == f"{CAMERAS[-1]}/image_raw" and len(newest) == 4:
                frame = {"observation.state": newest["joint_states"], "action": newest["leader/joint_states"]}
                frame |= {f"observation.images.{camera}": newest[f"{camera}/image_raw"] for camera in CAMERAS}
                dataset.add_frame({**frame, "task": "measure"})
    dataset.save_episode()
    dataset.finalize()


def timed(*command: object) -> tuple[float, float]:
    """Wall-clock and CPU seconds of a process, from start to end."""
    begun_s, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [str(part) for part in command], check=True, cwd=Path(__file__).parents[1], stderr=subprocess.DEVNULL
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.monotonic() - begun_s, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lerobot", type=Path, help="Python of an environment with lerobot and rosbags")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--plain-loop", nargs=3, metavar=("BAG", "OUT", "CODEC"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.plain_loop:
        bag, out, codec = options.plain_loop
        plain_loop(Path(bag), Path(out), codec)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bag = folder / "bag"
        make_bag(bag, options.seconds)
        (folder / "contract.yaml").write_text(CONTRACT)
        ours_s, ours_cpu_s = timed(
            sys.executable, "-m", "groot_ros", "convert", bag, folder / "ours", "--contract", folder / "contract.yaml"
        )
        print(f"this package: {ours_s:.1f} s, {ours_cpu_s:.1f} s of CPU, for {options.seconds:g} s of two cameras")
        if options.lerobot is None:
            print("no ratio: --lerobot names no interpreter")
            return
        for codec in ("h264", "libsvtav1"):
            script = Path(__file__).resolve()
            out = folder / f"theirs_{codec}"
            theirs_s, theirs_cpu_s = timed(options.lerobot, script, "--plain-loop", bag, out, codec)
            print(
                f"plain loop with LeRobot's writer, {codec}: {theirs_s:.1f} s, {theirs_cpu_s:.1f} s of CPU: "
                f"{theirs_s / ours_s:.1f} times as long, {theirs_cpu_s / ours_cpu_s:.1f} times the CPU"
            )


if __name__ == "__main__":
    main()
