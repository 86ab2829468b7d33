"""What no command may exceed, and the arithmetic that keeps commands within it and counts how often it had to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from groot_ros.execution.columns import Array, Columns
from groot_ros.observation import NANOSECONDS_PER_SECOND


@dataclass(frozen=True)
class ColumnLimits:
    """Limits of an output's columns in the robot's units; infinity where there is none.

    Attributes:
        lower: Lowest value ``(J,)``; for a pose the corner of the workspace.
        upper: Highest value ``(J,)``.
        rate: Fastest change ``(J,)``, units per second; for a pose see ``linear_rate`` and ``angular_rate``.
        linear_rate: Fastest motion of a pose's origin, m/s.
        angular_rate: Fastest turn of a pose, rad/s.

    """

    lower: Array
    upper: Array
    rate: Array
    linear_rate: float = np.inf
    angular_rate: float = np.inf

    @classmethod
    def none(cls, width: int) -> ColumnLimits:
        """No limit for any of ``width`` columns."""
        return cls(np.full(width, -np.inf), np.full(width, np.inf), np.full(width, np.inf))


@dataclass(frozen=True)
class Limited:
    """Rows within their limits.

    Attributes:
        rows: ``(N, J)``.
        clipped: Which entries a position limit changed, bool ``(N, J)``.
        slowed: Which entries a rate limit changed, bool ``(N, J)``.

    """

    rows: Array
    clipped: NDArray[np.bool_]
    slowed: NDArray[np.bool_]


def limit_rows(
    columns: Columns,
    limits: ColumnLimits,
    times_ns: NDArray[np.int64],
    rows: Array,
    *,
    previous: Array | None,
    previous_ns: int,
) -> Limited:
    """Bring rows within position limits, then within what can be reached from the row before in the time between.

    Args:
        columns: What the columns are.
        limits: Their limits.
        times_ns: Times of the rows ``(N,)``, increasing.
        rows: Wanted values ``(N, J)``.
        previous: The command before the first row ``(J,)``; None when there is none (then the first row is free).
        previous_ns: When it was given.

    """
    clamped = np.clip(rows, limits.lower, limits.upper)
    clipped = clamped != rows
    result = clamped.copy()
    for index, time_ns in enumerate(times_ns):
        if previous is not None:
            step = max(int(time_ns) - previous_ns, 0) / NANOSECONDS_PER_SECOND
            result[index] = _reachable(columns, limits, previous, clamped[index], step)
        previous, previous_ns = result[index], int(time_ns)
    return Limited(result, clipped, result != clamped)


def _reachable(columns: Columns, limits: ColumnLimits, start: Array, target: Array, seconds: float) -> Array:
    """The target, or the furthest point on the way to it that the rates allow."""
    change = columns.difference(start[None], target[None])[0]
    reach = limits.rate * seconds if seconds > 0 else np.where(np.isfinite(limits.rate), 0.0, np.inf)
    reached = np.where(np.abs(change) <= reach, target, start + np.clip(change, -reach, reach))
    return reached
