"""``convert --inspect``: what a bag holds, how good its stamps are, and which contract would read it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from groot_ros.dataset.bag import Bag
from groot_ros.dataset.conversion.playback import Progress
from groot_ros.dataset.conversion.video_packets import PACKET_TYPES
from groot_ros.errors import DatasetError, MessageError
from groot_ros.messages import header_stamp_ns, read_image
from groot_ros.observation import NANOSECONDS_PER_SECOND

IMAGE_TYPES = ("sensor_msgs/msg/Image", "sensor_msgs/msg/CompressedImage")
LOOKED_INTO = 1
"""Messages of a topic whose content is described; of the others only the stamps count."""


@dataclass
class TopicReport:
    """One topic of a bag.

    Attributes:
        name: The topic.
        type: Its type.
        messages: How many there are.
        content: What is in it: encoding and size, or names.
        names: Names of its joints, where it has some.
        fault: Why its messages cannot be read; None where they can.
        stamps_ns: The stamps of its headers, or the times of arrival where it has none.
        received_ns: The times of arrival.
        has_header: Whether its messages bear stamps.

    """

    name: str
    type: str
    messages: int = 0
    content: str = ""
    names: tuple[str, ...] = ()
    fault: str | None = None
    stamps_ns: list[int] = field(default_factory=list)
    received_ns: list[int] = field(default_factory=list)
    has_header: bool = False

    @property
    def rate_hz(self) -> float:
        """Messages a second, by the median interval; 0 where there are too few."""
        intervals = np.diff(self.stamps_ns)
        intervals = intervals[intervals > 0]
        return float(NANOSECONDS_PER_SECOND / np.median(intervals)) if len(intervals) else 0.0

    @property
    def longest_gap_s(self) -> float:
        """The longest interval between two stamps, seconds."""
        return float(np.diff(self.stamps_ns).max() / 1e9) if len(self.stamps_ns) > 1 else 0.0

    @property
    def stamp_faults(self) -> list[str]:
        """What is wrong with the stamps, in a few words each."""
        stamps, received = np.array(self.stamps_ns, np.int64), np.array(self.received_ns, np.int64)
        if not self.has_header or not len(stamps):
            return []
        steps, lag_s = np.diff(stamps), (received - stamps) / 1e9
        counts = {
            "zero": int((stamps == 0).sum()),
            "repeated": int((steps == 0).sum()),
            "going back": int((steps < 0).sum()),
            "in the future": int((lag_s < 0).sum()),
        }
        faults = [f"{count} {what}" for what, count in counts.items() if count]
        median_s = float(np.median(lag_s))
        if abs(median_s) > 1.0:
            faults.append(f"{median_s:.1f} s behind their arrival: another clock?")
        return faults

    @property
    def lag_s(self) -> float | None:
        """Median time from stamp to arrival, seconds; None without stamps."""
        if not self.has_header or not self.stamps_ns:
            return None
        return float(np.median(np.array(self.received_ns) - np.array(self.stamps_ns)) / 1e9)


@dataclass(frozen=True)
class BagReport:
    """A bag.

    Attributes:
        path: Where it lies.
        duration_s: From its first message to its last.
        topics: What it holds, by name.

    """

    path: Path
    duration_s: float
    topics: tuple[TopicReport, ...]


def inspect_bag(path: Path, progress: Progress = lambda _share: None) -> BagReport:
    """Read a bag once and describe it.

    Raises:
        DatasetError: It is no bag, or damaged.

    """
    with Bag(path) as bag:
        topics = {name: TopicReport(name, kind) for name, kind in sorted(bag.topics.items())}
        start_ns, end_ns = bag.start_ns, bag.end_ns
        for message in bag.messages():
            topic = topics[message.topic]
            topic.messages += 1
            if topic.fault is not None:
                continue
            try:
                content = message.message()
            except DatasetError as error:
                topic.fault = str(error)
                continue
            if topic.messages <= LOOKED_INTO:
                _look_into(topic, content)
            stamp_ns = _stamp_ns(content)
            topic.has_header = stamp_ns is not None
            topic.stamps_ns.append(message.received_ns if stamp_ns is None else stamp_ns)
            topic.received_ns.append(message.received_ns)
            progress((message.received_ns - start_ns) / max(1, end_ns - start_ns))
        return BagReport(path, max(0.0, (end_ns - start_ns) / 1e9), tuple(topics.values()))


def _stamp_ns(message: Any) -> int | None:  # noqa: ANN401 - a ROS message
    if hasattr(message, "transforms"):
        return header_stamp_ns(message.transforms[0]) if len(message.transforms) else None
    return header_stamp_ns(message)


def _look_into(topic: TopicReport, message: Any) -> None:  # noqa: ANN401 - a ROS message
    if topic.type in IMAGE_TYPES:
        try:
            frame = read_image(message, topic.name)
            written = message.encoding if hasattr(message, "encoding") else message.format
            topic.content = f"{written} {frame.width}x{frame.height}"
        except MessageError as error:
            topic.content = str(error)
    elif topic.type in PACKET_TYPES:
        topic.content = f"video packets, {message.format if hasattr(message, 'format') else message.encoding}"
    elif hasattr(message, "transforms"):
        topic.content = ", ".join(
            f"{one.header.frame_id} > {one.child_frame_id}" for one in list(message.transforms)[:4]
        )
    elif hasattr(message, "name") or hasattr(message, "joint_names"):
        topic.names = tuple(message.name if hasattr(message, "name") else message.joint_names)
        topic.content = ", ".join(topic.names)
    elif hasattr(message, "data"):
        data = message.data
        topic.content = data if isinstance(data, str) else f"{np.size(data)} values"
    else:
        topic.content = ", ".join(name for name in vars(message) if not name.startswith("_"))
