"""The columns of a plan, and how values between two rows are found: each kind of column in its own way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from groot_ros.contract.actions import DimensionKind
from groot_ros.numerics.rotations import slerp_quaternion

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Columns:
    """Names and kinds of columns.

    Attributes:
        names: One for each column.
        kinds: Continuous: as a number; wrapped: by the shortest arc; binary: never between its two values; rotation:
            one of four neighbours that make a quaternion x, y, z, w.
        periods: Length of a full turn of a wrapped column in its unit; infinity elsewhere.

    """

    names: tuple[str, ...]
    kinds: tuple[DimensionKind, ...]
    periods: tuple[float, ...]

    @cached_property
    def binary(self) -> NDArray[np.intp]:
        """Indices of the columns with two values."""
        return np.flatnonzero([kind is DimensionKind.BINARY for kind in self.kinds])

    @cached_property
    def averageable(self) -> NDArray[np.intp]:
        """Indices of the columns whose values may be averaged as numbers: continuous and wrapped ones."""
        return np.flatnonzero([kind in {DimensionKind.CONTINUOUS, DimensionKind.WRAPPED} for kind in self.kinds])

    @cached_property
    def quaternions(self) -> tuple[slice, ...]:
        """The four columns of each rotation."""
        rotation = np.flatnonzero([kind is DimensionKind.ROTATION for kind in self.kinds])
        return tuple(slice(int(first), int(first) + 4) for first in rotation[::4])

    @cached_property
    def _wrapped(self) -> NDArray[np.intp]:
        return np.flatnonzero(np.isfinite(self.periods))

    def select(self, indices: Sequence[int]) -> Columns:
        """Some of the columns, in the order asked for."""
        return Columns(
            tuple(self.names[index] for index in indices),
            tuple(self.kinds[index] for index in indices),
            tuple(self.periods[index] for index in indices),
        )

    def difference(self, start: Array, end: Array) -> Array:
        """``end - start`` ``(..., columns)``, by the shortest arc where a column wraps."""
        change: Array = end - start
        wrapped = self._wrapped
        if wrapped.size:
            period = np.array(self.periods)[wrapped]
            change[..., wrapped] -= period * np.round(change[..., wrapped] / period)
        return change

    def between(self, start: Array, end: Array, weight: float) -> Array:
        """One row between two ``(columns,)``: `mix` for what is asked for a hundred times a second."""
        if weight == 1.0:
            return end.copy()
        mixed: Array = start + weight * self.difference(start, end)
        mixed[self.binary] = start[self.binary]
        if self.quaternions:
            mixed = self.mix(start[np.newaxis], end[np.newaxis], weight)[0]
        return mixed

    def mix(self, start: Array, end: Array, weight: Array | float) -> Array:
        """Rows between ``start`` and ``end``.

        Args:
            start: ``(N, columns)``.
            end: ``(N, columns)``.
            weight: ``(N,)`` or a number, 0 for ``start``, 1 for ``end``. Binary columns are those of ``start`` below
                weight 1.

        """
        weights = np.broadcast_to(np.asarray(weight, dtype=np.float64), start.shape[:1])
        mixed = start + weights[:, None] * self.difference(start, end)
        for columns in self.quaternions:
            mixed[:, columns] = slerp_quaternion(start[:, columns], end[:, columns], weights)
        mixed[:, self.binary] = start[:, self.binary]
        mixed[weights == 1.0] = end[weights == 1.0]
        return mixed
