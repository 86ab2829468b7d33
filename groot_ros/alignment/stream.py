"""One stream in time: which of its messages count, and what is wrong with the others."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Generic, TypeVar

from groot_ros.alignment.not_ready import NotReady, Reason
from groot_ros.alignment.ring import StampedRing
from groot_ros.contract.timing import Alignment, StreamTiming, nanoseconds

T = TypeVar("T")

DISORDER_WINDOW_NS = 1_000_000_000
DISORDERED_MESSAGES = 3
"""So many messages out of order within the window make a stream unusable; fewer are dropped and counted."""
JUMP_NS = 200_000_000
"""Several messages in a row that are older than the newest by more than this: the stream's clock went back."""


@dataclass
class StreamHealth:
    """What a stream has done since the last reset; for diagnostics.

    Attributes:
        received: Messages that came.
        accepted: Messages that count.
        bad_messages: Could not be read.
        zero_stamps: Had a stamp of zero.
        future_stamps: Lay further ahead of now than is allowed.
        duplicate_stamps: Had the stamp of the message before.
        late_stamps: Had a stamp before that of the message before.
        clock_jumps: Times that the stream's clock went back for good.
        longest_lead_ns: Furthest that an accepted stamp lay ahead of now.
        longest_gap_ns: Longest interval between two accepted stamps.
        newest_stamp_ns: Stamp of the newest message that counts, with the contract's offset.
        newest_received_ns: When a message came last, whether it counts or not.

    """

    received: int = 0
    accepted: int = 0
    bad_messages: int = 0
    zero_stamps: int = 0
    future_stamps: int = 0
    duplicate_stamps: int = 0
    late_stamps: int = 0
    clock_jumps: int = 0
    longest_lead_ns: int = 0
    longest_gap_ns: int = 0
    newest_stamp_ns: int | None = None
    newest_received_ns: int | None = None


