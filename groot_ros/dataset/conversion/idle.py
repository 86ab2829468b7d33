"""Head and tail of an episode in which nothing is commanded: a policy that learns them learns to wait."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

STILL = 0.01
"""A dimension stands still while it stays within this share of its range in the episode."""


def idle_ends(actions: NDArray[np.float64], margin: int) -> tuple[int, int]:
    """The rows to keep, as first and end (exclusive); none where nothing ever moves.

    Args:
        actions: Commanded values, ``(N, D)``.
        margin: Idle rows to keep on both sides.

    """
    tolerance = STILL * np.ptp(actions, axis=0)
    moved_from_first = np.flatnonzero((np.abs(actions - actions[0]) > tolerance).any(axis=1))
    moved_to_last = np.flatnonzero((np.abs(actions - actions[-1]) > tolerance).any(axis=1))
    if not len(moved_from_first) or not len(moved_to_last):
        return 0, 0
    return max(0, int(moved_from_first[0]) - margin), min(len(actions), int(moved_to_last[-1]) + 1 + margin)
