"""When the next inference must begin, and when its chunk is overdue."""

from __future__ import annotations

import math

from groot_ros.contract.timing import Motion, nanoseconds
from groot_ros.execution.latency import LatencyWindow


class Schedule:
    """One inference at a time, begun early enough for its chunk to arrive when ``execution_horizon`` rows are done.

    Attributes:
        horizon: Rows of a chunk.
        rows: Rows executed before the next chunk takes over: the contract's ``execution_horizon``; without one, all in
            synchronous mode, and half of them otherwise, so that as many rows are left to join the next chunk to.

    """

    def __init__(self, motion: Motion, period_ns: int, horizon: int, latency: LatencyWindow) -> None:
        self.horizon = horizon
        self._synchronous = motion.mode == "synchronous"
        self._period_ns = period_ns
        self._latency = latency
        self._patience_ns = nanoseconds(motion.hold_s)
        if self._synchronous:
            self.rows = min(motion.execution_horizon or horizon, horizon)
        else:
            # The last row must still be ahead when the next chunk arrives.
            self.rows = max(min(motion.execution_horizon or math.ceil(horizon / 2), horizon - 2), 0)
        self._due_ns: int | None = None
        self._started_ns: int | None = None

    def due(self, now_ns: int) -> bool:
        """Whether an inference must begin now."""
        return self._started_ns is None and (self._due_ns is None or now_ns >= self._due_ns)

    def overdue(self, now_ns: int) -> bool:
        """Whether the next chunk should have been here ``hold_s`` ago: the policy has stalled."""
        begin_ns = self._started_ns if self._started_ns is not None else self._due_ns
        if self._synchronous or begin_ns is None or not self._latency.known:
            return False
        return now_ns > begin_ns + self._latency.latency_ns + self._patience_ns

    def began(self, now_ns: int) -> None:
        """An inference begins."""
        self._started_ns = now_ns

    def ended(self) -> None:
        """An inference ended without a chunk to execute: the next is due at once."""
        self._started_ns = self._due_ns = None

    def accepted(self, chunk_stamp_ns: int, now_ns: int) -> None:
        """A chunk was taken into the plan."""
        self._started_ns = None
        if self._synchronous:
            self._due_ns = now_ns + self.rows * self._period_ns
        else:
            self._due_ns = chunk_stamp_ns + self.rows * self._period_ns - self._latency.latency_ns

    def plan_lost(self) -> None:
        """There is nothing to execute any more; an inference that runs is still welcome."""
        self._due_ns = None

    def reset(self) -> None:
        """An inference that runs is worthless; the next is due at once."""
        self._started_ns = self._due_ns = None