class Stream(Generic[T]):
    """The messages of one topic that count, in the order of their stamps.

    Args:
        name: Its full name, as ``video.front``.
        topic: Where it comes from, for sentences.
        timing: Which stamp counts, and its offset.
        ring: Where the messages are kept.
        alignment: How old its newest message may be, and how far ahead of now.

    """

    def __init__(
        self,
        name: str,
        topic: str,
        timing: StreamTiming,
        ring: StampedRing[T],
        alignment: Alignment,
    ) -> None:
        self.name = name
        self.topic = topic
        self.ring = ring
        self.health = StreamHealth()
        self._stamp = timing.stamp
        self._offset_ns = timing.offset_ns
        self.max_age_ns = alignment.max_age_ns(timing)
        self._max_future_ns = nanoseconds(alignment.max_future_s)
        self._fault: NotReady | None = None  # of the newest message, None where it counted
        self._disorder: deque[int] = deque(maxlen=DISORDERED_MESSAGES)
        self._jump: list[int] = []  # stamps of the messages that may be the first after a jump back

    def add(self, header_ns: int | None, value: T, received_ns: int) -> bool:
        """Take a message; whether it counts.

        Args:
            header_ns: Stamp of its header, nanoseconds; None where its type has no header.
            value: What it says.
            received_ns: When it came, nanoseconds of the same clock as now.

        """
        health = self.health
        health.received += 1
        health.newest_received_ns = received_ns
        if self._stamp == "receipt" or (header_ns is None and self._stamp is None):
            stamp_ns = received_ns
        elif not header_ns:
            return self._refuse_zero(header_ns)
        else:
            stamp_ns = header_ns
        stamp_ns += self._offset_ns
        lead_ns = stamp_ns - received_ns
        if lead_ns > self._max_future_ns:
            return self._refuse_future(lead_ns)
        newest_ns = self.ring.newest_ns
        if newest_ns is not None and stamp_ns <= newest_ns and not self._has_jumped(stamp_ns, newest_ns, received_ns):
            return False
        newest_ns = self.ring.newest_ns  # none, where the clock has jumped
        if newest_ns is not None:
            health.longest_gap_ns = max(health.longest_gap_ns, stamp_ns - newest_ns)
        self.ring.append(stamp_ns, value)
        self._fault = None
        self._jump.clear()
        health.accepted += 1
        health.longest_lead_ns = max(health.longest_lead_ns, lead_ns)
        health.newest_stamp_ns = stamp_ns
        return True

    def refuse(self, sentence: str, received_ns: int) -> None:
        """Take note of a message that could not be read."""
        self.health.received += 1
        self.health.newest_received_ns = received_ns
        self.health.bad_messages += 1
        self._fault = NotReady(Reason.BAD_MESSAGE, self.name, sentence)

    def not_ready(self, now_ns: int) -> NotReady | None:
        """What is wrong with the stream now; None where it is fresh and in order."""
        newest_ns = self.ring.newest_ns
        if newest_ns is None:
            if self._fault is not None:
                return self._fault
            return NotReady(Reason.MISSING, self.name, f"{self.name}: no message has come yet on {self.topic}")
        if self.max_age_ns is not None and now_ns - newest_ns > self.max_age_ns:
            if self._fault is not None:
                return self._fault
            age = f"{seconds(now_ns - newest_ns)} s old, allowed are {seconds(self.max_age_ns)} s"
            return NotReady(Reason.STALE, self.name, f"{self.name}: the newest message on {self.topic} is {age}")
        if len(self._disorder) == DISORDERED_MESSAGES and now_ns - self._disorder[0] <= DISORDER_WINDOW_NS:
            return self._out_of_order()
        return None

    def begin_anew(self) -> None:
        """Forget the messages before a new episode; a stream that speaks only of changes keeps its last value."""
        if self.max_age_ns is None:
            self.ring.keep_newest()
        else:
            self.clear()

    def clear(self) -> None:
        """Forget the messages and what was wrong with them; the counters go on."""
        self.ring.clear()
        self._fault = None
        self._disorder.clear()
        self._jump.clear()
        self.health.newest_stamp_ns = None

    def _refuse_zero(self, header_ns: int | None) -> bool:
        self.health.zero_stamps += 1
        found = "no header" if header_ns is None else "a stamp of zero"
        sentence = (
            f"{self.name}: messages on {self.topic} have {found}; let the driver fill it in, or write stamp: receipt "
            f"for this stream in alignment.streams"
        )
        self._fault = NotReady(Reason.ZERO_STAMP, self.name, sentence)
        return False

    def _refuse_future(self, lead_ns: int) -> bool:
        self.health.future_stamps += 1
        sentence = (
            f"{self.name}: a message on {self.topic} is stamped {seconds(lead_ns)} s ahead of now, allowed are "
            f"{seconds(self._max_future_ns)} s; synchronise the clocks of the machines"
        )
        self._fault = NotReady(Reason.FUTURE_STAMP, self.name, sentence)
        return False

    def _has_jumped(self, stamp_ns: int, newest_ns: int, received_ns: int) -> bool:
        """Count a message out of order; true where it is the third in a row of a clock that went back for good."""
        if stamp_ns == newest_ns:
            self.health.duplicate_stamps += 1
        else:
            self.health.late_stamps += 1
        self._disorder.append(received_ns)
        self._fault = self._out_of_order()
        if newest_ns - stamp_ns <= JUMP_NS or (self._jump and stamp_ns <= self._jump[-1]):
            self._jump.clear()
            return False
        self._jump.append(stamp_ns)
        if len(self._jump) < DISORDERED_MESSAGES:
            return False
        self.health.clock_jumps += 1
        self.ring.clear()
        return True

    def _out_of_order(self) -> NotReady:
        sentence = (
            f"{self.name}: messages on {self.topic} come with stamps that repeat or go back "
            f"({self.health.duplicate_stamps} repeated, {self.health.late_stamps} went back); "
            f"is there a second publisher on this topic?"
        )
        return NotReady(Reason.OUT_OF_ORDER, self.name, sentence)


def seconds(nanoseconds: int) -> str:
    """Nanoseconds as seconds with three digits, for sentences."""
    return f"{nanoseconds / 1e9:.3f}"
