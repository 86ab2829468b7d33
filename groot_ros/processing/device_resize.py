"""The 8-bit resizes of OpenCV and Pillow in plain tensor operations: the same bits, on the device where the frames are.

Frames are uint8 ``(N, H, W, C)``. Nothing here waits for the device, and nothing depends on the pixels, so that the
whole can be captured as a graph. Float32 sums go tap by tap: a matrix product, a fused multiply-add or another order
would round differently and move pixels by one level.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from groot_ros.processing.resize_tables import (
    OpenCVMode,
    Size,
    Taps,
    antialias_taps,
    area_taps,
    linear_taps,
    opencv_mode,
)

ROWS, COLUMNS = 1, 2
"""The axes of ``(N, H, W, C)``."""
PLACED_TABLES = 256


def resize_area(frames: Tensor, height: int, width: int) -> Tensor:
    """What ``cv2.resize`` with ``INTER_AREA`` gives.

    Args:
        frames: uint8 ``(N, H, W, C)``, C not 2.
        height: Rows of the result.
        width: Columns of the result.

    Returns:
        uint8 ``(N, height, width, C)``.

    """
    source, target = (frames.shape[ROWS], frames.shape[COLUMNS]), (height, width)
    mode = opencv_mode(source, target)
    if mode is OpenCVMode.COPY:
        return frames
    if mode is OpenCVMode.WHOLE:
        return _whole_factors(frames, source, target)
    if mode is OpenCVMode.AREA:
        across = _weighted(frames.float(), COLUMNS, area_taps(source[1], width))
        return _to_levels(_weighted(across, ROWS, area_taps(source[0], height)).round_())
    return _two_neighbours(frames, source, target)


def resize_antialias(frames: Tensor, height: int, width: int, interpolation: str) -> Tensor:
    """What torch's own uint8 ``interpolate(antialias=True)`` gives on the CPU.

    Args:
        frames: uint8 ``(N, H, W, C)``.
        height: Rows of the result.
        width: Columns of the result.
        interpolation: ``bilinear`` or ``bicubic``.

    Returns:
        uint8 ``(N, height, width, C)``.

    """
    for axis, target in ((COLUMNS, width), (ROWS, height)):
        if frames.shape[axis] == target:
            continue
        taps = antialias_taps(frames.shape[axis], target, interpolation)
        total = _weighted(frames.int(), axis, taps)
        frames = _to_levels((total + (1 << (taps.precision - 1))) >> taps.precision)
    return frames


def _whole_factors(frames: Tensor, source: Size, target: Size) -> Tensor:
    count, channels = frames.shape[0], frames.shape[-1]
    down, across = source[0] // target[0], source[1] // target[1]
    cells = frames.reshape(count, target[0], down, target[1], across, channels)
    total = cells.sum(dim=(2, 4), dtype=torch.int32)
    if down == across == 2:
        return ((total + 2) >> 2).to(torch.uint8)  # half goes up here, and to even below
    share = float(np.float32(1) / np.float32(down * across))
    return _to_levels((total.float() * share).round_())


def _two_neighbours(frames: Tensor, source: Size, target: Size) -> Tensor:
    columns = linear_taps(source[1], target[1], is_row_axis=False)
    across = _weighted(frames.int(), COLUMNS, columns) >> 4
    sources, weights = _placed(linear_taps(source[0], target[0], is_row_axis=True), frames.device, ROWS)
    # Each product is shifted before the sum: that is part of the result.
    upper, lower = ((across.index_select(ROWS, sources[tap]) * weights[tap]) >> 16 for tap in range(2))
    return _to_levels((upper + lower + 2) >> 2)


def _weighted(values: Tensor, axis: int, taps: Taps) -> Tensor:
    """The weighted sum of an axis, tap by tap."""
    sources, weights = _placed(taps, values.device, axis)
    total = values.index_select(axis, sources[0]) * weights[0]
    for tap in range(1, len(sources)):
        total = total + values.index_select(axis, sources[tap]) * weights[tap]
    return total


def _to_levels(values: Tensor) -> Tensor:
    return values.clamp_(0, 255).to(torch.uint8)


@lru_cache(maxsize=PLACED_TABLES)
def _placed(taps: Taps, device: torch.device, axis: int) -> tuple[Tensor, Tensor]:
    """The table on a device, its weights shaped for the axis."""
    shape = (len(taps.weights), -1, 1, 1) if axis == ROWS else (len(taps.weights), 1, -1, 1)
    return torch.from_numpy(taps.sources).to(device), torch.from_numpy(taps.weights).to(device).reshape(shape)
