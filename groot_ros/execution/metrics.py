"""How well a motion went, in the numbers that the node, the replay and the benchmark share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from groot_ros.execution.columns import Array

HIGH_FREQUENCY_HZ = 3.0
"""Arms that are led by hand move below this; what lies above is jitter."""


def seam_jumps(executed: Array, seams: NDArray[np.intp]) -> Array:
    """The largest step of any dimension at each seam: ``|first row of a chunk - last row sent before|``.

    Args:
        executed: Rows as sent ``(N, J)``, at the row rate.
        seams: Indices ``(K,)`` of the first rows of chunks; one that is 0 has nothing before it and is left out.

    Returns:
        ``(K,)``, in the units of ``executed``.

    """
    first = np.asarray(seams, dtype=np.intp)
    first = first[first > 0]
    if first.size == 0:
        return np.empty(0)
    jumps: Array = np.abs(executed[first] - executed[first - 1]).max(axis=1)
    return jumps


def jerk(rows: Array, period_s: float) -> float:
    """Root mean square of the third difference in time, over all rows ``(N, J)`` and dimensions, units/s³."""
    if len(rows) < 4:
        return 0.0
    return float(np.sqrt(np.mean(np.diff(rows, n=3, axis=0) ** 2))) / period_s**3


def high_frequency_share(rows: Array, period_s: float, above_hz: float = HIGH_FREQUENCY_HZ) -> float:
    """Share of the power of the velocity ``(N, J)`` that lies above a frequency; 0 for a robot that stands."""
    velocity = np.diff(rows, axis=0) / period_s
    if len(velocity) < 2:
        return 0.0
    velocity = (velocity - velocity.mean(axis=0)) * np.hanning(len(velocity))[:, None]
    power = np.sum(np.abs(np.fft.rfft(velocity, axis=0)) ** 2, axis=1)
    total = float(power.sum())
    return float(power[np.fft.rfftfreq(len(velocity), period_s) > above_hz].sum()) / total if total > 0 else 0.0


def idle_share(rows: Array, moving: Array) -> float:
    """Share of the steps in which nothing was sent that moves, though the demonstration moves.

    Args:
        rows: Rows as sent ``(N, J)``.
        moving: Rows of the demonstration at the same times ``(N, J)``.

    """
    wanted = np.any(np.diff(moving, axis=0) != 0.0, axis=1)
    idle = np.all(np.diff(rows, axis=0) == 0.0, axis=1)
    return float(np.mean(idle[wanted])) if wanted.any() else 0.0


def tracking_error(rows: Array, wanted: Array, value_range: Array) -> float:
    """Root mean square distance of rows ``(N, J)`` from the wanted ones, as a share of each dimension's range."""
    return float(np.sqrt(np.mean(((rows - wanted) / value_range) ** 2)))


@dataclass(frozen=True)
class MotionReport:
    """One executed motion against its demonstration.

    Attributes:
        seam_p95: 95th percentile of the seam jumps, share of the range.
        seam_max: Largest seam jump, share of the range.
        jerk_ratio: Jerk of what was executed, by that of the demonstration.
        high_frequency: Share of the power of the velocity above 3 Hz.
        idle: Share of the time in which the robot waited.
        tracking: Root mean square distance from the demonstration, share of the range.
        holds: How often it was held.
        clips: Commands that a limit changed.

    """

    seam_p95: float
    seam_max: float
    jerk_ratio: float
    high_frequency: float
    idle: float
    tracking: float
    holds: int
    clips: int


def motion_report(
    executed: Array,
    demonstration: Array,
    seams: NDArray[np.intp],
    period_s: float,
    *,
    holds: int = 0,
    clips: int = 0,
) -> MotionReport:
    """Sum up a motion.

    Args:
        executed: Rows as sent ``(N, J)``, at the row rate.
        demonstration: What should have been sent at the same times ``(N, J)``; its range is the unit of distances.
        seams: Indices of the first rows of chunks.
        period_s: Time between two rows.
        holds: Holds, as the executor counts them.
        clips: Commands changed by a limit, likewise.

    """
    spread = np.ptp(demonstration, axis=0)
    value_range = np.where(spread > 0.0, spread, 1.0)
    jumps = seam_jumps(executed / value_range, seams)
    smooth = jerk(demonstration / value_range, period_s)
    return MotionReport(
        seam_p95=float(np.percentile(jumps, 95)) if jumps.size else 0.0,
        seam_max=float(jumps.max(initial=0.0)),
        jerk_ratio=jerk(executed / value_range, period_s) / smooth if smooth > 0.0 else 0.0,
        high_frequency=high_frequency_share(executed / value_range, period_s),
        idle=idle_share(executed, demonstration),
        tracking=tracking_error(executed, demonstration, value_range),
        holds=holds,
        clips=clips,
    )
