"""A bag that is played through the alignment, message by message, as a live robot's messages would come."""

from __future__ import annotations

import difflib
import math
from collections import deque
from collections.abc import Generator, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from groot_ros.alignment import Aligner, NotReady
from groot_ros.alignment.buffers import Allocate
from groot_ros.alignment.intake import TRANSFORM_TOPICS, Intake
from groot_ros.contract import Contract
from groot_ros.contract.record import Record
from groot_ros.dataset.bag import Bag, BagMessage
from groot_ros.errors import DatasetError
from groot_ros.evaluation.episode import Array, Demonstration, Episode, Times
from groot_ros.observation import NANOSECONDS_PER_SECOND, Observation

CLOCK_TOPIC = "/clock"
MARGIN_S = 0.5
"""How much further than a chunk the bag is read ahead: commands of other stamps may come later."""


class BagEpisode(Episode):
    """Plays one bag.

    What is to be demonstrated lies in the future of the observation, so the bag is read a chunk's length ahead of what
    is played: commands are read at once, all else waits for its time.

    Args:
        path: The bag.
        contract: Its topics.
        video_history: Rows before the present at which frames are taken, as the policy's embodiment says.
        state_history: The same for states.
        horizon: Rows of a chunk.
        name: Its name in reports.

    Raises:
        DatasetError: It is no bag, or lacks a topic of the contract.

    """

    def __init__(
        self,
        path: Path,
        contract: Contract,
        *,
        video_history: tuple[int, ...],
        state_history: tuple[int, ...],
        horizon: int,
        name: str,
    ) -> None:
        self.path = path
        self.name = name
        self._contract = contract
        self._histories = video_history, state_history
        self._ahead_ns = round((horizon * contract.period_s + MARGIN_S) * NANOSECONDS_PER_SECOND)
        self._recorded, self._shift_ns = _recorded_actions(contract)
        self._widths = {group: len(contract.action_dimensions(group)) for group in contract.actions}
        self._remembered: tuple[bytes, Demonstration] | None = None  # what was demonstrated, until more is known
        self._begin()
        with Bag(path) as bag:
            self._has_clock = CLOCK_TOPIC in bag.topics
            self.duration_s = max(bag.end_ns - bag.start_ns, 0) / NANOSECONDS_PER_SECOND
            check_topics(bag, self._intake)
            absent = [topic for topic in self._commands.topics if absolute(topic) not in bag.topics]
        self.is_demonstrated = bool(self._recorded.record.groups) and not set(absent) - set(TRANSFORM_TOPICS)

    def play(self) -> Iterator[int]:
        """See `Episode.play`."""
        self._begin()
        names = {absolute(topic): topic for topic in self._intake.topics}
        commands = {absolute(topic): topic for topic in self._commands.topics}
        wanted = {*names, *commands, *((CLOCK_TOPIC,) if self._has_clock else ())}
        waiting: deque[tuple[int, str, BagMessage]] = deque()
        clock_ns: int | None = None
        now_ns: int | None = None
        with Bag(self.path) as bag:
            for message in bag.messages(wanted):
                if self._has_clock:
                    if message.topic == CLOCK_TOPIC:
                        stamp = message.message().clock
                        clock_ns = int(stamp.sec) * NANOSECONDS_PER_SECOND + int(stamp.nanosec)
                    if clock_ns is None:
                        continue
                received_ns = message.received_ns if clock_ns is None else clock_ns
                if message.topic in commands:
                    self._remembered = None
                    _take(self._commands, commands[message.topic], message, received_ns)
                if message.topic in names:
                    waiting.append((received_ns, names[message.topic], message))
                while waiting and received_ns - waiting[0][0] > self._ahead_ns:
                    now_ns = yield from self._take_next(waiting, now_ns)
            while waiting:
                now_ns = yield from self._take_next(waiting, now_ns)

    def reference(self, now_ns: int) -> int | NotReady:
        """See `Episode.reference`."""
        return self._aligner.reference(now_ns)

    def state_at(self, reference_ns: int) -> dict[str, NDArray[np.float32]] | NotReady:
        """See `Episode.state_at`."""
        return self._aligner.state_at(reference_ns)

    def stamp_at(self, reference_ns: int) -> int | NotReady:
        """See `Episode.stamp_at`."""
        return self._aligner.stamp_at(reference_ns)

    def observation_at(self, reference_ns: int, instruction: str, allocate: Allocate) -> Observation | NotReady:
        """See `Episode.observation_at`."""
        return self._aligner.observation_at(reference_ns, instruction, allocate)

    def demonstration(self, times_ns: Times) -> Demonstration:
        """See `Episode.demonstration`; a policy that replays the recording asks for the times that it is judged at."""
        key = times_ns.tobytes()
        if self._remembered is None or self._remembered[0] != key:
            self._remembered = key, self._demonstrated(times_ns)
        return self._remembered[1]

    def _demonstrated(self, times_ns: Times) -> Demonstration:
        values: dict[str, Array] = {}
        known = np.zeros(len(times_ns), np.bool_)
        if self.is_demonstrated:
            values, known = self._command_aligner.commands_over(times_ns + self._shift_ns)
        for group, width in self._widths.items():
            if width and group not in values:
                values[group] = np.full((len(times_ns), width), np.nan)
        return Demonstration(values, known)

    def instruction(self, default: str) -> str:
        """See `Episode.instruction`: bags carry none."""
        return default

    def messages(self) -> dict[str, int]:
        """See `Episode.messages`."""
        return {name: health.received for name, health in self._aligner.health.items()}

    def _take_next(self, waiting: deque[tuple[int, str, BagMessage]], now_ns: int | None) -> Generator[int, None, int]:
        received_ns, topic, message = waiting.popleft()
        if received_ns != now_ns:
            yield received_ns
        _take(self._intake, topic, message, received_ns)
        yield received_ns
        return received_ns

    def _begin(self) -> None:
        self._remembered = None
        self._aligner = Aligner(self._contract, *self._histories)
        self._intake = Intake(self._contract, self._aligner)
        rows = math.ceil((self._ahead_ns + self._shift_ns) / self._contract.period_ns)
        back = (-2 * rows, 0)  # those that were played and those that are read ahead
        self._command_aligner = Aligner(self._recorded, state_history=back, with_commands=True)
        self._commands = Intake(self._recorded, self._command_aligner, states=False, commands=True)


