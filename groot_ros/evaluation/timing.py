"""Rows of different chunks and recordings compared at the same times."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from groot_ros.contract.actions import DimensionKind
from groot_ros.observation import NANOSECONDS_PER_SECOND, ActionChunk

Array = NDArray[np.float64]
Times = NDArray[np.int64]

SNAP_NS = 1_000
"""Times that differ by less are the same: periods such as 1/30 s are no whole nanoseconds."""


def row_times_ns(chunk: ActionChunk) -> Times:
    """The time of each row ``(H,)``."""
    times: Times = chunk.stamp_ns + _offsets_ns(chunk.horizon, chunk.period_s)
    return times


@lru_cache(maxsize=8)
def _offsets_ns(horizon: int, period_s: float) -> Times:
    offsets: Times = np.rint(np.arange(horizon) * (period_s * NANOSECONDS_PER_SECOND)).astype(np.int64)
    return offsets


def interpolate_rows(stamps_ns: Times, rows: Array, times_ns: Times, kinds: Sequence[DimensionKind]) -> Array:
    """Rows ``(N, D)`` at other times ``(M,)``; times outside take the first or last row.

    Numbers are interpolated linearly and levels keep the row before; at the time of a row it is that row, exactly.
    Angles that wrap and rotations take the nearest row, since the dataset does not say how they turn.
    """
    after = np.clip(np.searchsorted(stamps_ns, times_ns - SNAP_NS), 0, len(rows) - 1)
    before = np.maximum(after - 1, 0)
    before = np.where(times_ns < stamps_ns[0], after, before)
    return _between((stamps_ns[before], rows[before]), (stamps_ns[after], rows[after]), times_ns, kinds)


def rows_at(stamps_ns: Times, rows: Array, times_ns: Times, kinds: Sequence[DimensionKind]) -> Array:
    """The rows ``(K, D)`` of many chunks ``(K, H, D)`` at one time each ``(K,)``, as `interpolate_rows` finds them.

    Args:
        stamps_ns: The times of the chunks' rows ``(K, H)``.
        rows: The chunks.
        times_ns: The time in each chunk.
        kinds: What the columns are.

    """
    chunk = np.arange(len(rows))
    after = np.minimum(np.count_nonzero(stamps_ns < times_ns[:, np.newaxis] - SNAP_NS, axis=1), rows.shape[1] - 1)
    before = np.where(times_ns < stamps_ns[:, 0], after, np.maximum(after - 1, 0))
    start, end = ((stamps_ns[chunk, row], rows[chunk, row]) for row in (before, after))
    return _between(start, end, times_ns, kinds)


def _between(
    start: tuple[Times, Array], end: tuple[Times, Array], times_ns: Times, kinds: Sequence[DimensionKind]
) -> Array:
    """Rows ``(N, D)`` at times ``(N,)`` between the rows before and after each, given with their times."""
    (before_ns, before), (after_ns, after) = start, end
    is_row = np.abs(after_ns - times_ns) <= SNAP_NS
    before_ns, before = np.where(is_row, after_ns, before_ns), np.where(is_row[:, np.newaxis], after, before)
    weight = np.clip((times_ns - before_ns) / np.maximum(after_ns - before_ns, 1), 0.0, 1.0)
    weight[is_row] = 0.0
    result: Array = before + weight[:, np.newaxis] * (after - before)
    nearest = np.where(weight[:, np.newaxis] < 0.5, before, after)
    for column, kind in enumerate(kinds):
        if kind is DimensionKind.BINARY:
            result[:, column] = before[:, column]
        elif kind is not DimensionKind.CONTINUOUS:
            result[:, column] = nearest[:, column]
    return result
