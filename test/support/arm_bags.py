"""Small bags whose every value is known, written with rosbags: cameras, joint states, and a leader's commands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

STORE = get_typestore(Stores.ROS2_JAZZY)
SECOND = 1_000_000_000
START_NS = 1_700_000_000 * SECOND
IMAGE, COMPRESSED, JOINTS = (
    "sensor_msgs/msg/Image",
    "sensor_msgs/msg/CompressedImage",
    "sensor_msgs/msg/JointState",
)


def header(stamp_ns: int) -> Any:
    time = STORE.types["builtin_interfaces/msg/Time"](sec=stamp_ns // SECOND, nanosec=stamp_ns % SECOND)
    return STORE.types["std_msgs/msg/Header"](stamp=time, frame_id="")


def image(pixels: np.ndarray, stamp_ns: int) -> Any:
    height, width, _ = pixels.shape
    return STORE.types[IMAGE](
        header=header(stamp_ns),
        height=height,
        width=width,
        encoding="rgb8",
        is_bigendian=0,
        step=3 * width,
        data=np.ascontiguousarray(pixels).reshape(-1),
    )


def compressed(pixels: np.ndarray, stamp_ns: int, quality: int = 90) -> Any:
    _, data = cv2.imencode(".jpg", pixels[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, quality])
    return STORE.types[COMPRESSED](header=header(stamp_ns), format="jpeg", data=data)


def joints(names: Sequence[str], values: Sequence[float], stamp_ns: int) -> Any:
    empty = np.empty(0)
    return STORE.types[JOINTS](
        header=header(stamp_ns), name=list(names), position=np.asarray(values, np.float64), velocity=empty, effort=empty
    )


class BagWriter:
    """Writes messages in any order of topics."""

    def __init__(self, path: Path, storage: StoragePlugin = StoragePlugin.MCAP) -> None:
        self._writer = Writer(path, version=9, storage_plugin=storage)
        self._connections: dict[str, Any] = {}
        self.path = path

    def __enter__(self) -> BagWriter:
        self._writer.open()
        return self

    def __exit__(self, *details: object) -> None:
        self._writer.close()

    def write(self, topic: str, message: Any, received_ns: int) -> None:
        kind = message.__msgtype__
        if topic not in self._connections:
            self._connections[topic] = self._writer.add_connection(topic, kind, typestore=STORE)
        self._writer.write(self._connections[topic], received_ns, STORE.serialize_cdr(message, kind))

    def write_raw(self, topic: str, kind: str, data: bytes, received_ns: int) -> None:
        if topic not in self._connections:
            self._connections[topic] = self._writer.add_connection(topic, kind, typestore=STORE)
        self._writer.write(self._connections[topic], received_ns, data)


JOINT_NAMES = ("shoulder", "elbow", "gripper")


def picture(seed: int, height: int = 48, width: int = 64) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3)).astype(np.uint8)


def smooth(time_s: float) -> np.ndarray:
    """Shoulder, elbow and gripper of the arm at a time."""
    return np.array([np.sin(time_s), 0.5 * np.cos(1.7 * time_s), 0.4 + 0.3 * np.sign(np.sin(2.0 * time_s))])


def write_arm_bag(
    path: Path,
    duration_s: float = 2.0,
    *,
    rate_hz: int = 20,
    command: Callable[[float], np.ndarray] = smooth,
    storage: StoragePlugin = StoragePlugin.MCAP,
    lag_s: float = 0.1,
    commands: bool = True,
    pictures: Callable[[np.ndarray, int], Any] = image,
    state_rate_hz: int = 100,
) -> Path:
    """A bag of the demo robot's topics: two cameras, states that lag behind the commands, both of ``state_rate_hz``."""
    events: list[tuple[int, int, str, Any]] = []
    camera_topics = ("/front/image_raw", "/wrist/image_raw")
    if pictures is compressed:
        camera_topics = tuple(f"{topic}/compressed" for topic in camera_topics)
    for row in range(round(duration_s * state_rate_hz)):
        stamp_ns = START_NS + row * SECOND // state_rate_hz
        time_s = row / state_rate_hz
        events.append((stamp_ns, 0, "/joint_states", joints(JOINT_NAMES, command(time_s - lag_s), stamp_ns)))
        if commands:
            events.append((stamp_ns, 1, "/leader/joint_states", joints(JOINT_NAMES, command(time_s), stamp_ns)))
    for row in range(round(duration_s * rate_hz)):
        stamp_ns = START_NS + row * SECOND // rate_hz
        for camera, topic in enumerate(camera_topics):
            received_ns = stamp_ns + (5 + camera) * 1_000_000
            events.append((received_ns, 2 + camera, topic, pictures(picture(10 * row + camera), stamp_ns)))
    with BagWriter(path, storage) as writer:
        for received_ns, _, topic, message in sorted(events, key=lambda event: event[:2]):
            writer.write(topic, message, received_ns)
    return path
