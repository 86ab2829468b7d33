"""How long inference takes, and so when the next one must begin and how many rows it will find already executed."""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import deque

from groot_ros.observation import NANOSECONDS_PER_SECOND


class LatencyWindow:
    """A high percentile of the last latencies, from an observation's stamp to its chunk's arrival; warm-up left out.

    The first predictions compile and allocate: they say nothing about the next one. A window instead of a maximum lets
    one slow prediction be forgotten.
    """

    def __init__(self, *, size: int = 50, percentile: float = 95.0, warm_up: int = 1) -> None:
        self._latencies_ns: deque[int] = deque(maxlen=size)
        self._sorted_ns: list[int] = []
        self._percentile = percentile
        self._warm_up = warm_up
        self._seen = 0
        self._latency_ns = 0

    def add(self, latency_ns: int) -> None:
        """Note one latency; the first ``warm_up`` ones after the start are not kept."""
        self._seen += 1
        if self._seen <= self._warm_up or latency_ns < 0:
            return
        if len(self._latencies_ns) == self._latencies_ns.maxlen:
            del self._sorted_ns[bisect_left(self._sorted_ns, self._latencies_ns[0])]
        self._latencies_ns.append(latency_ns)
        insort(self._sorted_ns, latency_ns)
        # Reckoned here and not where it is read, since it is read a hundred times a second.
        position = (len(self._sorted_ns) - 1) * (self._percentile / 100.0)
        before, after = (self._sorted_ns[row] for row in (math.floor(position), math.ceil(position)))
        self._latency_ns = math.ceil(before + (position - math.floor(position)) * (after - before))

    @property
    def known(self) -> bool:
        """Whether a latency has been measured since the warm-up."""
        return bool(self._latencies_ns)

    @property
    def latency_ns(self) -> int:
        """The percentile over the window; 0 while nothing has been measured."""
        return self._latency_ns

    def whole_rows(self, period_s: float) -> int:
        """Whole rows that pass during one latency."""
        return int(self.latency_ns // (period_s * NANOSECONDS_PER_SECOND))


def expired_sentence(latency_ns: int, rows: int, period_s: float) -> str | None:
    """What is wrong when no row of a chunk is left at its arrival, with both figures; None when some are.

    Args:
        latency_ns: From the observation to the arrival of the chunk.
        rows: Rows of the chunk.
        period_s: Time between two rows, seconds.

    """
    last_ns = round((rows - 1) * period_s * NANOSECONDS_PER_SECOND)
    if latency_ns < last_ns:
        return None
    return (
        f"the chunk has run out before it arrives: latency {latency_ns / NANOSECONDS_PER_SECOND:.2f} s, "
        f"chunk covers {rows * period_s:.2f} s (its last row is due after {last_ns / NANOSECONDS_PER_SECOND:.2f} s); "
        "use a longer horizon, a faster device or mode: synchronous"
    )
