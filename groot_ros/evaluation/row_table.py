"""Rows of numbers that grow in number, in memory of their own size: hours of rows fit."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


class RowTable:
    """Rows ``(N, width)`` float64 with a stamp each.

    Args:
        width: Numbers in a row.

    """

    def __init__(self, width: int) -> None:
        self._stamps = np.empty(64, np.int64)
        self._rows = np.empty((64, width))
        self._count = 0

    def __len__(self) -> int:
        """How many rows there are."""
        return self._count

    def add(self, stamp_ns: int, row: NDArray[np.float64]) -> None:
        """Add a row ``(width,)``."""
        if self._count == len(self._stamps):
            self._stamps = np.resize(self._stamps, 2 * self._count)
            self._rows = np.resize(self._rows, (2 * self._count, self._rows.shape[1]))
        self._stamps[self._count] = stamp_ns
        self._rows[self._count] = row
        self._count += 1

    @property
    def stamps_ns(self) -> NDArray[np.int64]:
        """The stamps ``(N,)``; a view."""
        return self._stamps[: self._count]

    @property
    def rows(self) -> NDArray[np.float64]:
        """The rows ``(N, width)``; a view."""
        return self._rows[: self._count]
