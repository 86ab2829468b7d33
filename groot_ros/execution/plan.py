"""The plan: what the robot is to do at each time, as rows over integer nanoseconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from groot_ros.execution.columns import Array, Columns
from groot_ros.execution.layout import PlanLayout
from groot_ros.observation import NANOSECONDS_PER_SECOND, ActionChunk


@dataclass(frozen=True)
class Plan:
    """Rows in the robot's units over time; between two rows they are interpolated, each column in the way of its kind.

    Attributes:
        columns: What the columns are.
        times_ns: Times of the rows ``(N,)``, int64, strictly increasing.
        rows: Values ``(N, columns)``.
        counts: How many predictions went into each row ``(N,)``; used by temporal ensembling.

    """

    columns: Columns
    times_ns: NDArray[np.int64]
    rows: Array
    counts: NDArray[np.int64]

    @classmethod
    def from_chunk(cls, layout: PlanLayout, chunk: ActionChunk) -> Plan:
        """The plan that a chunk alone makes: row i at ``stamp + i * period``."""
        rows = layout.rows(chunk)
        offsets = np.rint(np.arange(len(rows)) * chunk.period_s * NANOSECONDS_PER_SECOND).astype(np.int64)
        times = chunk.stamp_ns + offsets
        return cls(layout.columns, times, rows, np.ones(len(rows), dtype=np.int64))

    @property
    def start_ns(self) -> int:
        """Time of the first row."""
        return int(self.times_ns[0])

    @property
    def end_ns(self) -> int:
        """Time of the last row: the plan covers nothing after it."""
        return int(self.times_ns[-1])

    def covers(self, now_ns: int) -> bool:
        """Whether ``now_ns`` lies between the first and the last row."""
        return self.start_ns <= now_ns <= self.end_ns

    def at(self, times_ns: NDArray[np.int64] | int) -> Array:
        """Values ``(K, columns)`` at times ``(K,)``; before the first row the first, after the last row the last.

        A binary column keeps the value of the row before.
        """
        times = np.atleast_1d(np.asarray(times_ns, dtype=np.int64))
        last = len(self.times_ns) - 1
        before = np.maximum(self.times_ns.searchsorted(times, side="right") - 1, 0)
        after = np.minimum(before + 1, last)
        start = self.times_ns[before]
        span = self.times_ns[after] - start
        passed = np.maximum(times - start, 0)
        weight = np.where(span > 0, np.minimum(passed, span) / np.maximum(span, 1), 0.0)
        values = self.rows[before]
        between = weight != 0.0
        if between.any():
            values[between] = self.columns.mix(self.rows[before[between]], self.rows[after[between]], weight[between])
        return values

    def ahead(self, now_ns: int, until_ns: int | None = None) -> tuple[NDArray[np.int64], Array]:
        """Times and rows after ``now_ns``, and not after ``until_ns``: the only ones that may still be sent."""
        wanted = self.times_ns > now_ns
        if until_ns is not None:
            wanted &= self.times_ns <= until_ns
        return self.times_ns[wanted], self.rows[wanted]

    def select(self, columns: Columns, indices: Sequence[int]) -> Plan:
        """The plan of some of the columns, which `columns` describes."""
        return Plan(columns, self.times_ns, self.rows[:, list(indices)], self.counts)

    def rows_ahead(self, now_ns: int) -> int:
        """Number of rows after ``now_ns``."""
        return int(np.count_nonzero(self.times_ns > now_ns))

    def first(self, rows: int) -> Plan:
        """The plan of the first ``rows`` rows."""
        return Plan(self.columns, self.times_ns[:rows], self.rows[:rows], self.counts[:rows])

    def since(self, oldest_ns: int) -> Plan:
        """The plan without the rows that only times before ``oldest_ns`` need."""
        first = max(int(np.searchsorted(self.times_ns, oldest_ns, side="right")) - 1, 0)
        return Plan(self.columns, self.times_ns[first:], self.rows[first:], self.counts[first:])

    def splice(self, new: Plan, switch_ns: int) -> Plan:
        """This plan before ``switch_ns`` and ``new`` from then on, with a row of ``new`` at the switch itself."""
        old = int(self.times_ns.searchsorted(switch_ns))
        later = int(new.times_ns.searchsorted(switch_ns, side="right"))
        covering = max(later - 1, 0)
        return Plan(
            self.columns,
            np.concatenate([self.times_ns[:old], np.array([switch_ns], np.int64), new.times_ns[later:]]),
            np.concatenate([self.rows[:old], new.at(switch_ns), new.rows[later:]]),
            np.concatenate([self.counts[:old], new.counts[covering : covering + 1], new.counts[later:]]),
        )
