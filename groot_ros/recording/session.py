"""An operator's session: episodes one after the other in one folder, each whole or recognisably not."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from groot_ros.contract.record import INSTRUCTION_TOPIC
from groot_ros.errors import RecordingError
from groot_ros.recording.bag_metadata import sync_folder
from groot_ros.recording.definitions import TypeDefinition, find_definition
from groot_ros.recording.disk import free_bytes, try_speed
from groot_ros.recording.episode_writer import LARGEST_BACKLOG, EpisodeWriter
from groot_ros.recording.recovery import UNFINISHED_SUFFIX
from groot_ros.recording.stream_watch import NANOSECONDS_PER_SECOND, Gap, StreamWatch
from groot_ros.recording.topics import RecordedTopic

DISCARDED = "discarded"
STRING = "std_msgs/msg/String"
LARGE_BACKLOG = LARGEST_BACKLOG // 4
"""Bytes that wait for a disk which is behind: three seconds of three raw cameras; one second is usual."""
CLOCK_STEP_NS = NANOSECONDS_PER_SECOND // 2
"""A message so much older than the one before it on its topic says that the clock went back."""
_EPISODE = re.compile(r"episode_(\d{6})")


@dataclass(frozen=True)
class FinishedEpisode:
    """What was recorded.

    Attributes:
        bag: Its folder.
        duration_s: How long it is.
        messages: Messages in it.
        gaps: Intervals in which a camera was silent for too long.
        fault: What ended it, where that was not the operator.

    """

    bag: Path
    duration_s: float
    messages: int
    gaps: tuple[Gap, ...]
    fault: str | None = None


class RecordingSession:
    """Takes the raw messages of all topics, and writes them while an episode is under way. It belongs to one thread.

    Args:
        folder: Where the episodes go; made where it does not exist.
        topics: What is recorded, by its full name on the robot.
        max_gap_ns: Longest interval of a camera that is no gap.
        least_free_bytes: Less free space on the disk than this, and no episode begins; one under way is ended.

    """

    def __init__(
        self, folder: Path, topics: Mapping[str, RecordedTopic], *, max_gap_ns: int, least_free_bytes: int
    ) -> None:
        self.folder = folder
        self.topics = dict(topics)
        self.last: FinishedEpisode | None = None
        self.started_ns = 0
        self.disk_bytes_per_s: float | None = None
        """What the disk took when it was tried."""
        self._least_free_bytes = least_free_bytes
        self._definitions: dict[str, TypeDefinition] = {
            name: find_definition(topic.type_name) for name, topic in topics.items()
        }
        self.watches = {
            name: StreamWatch(
                name,
                stamped=self._definitions[name].begins_with_header,
                max_gap_ns=max_gap_ns if topic.is_camera else None,
            )
            for name, topic in topics.items()
        }
        self._qos = dict.fromkeys(topics, "")
        self._kept: dict[str, list[bytes]] = {}  # what was said before an episode, and holds in it
        self._writer: EpisodeWriter | None = None
        self._instruction = ""
        self._clock_back_at_ns: int | None = None  # what the clock said before it went back in an episode
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            msg = f"{folder} cannot be made: {error.strerror}; give another folder for the recordings"
            raise RecordingError(msg) from error

    @property
    def is_recording(self) -> bool:
        """Whether an episode is under way."""
        return self._writer is not None

    @property
    def name(self) -> str:
        """The name of the episode under way, or of the next one."""
        if self._writer is not None:
            return self._writer.folder.name.removesuffix(UNFINISHED_SUFFIX)
        return f"episode_{self._next_number():06d}"

    @property
    def bytes_taken(self) -> int:
        """Bytes of the episode under way."""
        return self._writer.bytes_taken if self._writer else 0

    @property
    def backlog_bytes(self) -> int:
        """Bytes that wait for the disk."""
        return self._writer.backlog_bytes if self._writer else 0

    @property
    def bytes_per_s(self) -> float:
        """What all streams bring, lately."""
        return sum(watch.bytes_per_s for watch in self.watches.values())

    @property
    def free_bytes(self) -> int:
        """Free space on the disk; none where the folder cannot be reached."""
        try:
            return free_bytes(self.folder)
        except OSError:
            return 0

    def try_disk(self) -> None:
        """Find out what the disk takes; up to a second. Best before anything is heard."""
        if self._disk_obstacle() is None:
            self.disk_bytes_per_s = try_speed(self.folder)

    def disk_doubt(self) -> str | None:
        """Why the disk may not keep up with the streams; None where it does."""
        rate = self.bytes_per_s
        ways = "record fewer or compressed images, or to another disk"
        if self.backlog_bytes > LARGE_BACKLOG:
            return (
                f"writing to {self.folder} falls behind the {rate / 1e6:.0f} MB/s of the streams: "
                f"{self.backlog_bytes / 1e6:.0f} MB wait, at {LARGEST_BACKLOG / 1e6:.0f} MB the episode ends; "
                f"the disk is slow or the machine busy: {ways}, or end what else runs here"
            )
        if self.disk_bytes_per_s is not None and rate > self.disk_bytes_per_s:
            return (
                f"the disk of {self.folder} may be too slow: it took {self.disk_bytes_per_s / 1e6:.0f} MB/s when it "
                f"was tried, the streams bring {rate / 1e6:.0f} MB/s; {ways}"
            )
        return None

    def set_qos(self, topic: str, qos: str) -> None:
        """Note what a topic's publishers offer, as the YAML that rosbag2 keeps."""
        self._qos[topic] = qos

    def hear(self, topic: str, received_ns: int, data: bytes) -> Gap | None:
        """Take a message: look at its stamp, and write it while an episode is under way; the gap that it ends.

        Where the clock went back, the episode ends before the message: it would mix two runs into one.
        """
        before_ns = self.watches[topic].newest_received_ns
        if before_ns is not None and before_ns - received_ns > CLOCK_STEP_NS:
            self._clock_went_back(before_ns, received_ns)
        gap = self.watches[topic].hear(data, received_ns)
        if self.topics[topic].max_age_ns is None:
            self._keep(topic, data)
        if self._writer is not None:
            self._writer.put(topic, received_ns, data)
            return gap
        return None

    def obstacle(self, now_ns: int) -> str | None:
        """Why no episode can begin now; None where one can."""
        for name, topic in self.topics.items():
            newest_ns = self.watches[name].newest_received_ns
            streams = ", ".join(topic.streams)
            if newest_ns is None:
                if name in self._kept:
                    continue  # it was said before the clock went back, and holds
                if name.endswith("/tf_static"):
                    continue  # a robot without fixed frames never sends any
                return f"{streams}: no message has come yet on {name}; is its node running?"
            age_ns = now_ns - newest_ns
            if topic.max_age_ns is not None and age_ns > topic.max_age_ns:
                return (
                    f"{streams}: the newest message on {name} came {age_ns / 1e9:.1f} s ago, "
                    f"allowed are {topic.max_age_ns / 1e9:g} s"
                )
        return self._disk_obstacle()

    def start(self, now_ns: int, instruction: str) -> str:
        """Begin an episode and return its name.

        Raises:
            RecordingError: One is under way, a stream is missing or stale, there is no instruction, or no space.

        """
        if self._writer is not None:
            msg = f"{self.name} is being recorded already: stop or discard it first"
            raise RecordingError(msg)
        if not instruction.strip():
            msg = "there is no instruction: give one with --instruction, or in the contract"
            raise RecordingError(msg)
        obstacle = self.obstacle(now_ns)
        if obstacle is not None:
            raise RecordingError(obstacle)
        writer = EpisodeWriter(self.folder / self.name)
        for name, definition in self._definitions.items():
            writer.add_topic(name, definition, self._qos[name])
        writer.add_topic(INSTRUCTION_TOPIC, find_definition(STRING), "")
        self._writer, self.started_ns, self._clock_back_at_ns = writer, now_ns, None
        for watch in self.watches.values():
            watch.begin()
        for name, messages in self._kept.items():
            for data in messages:
                writer.put(name, now_ns, data)
        self.instruct(now_ns, instruction)
        return self.name

    def instruct(self, now_ns: int, instruction: str) -> None:
        """Note the instruction from now on; only while an episode is under way."""
        self._instruction = instruction
        if self._writer is not None:
            self._writer.put(INSTRUCTION_TOPIC, now_ns, _serialized_string(instruction))

    def check(self, now_ns: int) -> FinishedEpisode | None:
        """End the episode where the disk is full, too slow or broken: then what became of it. Call it now and then."""
        if self._writer is None:
            return None
        self._writer.fault = self._writer.fault or self._disk_obstacle()
        return self.stop(now_ns) if self._writer.fault is not None else None

    def stop(self, now_ns: int) -> FinishedEpisode:
        """End the episode and finish its bag.

        Raises:
            RecordingError: None is under way, or it cannot be finished.

        """
        writer = self._take_writer("stop")
        self.last = None  # where this one cannot be finished, the one before it is not the last
        end_ns = self._clock_back_at_ns
        if end_ns is None:
            end_ns = now_ns
            self._end_watches(end_ns)
        gaps = tuple(gap for watch in self.watches.values() for gap in watch.gaps)
        bag = writer.finish(self._notes(gaps))
        self.last = FinishedEpisode(
            bag=bag,
            duration_s=(end_ns - self.started_ns) / NANOSECONDS_PER_SECOND,
            messages=sum(watch.received for watch in self.watches.values()),
            gaps=gaps,
            fault=writer.fault,
        )
        return self.last

    def discard(self) -> Path:
        """Put the episode under way, or else the last one, aside and return where it lies now.

        Nothing is deleted: the folder ``discarded`` can be, when the day is over.

        Raises:
            RecordingError: There is no episode since the recorder began, or it cannot be moved.

        """
        if self._writer is not None:
            writer = self._take_writer("discard")
            writer.abandon()
            return self._put_aside(writer.folder)
        if self.last is None:
            msg = (
                "no episode was recorded since the recorder began, or the last one was put aside or could not be "
                "finished: there is nothing to discard"
            )
            raise RecordingError(msg)
        aside, self.last = self._put_aside(self.last.bag), None
        return aside

    def close(self, now_ns: int) -> FinishedEpisode | None:
        """End the session: an episode under way is finished, not lost."""
        return self.stop(now_ns) if self._writer is not None else None

    def _clock_went_back(self, before_ns: int, now_ns: int) -> None:
        if self._writer is not None and self._clock_back_at_ns is None:
            self._clock_back_at_ns = before_ns
            self._end_watches(before_ns)
            self._writer.fault = self._writer.fault or (
                f"the clock went back by {(before_ns - now_ns) / NANOSECONDS_PER_SECOND:.1f} s, and an episode is one "
                f"run of it: begin another"
            )
        for watch in self.watches.values():
            watch.forget()

    def _end_watches(self, end_ns: int) -> None:
        for watch in self.watches.values():
            watch.end(end_ns)

    def _keep(self, topic: str, data: bytes) -> None:
        if topic.endswith("/tf_static"):  # several nodes say one part each
            messages = self._kept.setdefault(topic, [])
            if data not in messages:
                messages.append(data)
        else:
            self._kept[topic] = [data]

    def _take_writer(self, what: str) -> EpisodeWriter:
        writer, self._writer = self._writer, None
        if writer is None:
            msg = f"no episode is being recorded, so there is nothing to {what}"
            raise RecordingError(msg)
        return writer

    def _notes(self, gaps: Sequence[Gap]) -> dict[str, str]:
        return {
            "groot_ros.instruction": self._instruction,
            "groot_ros.gaps": json.dumps(
                [
                    {"topic": gap.topic, "start_ns": gap.start_ns, "length_s": gap.length_ns / NANOSECONDS_PER_SECOND}
                    for gap in gaps
                ]
            ),
        }

    def _disk_obstacle(self) -> str | None:
        try:
            free = free_bytes(self.folder)
        except OSError as error:
            return (
                f"{self.folder} cannot be reached: {error.strerror}; was it moved, or its disk unplugged? Bring it "
                f"back, or record to another folder"
            )
        if free >= self._least_free_bytes:
            return None
        return (
            f"only {free / 1e9:.1f} GB are free on the disk of {self.folder}, {self._least_free_bytes / 1e9:.1f} GB "
            f"are kept free: delete something, or record to another disk"
        )

    def _put_aside(self, bag: Path) -> Path:
        target = self.folder / DISCARDED / bag.name
        try:
            target.parent.mkdir(exist_ok=True)
            bag.rename(target)
            sync_folder(self.folder)
        except OSError as error:
            msg = f"{bag} cannot be moved to {target}: {error.strerror}"
            raise RecordingError(msg) from error
        return target

    def _next_number(self) -> int:
        folders = (self.folder, self.folder / DISCARDED)
        try:
            names = [path.name for folder in folders for path in folder.glob("episode_*")]
        except OSError:  # none can begin there; `obstacle` says why
            names = []
        numbers = [int(match[1]) for match in map(_EPISODE.match, names) if match]
        return max(numbers, default=-1) + 1


def _serialized_string(text: str) -> bytes:
    """A std_msgs/String in little-endian CDR."""
    data = text.encode() + b"\0"
    return b"\x00\x01\x00\x00" + len(data).to_bytes(4, "little") + data
