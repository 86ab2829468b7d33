"""Head and tail of an episode in which nothing is commanded: a policy that learns them learns to wait."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

STILL = 0.01
"""A dimension stands still while it stays within this share of the largest range in its group, in the episode."""


def idle_ends(actions: Mapping[str, NDArray[np.float64]], margin: int) -> tuple[int, int]:
    """The rows to keep, as first and end (exclusive); none where nothing ever moves.

    Args:
        actions: Commanded values by group, ``(N, D)``, at least one row. The joints of a group have one unit: beside
            one that moves, the jitter of another is none.
        margin: Idle rows to keep on both sides.

    """
    moved_from_first, moved_to_last = (
        np.flatnonzero(np.any([_is_away(values, row) for values in actions.values()], axis=0)) for row in (0, -1)
    )
    if not len(moved_from_first) or not len(moved_to_last):
        return 0, 0
    count = len(next(iter(actions.values())))
    return max(0, int(moved_from_first[0]) - margin), min(count, int(moved_to_last[-1]) + 1 + margin)


def _is_away(values: NDArray[np.float64], row: int) -> NDArray[np.bool_]:
    """Whether a group is elsewhere than in a row, ``(N,)``."""
    tolerance = STILL * np.ptp(values, axis=0).max(initial=0.0)
    away: NDArray[np.bool_] = (np.abs(values - values[row]) > tolerance).any(axis=1)
    return away
