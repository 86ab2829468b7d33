"""The health of one recorded stream, from its bytes alone: rate, lag, gaps, and stamps that go wrong."""

from __future__ import annotations

import struct
from dataclasses import dataclass

NANOSECONDS_PER_SECOND = 1_000_000_000
SETTLED = 10
"""Intervals after which the usual interval is known."""
LOST_FACTOR = 2.5
"""An interval so many times the usual one says that messages are missing."""
SMOOTHING = 0.1

_LITTLE, _BIG = struct.Struct("<iI"), struct.Struct(">iI")


def header_stamp_ns(data: bytes) -> int:
    """The stamp of a serialised message that begins with a Header, nanoseconds."""
    seconds, nanoseconds = (_LITTLE if data[1] & 1 else _BIG).unpack_from(data, 4)
    return int(seconds) * NANOSECONDS_PER_SECOND + int(nanoseconds)


@dataclass(frozen=True)
class Gap:
    """A camera was silent for too long.

    Attributes:
        topic: Its topic.
        start_ns: Stamp of the last frame before, nanoseconds.
        length_ns: Until the next frame, or until the episode ended.

    """

    topic: str
    start_ns: int
    length_ns: int


class StreamWatch:
    """Follows one stream. Counters run from `begin`; rate and lag always.

    Args:
        topic: Its topic.
        stamped: Whether its messages begin with a Header; else the time of arrival counts.
        max_gap_ns: Longest interval that is no gap; None where gaps are not marked.

    """

    def __init__(self, topic: str, *, stamped: bool, max_gap_ns: int | None) -> None:
        self.topic = topic
        self.newest_received_ns: int | None = None
        self.lag_ns = 0
        self.received = 0
        self.missing = 0
        self.out_of_order = 0
        self.longest_ns = 0
        self.gaps: list[Gap] = []
        self._stamped = stamped
        self._max_gap_ns = max_gap_ns
        self._stamp_ns: int | None = None
        self._usual_ns = 0.0
        self._intervals = 0
        self._usual_bytes = 0.0

    @property
    def rate_hz(self) -> float:
        """Messages a second, lately."""
        return NANOSECONDS_PER_SECOND / self._usual_ns if self._usual_ns else 0.0

    @property
    def bytes_per_s(self) -> float:
        """Bytes a second, lately."""
        return self.rate_hz * self._usual_bytes

    def hear(self, data: bytes, received_ns: int) -> Gap | None:
        """Take note of a message; the gap that it ends, where it ends one."""
        stamp_ns = header_stamp_ns(data) if self._stamped else received_ns
        before_ns, self._stamp_ns = self._stamp_ns, stamp_ns
        self.newest_received_ns = received_ns
        self.lag_ns = received_ns - stamp_ns
        self.received += 1
        self._usual_bytes += (SMOOTHING if self._usual_bytes else 1.0) * (len(data) - self._usual_bytes)
        if before_ns is None:
            return None
        interval_ns = stamp_ns - before_ns
        if interval_ns <= 0:
            self.out_of_order += 1
            return None
        self.longest_ns = max(self.longest_ns, interval_ns)
        if self._intervals >= SETTLED and interval_ns > LOST_FACTOR * self._usual_ns:
            self.missing += round(interval_ns / self._usual_ns) - 1
        else:
            weight = max(SMOOTHING, 1 / (self._intervals + 1))
            self._usual_ns += weight * (interval_ns - self._usual_ns)
            self._intervals += 1
        if self._max_gap_ns is None or interval_ns <= self._max_gap_ns:
            return None
        gap = Gap(self.topic, before_ns, interval_ns)
        self.gaps.append(gap)
        return gap

    def begin(self) -> None:
        """An episode begins: count anew."""
        self.received = self.missing = self.out_of_order = self.longest_ns = 0
        self.gaps = []

    def end(self, now_ns: int) -> None:
        """An episode ends: a stream that has been silent until now has a gap too."""
        if self._max_gap_ns is None or self.newest_received_ns is None or self._stamp_ns is None:
            return
        silent_ns = now_ns - self.newest_received_ns
        if silent_ns > self._max_gap_ns:
            self.gaps.append(Gap(self.topic, self._stamp_ns, silent_ns))

    def forget(self) -> None:
        """The clock went back: nothing before counts."""
        self._stamp_ns = self.newest_received_ns = None
        self._usual_ns, self._intervals = 0.0, 0
