"""Sums of the errors of chunks against what was demonstrated, by row of the horizon and by dimension."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from groot_ros.evaluation.columns import ActionColumns

Array = NDArray[np.float64]


class ErrorsByRow:
    """Adds up errors; what is not known on one of the two sides does not count.

    Args:
        columns: The action dimensions.
        horizon: Rows of a chunk.

    """

    def __init__(self, columns: ActionColumns, horizon: int) -> None:
        self.columns = columns
        shape = (horizon, columns.width)
        self.count = np.zeros(shape, np.int64)
        self.absolute = np.zeros(shape)
        self.squared = np.zeros(shape)
        self.agreeing = np.zeros(shape, np.int64)

    def add(self, predicted: Array, demonstrated: Array, levels: Array) -> None:
        """Add chunks.

        Args:
            predicted: ``(N, H, width)``.
            demonstrated: The same rows as they were demonstrated; NaN where nothing is known.
            levels: Value between open and closed of each gripper ``(width,)``, NaN elsewhere.

        """
        error = self.columns.difference(predicted, demonstrated)
        known = np.isfinite(error)
        error = np.where(known, error, 0.0)
        self.count += known.sum(axis=0)
        self.absolute = _added(self.absolute, np.abs(error))
        self.squared = _added(self.squared, error**2)
        self.agreeing += (known & ((predicted > levels) == (demonstrated > levels))).sum(axis=0)

    def merge(self, other: ErrorsByRow) -> None:
        """Add what another one has added up."""
        self.count += other.count
        self.absolute += other.absolute
        self.squared += other.squared
        self.agreeing += other.agreeing


def _added(sums: Array, more: Array) -> Array:
    """One chunk after the other is added, so that the sum does not depend on how many come at a time."""
    total: Array = np.add.reduce(np.concatenate([sums[np.newaxis], more]), axis=0)
    return total


def mean(sums: Array, counts: NDArray[np.int64]) -> float | None:
    """The mean of all that counts; None where nothing does."""
    count = int(counts.sum())
    return float(sums.sum()) / count if count else None
