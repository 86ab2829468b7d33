"""Rows of different chunks and recordings compared at the same times."""

from __future__ import annotations

from collections.abc import Sequence

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
    offsets = np.rint(np.arange(chunk.horizon) * (chunk.period_s * NANOSECONDS_PER_SECOND)).astype(np.int64)
    times: Times = chunk.stamp_ns + offsets
    return times


def interpolate_rows(stamps_ns: Times, rows: Array, times_ns: Times, kinds: Sequence[DimensionKind]) -> Array:
    """Rows ``(N, D)`` at other times ``(M,)``; times outside take the first or last row.

    Numbers are interpolated linearly and levels keep the row before; at the time of a row it is that row, exactly.
    Angles that wrap and rotations take the nearest row, since the dataset does not say how they turn.
    """
    after = np.clip(np.searchsorted(stamps_ns, times_ns - SNAP_NS), 0, len(rows) - 1)
    before = np.maximum(after - 1, 0)
    is_row = (np.abs(stamps_ns[after] - times_ns) <= SNAP_NS) | (times_ns < stamps_ns[0])
    before = np.where(is_row, after, before)
    span = np.maximum(stamps_ns[after] - stamps_ns[before], 1)
    weight = np.clip((times_ns - stamps_ns[before]) / span, 0.0, 1.0)
    weight[is_row] = 0.0
    result: Array = rows[before] + weight[:, None] * (rows[after] - rows[before])
    nearest = np.where(weight < 0.5, before, after)
    for column, kind in enumerate(kinds):
        if kind is DimensionKind.BINARY:
            result[:, column] = rows[before, column]
        elif kind is not DimensionKind.CONTINUOUS:
            result[:, column] = rows[nearest, column]
    return result
