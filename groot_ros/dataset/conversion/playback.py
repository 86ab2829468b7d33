"""A bag, played as fast as it can be read into the alignment that the live policy uses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from groot_ros.alignment import Aligner
from groot_ros.alignment.intake import Intake, IntakeTopic
from groot_ros.contract import Contract
from groot_ros.contract.record import INSTRUCTION_TOPIC
from groot_ros.contract.timing import nanoseconds
from groot_ros.dataset.bag import Bag, BagMessage
from groot_ros.dataset.conversion.topic_names import TF_STATIC, find_topics
from groot_ros.dataset.conversion.video_packets import PACKET_TYPES, Decoded, PacketDecoder
from groot_ros.errors import DatasetError, MessageError
from groot_ros.messages import array_frame

LEAD_NS = 2_000_000_000
"""How long before a cut the messages count, so that its first row has what came before."""

Progress = Callable[[float], None]
"""Takes the share of the bag that is read, 0 to 1."""


@dataclass
class Frames:
    """What the cameras have given: stamps of the frames that count, by camera, since they were last taken away."""

    new: dict[str, list[int]] = field(default_factory=dict)

    def take(self, camera: str) -> list[int]:
        """The new stamps of a camera."""
        stamps = self.new.get(camera, [])
        self.new[camera] = []
        return stamps


class Playback:
    """One passage through a part of a bag.

    Args:
        bag: The bag, open.
        contract: The robot.
        start_ns: When the part begins, by the time of recording.
        end_ns: When it ends.

    Raises:
        DatasetError: The bag lacks a topic of the contract.

    """

    def __init__(self, bag: Bag, contract: Contract, start_ns: int, end_ns: int) -> None:
        has_commands = bool(contract.record.groups)
        self.aligner = Aligner(contract, with_commands=has_commands)
        self.frames = Frames()
        self.instructions: list[tuple[int, str]] = []
        self._bag = bag
        self._start_ns, self._end_ns = start_ns, end_ns
        self._now_ns = start_ns
        alignment = contract.alignment
        self.settled_ns = nanoseconds(alignment.max_age_s) + nanoseconds(alignment.tolerance_s)
        self._intake = Intake(contract, self.aligner, commands=has_commands)
        self._names = find_topics(self._intake.topics.values(), bag.topics, bag.path)
        self._decoders = {
            topic.name: PacketDecoder(f"video.{topic.cameras[0]} on {name}")
            for name, topic in self._names.items()
            if topic.type in PACKET_TYPES
        }
        self._early: dict[str, int] = dict.fromkeys(self._decoders, 0)  # packets before the part
        self._holding = {name for name, topic in self._names.items() if _holds(contract, topic)}

    def play(self, progress: Progress = lambda _share: None) -> Iterator[int]:
        """Read on; each time of recording, nanoseconds, after its message was taken.

        What belongs to a stamp is settled, and may be asked of `aligner`, when the time is `settled_ns` later.
        """
        span_ns = max(1, self._end_ns - self._start_ns)
        for message in self._bag.messages({*self._names, INSTRUCTION_TOPIC}):
            if message.received_ns > self._end_ns + LEAD_NS:
                break
            if message.topic == INSTRUCTION_TOPIC:
                self.instructions.append((message.received_ns, str(message.message().data)))
                continue
            if message.received_ns < self._start_ns - LEAD_NS and message.topic not in self._holding:
                self._decode_before_the_part(message)
                continue
            self._now_ns = message.received_ns
            self._take(message)
            progress(min(1.0, max(0.0, (message.received_ns - self._start_ns) / span_ns)))
            yield message.received_ns
        for topic, decoder in self._decoders.items():
            self._add_pictures(self._intake.topics[topic], decoder.finish(), self._end_ns)

    def skipped_packets(self) -> dict[str, int]:
        """By camera, the packets of a video in this part that came before its first key frame, and are no pictures."""
        skipped: dict[str, int] = {}
        for name, decoder in self._decoders.items():
            count = decoder.skipped - self._early[name]
            skipped |= {camera: count for camera in self._intake.topics[name].cameras if count > 0}
        return skipped

    def why_not(self) -> str | None:
        """Why there is no observation where the passage ended; None where there is one."""
        reference = self.aligner.reference(self._now_ns)
        return None if isinstance(reference, int) else reference.sentence

    def instruction_at(self, stamp_ns: int) -> str | None:
        """The recorded instruction that holds at a time; None where none was recorded."""
        held = [text for at_ns, text in self.instructions if at_ns <= stamp_ns]
        return held[-1] if held else next((text for _, text in self.instructions), None)

    def _decode_before_the_part(self, message: BagMessage) -> None:
        """Nothing in the part needs a message so old, but a packet of a video needs all since its key frame."""
        topic = self._names[message.topic]
        if topic.name in self._decoders:
            with suppress(DatasetError, MessageError):  # what is damaged there is in no row
                self._decode(topic, message.message(), message.received_ns)

    def _decode(self, topic: IntakeTopic, content: Any, received_ns: int) -> Decoded:  # noqa: ANN401 - a ROS message
        if received_ns < self._start_ns:
            self._early[topic.name] += 1
        return self._decoders[topic.name].decode(content)

    def _take(self, message: BagMessage) -> None:
        topic = self._names[message.topic]
        try:
            content = message.message()
        except DatasetError as error:
            self._intake.refuse(topic.name, str(error), message.received_ns)
            return
        if topic.name in self._decoders:
            self._take_packet(topic, content, message.received_ns)
            return
        before = {camera: self._accepted(camera) for camera in topic.cameras}
        self._intake.take(topic.name, content, message.received_ns)
        for camera, count in before.items():
            if self._accepted(camera) > count:
                self._note(camera)

    def _take_packet(self, topic: IntakeTopic, content: Any, received_ns: int) -> None:  # noqa: ANN401
        try:
            pictures = self._decode(topic, content, received_ns)
        except MessageError as error:
            self._intake.refuse(topic.name, str(error), received_ns)
            return
        self._add_pictures(topic, pictures, received_ns)

    def _add_pictures(self, topic: IntakeTopic, pictures: Decoded, received_ns: int) -> None:
        for stamp_ns, picture in pictures:
            for camera in topic.cameras:
                frame = array_frame(picture, f"video.{camera} on {topic.name}")
                if self.aligner.add_image(camera, stamp_ns, frame, received_ns):
                    self._note(camera)

    def _accepted(self, camera: str) -> int:
        return self.aligner.health[f"video.{camera}"].accepted

    def _note(self, camera: str) -> None:
        stamp_ns = self.aligner.health[f"video.{camera}"].newest_stamp_ns
        if stamp_ns is not None:
            self.frames.new.setdefault(camera, []).append(stamp_ns)


def _holds(contract: Contract, topic: IntakeTopic) -> bool:
    """Whether an old message of the topic still counts."""
    if "/" + topic.name.lstrip("/") == TF_STATIC:
        return True
    for prefix, groups in (("state", contract.state), ("action", contract.record.groups)):
        for group, sources in groups.items():
            timing = contract.stream_timing(f"{prefix}.{group}")
            if contract.alignment.max_age_ns(timing) is None and any(one.topic == topic.name for one in sources):
                return True
    return False
