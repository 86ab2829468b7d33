"""Bags of a small robot whose every value is known, written as this recorder and as other tools write them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

from groot_ros.contract import Contract, parse_contract

STORE = get_typestore(Stores.ROS2_JAZZY)
START_NS = 1_700_000_000_000_000_000
RATE_HZ = 20
HEIGHT, WIDTH = 32, 48
INSTRUCTION = "put the cube in the bowl"

CONTRACT = f"""
contract_version: 1
robot: two_joints
embodiment_tag: new_embodiment
rate_hz: {RATE_HZ}
instruction: {INSTRUCTION}
cameras:
  front: {{topic: front/image_raw}}
  wrist: {{topic: wrist/image_raw}}
state:
  arm: {{topic: joint_states, joints: [a, b], policy_unit: deg}}
  gripper: {{topic: joint_states, joints: [g]}}
actions:
  arm: {{meaning: position}}
  gripper: {{meaning: position}}
outputs:
  controller: {{type: joint_trajectory, topic: arm/joint_trajectory, from: {{arm: all, gripper: all}}}}
limits: none
record:
  arm: {{topic: leader/joint_states, joints: [a, b], policy_unit: deg}}
  gripper: {{topic: leader/joint_states, joints: [g]}}
policy: {{horizon: 8, representation: {{arm: relative, gripper: absolute}}}}
"""

IMAGE, JOINTS, STRING = "sensor_msgs/msg/Image", "sensor_msgs/msg/JointState", "std_msgs/msg/String"
Message = tuple[str, str, int, object]
"""Topic, type, time of arrival in nanoseconds, message."""


def bag_contract(*replacements: tuple[str, str]) -> Contract:
    """The robot's contract with some of its text replaced."""
    text = CONTRACT
    for old, new in replacements:
        assert old in text, f"{old!r} is not in the contract"
        text = text.replace(old, new)
    return parse_contract(text, "two_joints.yaml")


def ros_time(at_ns: int):
    return STORE.types["builtin_interfaces/msg/Time"](sec=at_ns // 10**9, nanosec=at_ns % 10**9)


def header(at_ns: int):
    return STORE.types["std_msgs/msg/Header"](stamp=ros_time(at_ns), frame_id="")


def joint_state(at_ns: int, names: list[str], positions: list[float]):
    none = np.empty(0)
    return STORE.types[JOINTS](
        header=header(at_ns), name=names, position=np.array(positions, np.float64), velocity=none, effort=none
    )


def pixels(camera: str, number: int, height: int = HEIGHT, width: int = WIDTH) -> np.ndarray:
    """A picture that says which camera and frame it is."""
    picture = np.random.default_rng([ord(camera[0]), number]).integers(0, 256, (height, width, 3), dtype=np.uint8)
    picture[0, 0] = (number % 256, number // 256, ord(camera[0]))
    return picture


def image(at_ns: int, rgb: np.ndarray):
    return STORE.types[IMAGE](
        header=header(at_ns),
        height=rgb.shape[0],
        width=rgb.shape[1],
        encoding="rgb8",
        is_bigendian=0,
        step=3 * rgb.shape[1],
        data=rgb.reshape(-1),
    )


def string(text: str):
    return STORE.types[STRING](data=text)


def state(at_ns: int) -> list[float]:
    """The measured joints a, b, g in radians."""
    t = (at_ns - START_NS) / 1e9
    return [np.sin(t), np.cos(1.3 * t), 0.4 + 0.3 * np.sin(2 * t)]


def command(at_ns: int) -> list[float]:
    """The commanded joints: where the robot will be a tenth of a second later, and a little further."""
    return [1.05 * value for value in state(at_ns + 100_000_000)]


def robot(
    seconds: float,
    *,
    start_ns: int = START_NS,
    camera_hz: float = RATE_HZ,
    lost: tuple[int, ...] = (),
    size: tuple[int, int] = (HEIGHT, WIDTH),
    moves: tuple[float, float] = (0.0, float("inf")),
    commands: bool = True,
) -> Iterator[Message]:
    """What the robot publishes, in the order of arrival.

    Args:
        seconds: How long.
        start_ns: When it begins.
        camera_hz: Frames a second.
        lost: Frames of the front camera that never arrive.
        size: Of the pictures.
        moves: The span in which the leader moves, seconds; before and after it stands still.
        commands: Whether there is a leader.

    """
    end_ns = start_ns + round(seconds * 1e9)
    messages: list[Message] = []
    frames = np.arange(start_ns + 20_000_000, end_ns, 1e9 / camera_hz).astype(np.int64).tolist()
    for number, at_ns in enumerate(frames):
        if number not in lost:
            picture = image(at_ns, pixels("front", number, *size))
            messages.append(("/front/image_raw", IMAGE, at_ns + 4_000_000, picture))
        late_ns = at_ns + 3_000_000
        messages.append(
            ("/wrist/image_raw", IMAGE, late_ns + 4_000_000, image(late_ns, pixels("wrist", number, *size)))
        )
    for at_ns in range(start_ns, end_ns, 5_000_000):
        positions = state(at_ns)
        # Another order than the contract's: joints are found by name.
        messages.append(
            ("/joint_states", JOINTS, at_ns + 500_000, joint_state(at_ns, ["g", "b", "a"], positions[::-1]))
        )
    for at_ns in range(start_ns, end_ns, 10_000_000) if commands else ():
        first_ns, last_ns = (start_ns + round(min(t, 1e6) * 1e9) for t in moves)
        said = command(min(max(at_ns, first_ns), last_ns))
        messages.append(("/leader/joint_states", JOINTS, at_ns + 700_000, joint_state(at_ns, ["a", "b", "g"], said)))
    yield from sorted(messages, key=lambda message: message[2])


def serialized(messages: Iterator[Message]) -> Iterator[tuple[str, str, int, bytes]]:
    """The messages as they come over the wire."""
    for topic, type_name, at_ns, message in messages:
        yield topic, type_name, at_ns, bytes(STORE.serialize_cdr(message, type_name))


def write_bag(path: Path, messages: Iterator[Message], *, storage: str = "mcap", compression: str = "none") -> Path:
    """A bag as another tool writes it: ``storage`` mcap or sqlite3, ``compression`` none, message, file or storage."""
    plugin = {"mcap": StoragePlugin.MCAP, "sqlite3": StoragePlugin.SQLITE3}[storage]
    writer = Writer(path, version=8, storage_plugin=plugin)
    if compression != "none":
        writer.set_compression(CompressionMode[compression.upper()], CompressionFormat.ZSTD)
    connections: dict[str, object] = {}
    with writer:
        for topic, type_name, at_ns, data in serialized(messages):
            if topic not in connections:
                connections[topic] = writer.add_connection(topic, type_name, typestore=STORE)
            writer.write(connections[topic], at_ns, data)
    return path