def absolute(topic: str) -> str:
    """A topic as bags write it."""
    return topic if topic.startswith("/") else f"/{topic}"


def _recorded_actions(contract: Contract) -> tuple[Contract, int]:
    """The contract whose ``record`` says where the actions come from, and how far in the future they lie (ns)."""
    from_state = contract.record.action_from_state
    if contract.record.groups or from_state is None:
        return contract, 0
    groups = {}
    for group, action in contract.actions.items():
        sources = contract.state.get(action.state or group, ())
        if sources and contract.state_dimensions(action.state or group) == contract.action_dimensions(group):
            groups[group] = sources
    if len(groups) != len([group for group in contract.actions if contract.action_dimensions(group)]):
        return contract, 0
    record = Record(groups=groups)
    return contract.model_copy(update={"record": record}), from_state.shift_rows * contract.period_ns


def _take(intake: Intake, topic: str, message: BagMessage, received_ns: int) -> None:
    try:
        content = message.message()
    except DatasetError as error:
        intake.refuse(topic, str(error), received_ns)
        return
    intake.take(topic, content, received_ns)


def check_topics(bag: Bag, intake: Intake) -> None:
    """Refuse a bag that lacks a topic of the contract.

    Raises:
        DatasetError: It is absent, or of another type.

    """
    for topic in intake.topics.values():
        name = absolute(topic.name)
        found = bag.topics.get(name)
        if found is None:
            if topic.is_static:
                continue
            alike = difflib.get_close_matches(name, bag.topics, n=3, cutoff=0.5)
            hint = f" (similar: {', '.join(alike)})" if alike else ""
            msg = (
                f"{bag.path} has no topic {name}, which the contract names{hint}; it has "
                f"{', '.join(sorted(bag.topics)) or 'none'}"
            )
            raise DatasetError(msg)
        if found != topic.type:
            msg = f"{bag.path}: {name} is of the type {found}, but the contract says {topic.type}"
            raise DatasetError(msg)
