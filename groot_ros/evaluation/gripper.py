"""Whether and when a gripper opens and closes as demonstrated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FURTHEST_S = 1.0
"""A change that comes earlier or later by more is another one."""


@dataclass(frozen=True)
class GripperTiming:
    """The changes of one gripper in one episode.

    Attributes:
        delays_s: Of each demonstrated change that was executed, by how much later (negative: earlier), seconds.
        missed: Demonstrated changes that were not executed.
        extra: Executed changes that were not demonstrated.

    """

    delays_s: tuple[float, ...]
    missed: int
    extra: int


def gripper_timing(
    stamps_ns: NDArray[np.int64], executed: NDArray[np.float64], demonstrated: NDArray[np.float64], level: float
) -> GripperTiming:
    """Pair the changes of what was executed ``(N,)`` with those that were demonstrated ``(N,)``, nearest first.

    Args:
        stamps_ns: Times of the rows ``(N,)``.
        executed: What was sent; NaN where nothing was.
        demonstrated: What was demonstrated; NaN where it is not known.
        level: The value between open and closed.

    """
    known = np.isfinite(executed) & np.isfinite(demonstrated)
    stamps = stamps_ns[known]
    changes = [_changes(stamps, values[known] > level) for values in (demonstrated, executed)]
    wanted, done = changes
    pairs = sorted(
        (abs(done_ns - wanted_ns), first, second)
        for first, (wanted_ns, direction) in enumerate(wanted)
        for second, (done_ns, done_direction) in enumerate(done)
        if direction == done_direction and abs(done_ns - wanted_ns) <= FURTHEST_S * 1e9
    )
    used_wanted: set[int] = set()
    used_done: set[int] = set()
    delays = []
    for _, first, second in pairs:
        if first not in used_wanted and second not in used_done:
            used_wanted.add(first)
            used_done.add(second)
            delays.append((done[second][0] - wanted[first][0]) / 1e9)
    return GripperTiming(tuple(delays), len(wanted) - len(used_wanted), len(done) - len(used_done))


def _changes(stamps_ns: NDArray[np.int64], high: NDArray[np.bool_]) -> list[tuple[int, bool]]:
    """Time and direction of each change."""
    rows = np.flatnonzero(np.diff(high.astype(np.int8))) + 1
    return [(int(stamps_ns[row]), bool(high[row])) for row in rows]
