"""Rows of numbers that grow in number, in memory of their own size: hours of rows fit."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

BLOCK = 4096


class RowTable:
    """Rows ``(N, width)`` float64 with a stamp each, in blocks: none is ever moved.

    Args:
        width: Numbers in a row.

    """

    def __init__(self, width: int) -> None:
        self._width = width
        self._stamps: list[NDArray[np.int64]] = []
        self._rows: list[NDArray[np.float64]] = []
        self._count = 0

    def __len__(self) -> int:
        """How many rows there are."""
        return self._count

    def add(self, stamps_ns: NDArray[np.int64], rows: NDArray[np.float64]) -> None:
        """Add rows ``(N, width)`` with their stamps ``(N,)``."""
        added = 0
        while added < len(rows):
            place = self._count % BLOCK
            if place == 0:
                self._stamps.append(np.empty(BLOCK, np.int64))
                self._rows.append(np.empty((BLOCK, self._width)))
            count = min(len(rows) - added, BLOCK - place)
            self._stamps[-1][place : place + count] = stamps_ns[added : added + count]
            self._rows[-1][place : place + count] = rows[added : added + count]
            self._count += count
            added += count

    @property
    def stamps_ns(self) -> NDArray[np.int64]:
        """The stamps ``(N,)``."""
        return np.concatenate([np.empty(0, np.int64), *self._stamps])[: self._count]

    @property
    def rows(self) -> NDArray[np.float64]:
        """The rows ``(N, width)``."""
        return np.concatenate([np.empty((0, self._width)), *self._rows])[: self._count]
