"""Stamped values in the order of time, as many as a span needs: cheap to add to, searched by bisection."""

from __future__ import annotations

from bisect import bisect_left
from typing import Generic, TypeVar

T = TypeVar("T")


class StampedRing(Generic[T]):
    """Values with strictly rising stamps; what the last ``span_ns`` before the newest do not need is let go.

    The last value before the span is kept, since it holds at the span's beginning.

    Args:
        span_ns: How far back values are kept, nanoseconds.
        most: Most values kept, however dense they come.

    """

    def __init__(self, span_ns: int, most: int) -> None:
        self._span_ns = span_ns
        self._most = most
        self._stamps: list[int] = []
        self._values: list[T] = []
        self._start = 0  # what lies before is let go, and cut off now and then
        self.has_let_go = False

    def __len__(self) -> int:
        """How many values are kept."""
        return len(self._stamps) - self._start

    @property
    def newest_ns(self) -> int | None:
        """The newest stamp; None where there is none."""
        return self._stamps[-1] if self._stamps else None

    def append(self, stamp_ns: int, value: T) -> None:
        """Add a value that is newer than all others; O(1) on average."""
        self._stamps.append(stamp_ns)
        self._values.append(value)
        oldest_ns, last, start = stamp_ns - self._span_ns, len(self._stamps) - 1, self._start
        while start < last and (self._stamps[start + 1] <= oldest_ns or last - start >= self._most):
            self._values[start] = None  # type: ignore[assignment]  # frames are large
            start += 1
            self.has_let_go = True
        self._start = start
        if 2 * self._start > len(self._stamps):
            del self._stamps[: self._start], self._values[: self._start]
            self._start = 0

    def keep_newest(self) -> None:
        """Forget everything but the newest value."""
        self._stamps, self._values = self._stamps[-1:], self._values[-1:]
        self._start, self.has_let_go = 0, False

    def clear(self) -> None:
        """Forget everything."""
        self._stamps, self._values, self._start, self.has_let_go = [], [], 0, False

    def stamp(self, index: int) -> int:
        """The stamp of the value ``index``, 0 for the oldest, -1 for the newest."""
        return self._stamps[self._start + index if index >= 0 else index]

    def value(self, index: int) -> T:
        """The value ``index``, 0 for the oldest, -1 for the newest."""
        return self._values[self._start + index if index >= 0 else index]

    def at_or_after(self, stamp_ns: int) -> int:
        """Index of the first value at or after a time; the length where there is none."""
        return bisect_left(self._stamps, stamp_ns, lo=self._start) - self._start

    def between(self, first_ns: int, last_ns: int) -> tuple[list[int], list[T]]:
        """Stamps and values from the last one before a time to the first one at or after a later time."""
        start = max(bisect_left(self._stamps, first_ns, lo=self._start) - 1, self._start)
        end = bisect_left(self._stamps, last_ns, lo=start) + 1
        return self._stamps[start:end], self._values[start:end]

    def nearest(self, stamp_ns: int) -> int:
        """Index of the value nearest in time, the older one of two that are as near; the ring is not empty."""
        after = self.at_or_after(stamp_ns)
        if after == 0:
            return 0
        if after == len(self):
            return after - 1
        is_before_nearer = stamp_ns - self.stamp(after - 1) <= self.stamp(after) - stamp_ns
        return after - 1 if is_before_nearer else after
