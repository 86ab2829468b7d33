"""Messages into the alignment: which topics a contract listens to, and what becomes of each message on them.

The policy node, the recorder's converter and the replay all hand their messages over here, so that what is replayed is
read as what is live.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from groot_ros.alignment.aligner import Aligner
from groot_ros.contract.contract import Contract
from groot_ros.contract.sources import StateSource, TransformSource
from groot_ros.errors import MessageError
from groot_ros.messages import TransformTracker, header_stamp_ns, read_image, read_state

TRANSFORM_TOPICS = {"/tf": False, "/tf_static": True}
"""Topics of transforms, and whether these hold at all times."""


@dataclass(frozen=True)
class IntakeTopic:
    """A topic that is listened to.

    Attributes:
        name: As the contract writes it.
        type: Message type, as ``sensor_msgs/msg/Image``.
        reliability: ``reliable`` or ``best_effort``.
        cameras: The cameras that it feeds.
        is_static: Whether late listeners must be given the last message (/tf_static).

    """

    name: str
    type: str
    reliability: Literal["reliable", "best_effort"]
    cameras: tuple[str, ...] = ()
    is_static: bool = False


@dataclass(frozen=True)
class Taken:
    """Which kinds of streams a message brought something new for."""

    frame: bool = False
    state: bool = False


TAKEN = {(frame, state): Taken(frame, state) for frame in (False, True) for state in (False, True)}


@dataclass(frozen=True)
class _Reader:
    """One source that draws on a topic."""

    stream: str
    kind: Literal["state", "action"]
    group: str
    index: int
    source: StateSource
    tracker: TransformTracker | None = None


class Intake:
    """Reads the messages of a contract's topics and hands them to an aligner. It belongs to one thread.

    Args:
        contract: The topics.
        aligner: Where the messages go.
        states: Whether the cameras and states are taken.
        commands: Whether the streams of ``record`` are taken; the aligner must have been made with them.

    """

    def __init__(self, contract: Contract, aligner: Aligner, *, states: bool = True, commands: bool = False) -> None:
        self._contract = contract
        self._aligner = aligner
        self.topics: dict[str, IntakeTopic] = {}
        self.counts: dict[str, int] = {}
        self._cameras: dict[str, list[str]] = defaultdict(list)
        self._readers: dict[str, list[_Reader]] = defaultdict(list)
        self._raw: dict[tuple[str, int], NDArray[np.float64]] = {}
        if states:
            for camera, image in contract.cameras.items():
                self._cameras[image.topic].append(camera)
                names = tuple(self._cameras[image.topic])
                self._add(IntakeTopic(image.topic, image.message_type, image.qos, names))
            for group, sources in contract.state.items():
                self._add_sources("state", group, sources)
        if commands:
            for group, sources in contract.record.groups.items():
                self._add_sources("action", group, sources)

    def take(self, topic: str, message: Any, received_ns: int) -> Taken:  # noqa: ANN401 - a ROS message
        """Read a message; one that cannot be read is noted by the aligner.

        Args:
            topic: A name out of `topics`.
            message: The message, of rclpy or out of a bag.
            received_ns: When it came, by the clock that also gives now.

        """
        self.counts[topic] += 1
        frame = state = False
        for camera in self._cameras.get(topic, ()):
            frame |= self._take_image(camera, topic, message, received_ns)
        for reader in self._readers.get(topic, ()):
            state |= self._take_values(reader, topic, message, received_ns)
        return TAKEN[frame, state]

    def refuse(self, topic: str, sentence: str, received_ns: int) -> None:
        """Note a message whose bytes could not even be made a message."""
        self.counts[topic] += 1
        for stream in self.streams(topic):
            self._aligner.refuse(stream, sentence, received_ns)

    def streams(self, topic: str) -> list[str]:
        """The streams that a topic feeds, as ``video.front``."""
        cameras = [f"video.{camera}" for camera in self._cameras.get(topic, ())]
        return cameras + [reader.stream for reader in self._readers.get(topic, ())]

    def measured(self) -> dict[str, NDArray[np.float64]] | None:
        """The newest values of all state groups in topic units ``(R,)``; None while one has not come yet."""
        values: dict[str, NDArray[np.float64]] = {}
        for group, sources in self._contract.state.items():
            parts = [self._raw.get((group, index)) for index in range(len(sources))]
            known = [part for part in parts if part is not None]
            if len(known) != len(parts):
                return None
            values[group] = np.concatenate(known) if known else np.empty(0)
        return values

    def reset(self) -> None:
        """Forget the newest values; the counters go on."""
        self._raw.clear()

    def _add(self, topic: IntakeTopic) -> None:
        self.topics[topic.name] = topic
        self.counts[topic.name] = 0

    def _add_sources(self, kind: Literal["state", "action"], group: str, sources: tuple[StateSource, ...]) -> None:
        for index, source in enumerate(sources):
            stream = f"{kind}.{group}" if index == 0 else f"{kind}.{group}[{index}]"
            if isinstance(source, TransformSource):
                reader = _Reader(stream, kind, group, index, source, TransformTracker(source.tf[0], source.tf[1]))
                for name, static in TRANSFORM_TOPICS.items():
                    self._readers[name].append(reader)
                    self._add(IntakeTopic(name, source.message_type, "reliable", is_static=static))
                continue
            self._readers[source.topic].append(_Reader(stream, kind, group, index, source))
            known = self.topics.get(source.topic)
            reliable = source.qos == "reliable" or (known is not None and known.reliability == "reliable")
            if known is None or (reliable and known.reliability != "reliable"):
                self._add(IntakeTopic(source.topic, source.message_type, "reliable" if reliable else "best_effort"))

    def _take_image(self, camera: str, topic: str, message: Any, received_ns: int) -> bool:  # noqa: ANN401
        stream = f"video.{camera}"
        try:
            frame = read_image(message, f"{stream} on {topic}")
        except MessageError as error:
            self._aligner.refuse(stream, str(error), received_ns)
            return False
        return self._aligner.add_image(camera, header_stamp_ns(message), frame, received_ns)

    def _take_values(self, reader: _Reader, topic: str, message: Any, received_ns: int) -> bool:  # noqa: ANN401
        where = f"{reader.stream} on {topic}"
        try:
            if reader.tracker is None:
                samples = [(header_stamp_ns(message), read_state(reader.source, message, where))]
            else:
                samples = list(reader.tracker.add(message, where, static=TRANSFORM_TOPICS[topic]))
        except MessageError as error:
            self._aligner.refuse(reader.stream, str(error), received_ns)
            return False
        add = self._aligner.add_state if reader.kind == "state" else self._aligner.add_command
        counts = False
        for stamp_ns, values in samples:
            if reader.kind == "state":
                self._raw[reader.group, reader.index] = values
            counts = add(reader.group, reader.index, stamp_ns, values, received_ns) or counts
        return counts
