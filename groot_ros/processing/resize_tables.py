"""Where each pixel of a resized image comes from, and with what weights: OpenCV's and Pillow's 8-bit resizes as tables.

The coordinates are IEEE doubles in the order of operations that the libraries use, because whole pixels hang on their
last bit: they are computed here by numpy on the CPU, never on a device and never in float32.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum, auto
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Size = tuple[int, int]
"""Height and width, pixels."""

SHORTEST_PIECE = 1e-3
"""OpenCV leaves out the part of a source pixel that is smaller than this."""
LINEAR_BITS = 11
"""OpenCV's weights of two neighbours are whole 2048ths."""
LARGEST_WEIGHT = 1 << 15
MOST_PRECISION = 22
CUBIC_COEFFICIENT = -0.5


class OpenCVMode(Enum):
    """What ``cv2.resize`` with ``INTER_AREA`` really does; both axes decide together."""

    COPY = auto()
    WHOLE = auto()
    """Both axes shrink by whole factors: integer sums."""
    AREA = auto()
    """Both axes shrink or stay: area averages in float32."""
    LINEAR = auto()
    """An axis grows: two neighbours, even on the axis that shrinks."""


@dataclass(frozen=True, eq=False)
class Taps:
    """Source pixels and weights of each target pixel along one axis. A table is equal to itself alone.

    Attributes:
        sources: Indices, int64 ``(taps, target)``; where a pixel has fewer taps the rest repeats a valid index.
        weights: ``(taps, target)``, zero for that rest; float32, or int32 for arithmetic with whole numbers.
        precision: Binary places of whole-number weights; 0 for float32.

    """

    sources: NDArray[np.int64]
    weights: NDArray[np.float32] | NDArray[np.int32]
    precision: int = 0


def opencv_mode(source: Size, target: Size) -> OpenCVMode:
    """How OpenCV takes a resize with ``INTER_AREA``."""
    if source == target:
        return OpenCVMode.COPY
    scales = [_scales(before, after)[0] for before, after in zip(source, target, strict=True)]
    if min(scales) < 1:
        return OpenCVMode.LINEAR
    # 1 / (1 / 49) is not 49 in doubles: such factors are area averages for OpenCV too.
    if all(abs(scale - round(scale)) < np.finfo(np.float64).eps for scale in scales):
        return OpenCVMode.WHOLE
    return OpenCVMode.AREA


@lru_cache(maxsize=256)
def area_taps(source: int, target: int) -> Taps:
    """OpenCV's area average of an axis that shrinks or stays; the order of the taps is the order of the sum."""
    scale, _ = _scales(source, target)
    low = np.arange(target) * scale
    high = low + scale
    cell = np.minimum(scale, source - low)
    last = np.minimum(np.floor(high), source - 1).astype(np.int64)
    first = np.minimum(np.ceil(low).astype(np.int64), last)
    has_left, has_right = first - low > SHORTEST_PIECE, high - last > SHORTEST_PIECE
    start = first - has_left
    count = int((last + has_right - start).max())
    sources = start + np.arange(count)[:, None]
    weights = np.zeros((count, target), np.float64)
    inside = (sources >= first) & (sources < last)
    weights += inside * (1.0 / cell)
    weights += ((sources == first - 1) & has_left) * ((first - low) / cell)
    weights += ((sources == last) & has_right) * (np.minimum(np.minimum(high - last, 1.0), cell) / cell)
    return Taps(np.minimum(sources, source - 1), weights.astype(np.float32))


@lru_cache(maxsize=256)
def linear_taps(source: int, target: int, *, is_row_axis: bool) -> Taps:
    """OpenCV's two neighbours, in 2048ths; across a row the last pixel stands alone, down the rows it is repeated."""
    scale, inverse = _scales(source, target)
    places = np.arange(target, dtype=np.float64)
    left = np.floor(places * scale).astype(np.int64)
    fraction = ((places + 1) - (left + 1) * inverse).astype(np.float32)
    fraction = np.where(fraction <= 0, np.float32(0), fraction - np.floor(fraction))
    if not is_row_axis:
        at_end = left >= source - 1
        fraction[at_end] = 0
    sources = np.clip(np.stack([left, left + 1]), 0, source - 1)
    one = np.float32(1 << LINEAR_BITS)
    weights = np.rint(np.stack([(1 - fraction) * one, fraction * one]))
    return Taps(sources, weights.astype(np.int32), LINEAR_BITS)


@lru_cache(maxsize=256)
def antialias_taps(source: int, target: int, interpolation: str) -> Taps:
    """Pillow's antialiased ``bilinear`` or ``bicubic`` with whole-number weights of as many bits as fit."""
    kernel, radius = _KERNELS[interpolation]
    scale = source / target
    stretch = max(scale, 1.0)
    support = radius * stretch
    rows = []
    for place in range(target):
        center = scale * (place + 0.5)
        start = max(int(center - support + 0.5), 0)
        count = min(int(center + support + 0.5), source) - start
        raw = [kernel((tap + (start - center) + 0.5) * (1.0 / stretch)) for tap in range(count)]
        total = sum(raw)
        rows.append((start, [weight / total for weight in raw]))
    largest = max(max(weights) for _, weights in rows)
    precision = 0
    while precision < MOST_PRECISION and int(0.5 + largest * (1 << (precision + 1))) < LARGEST_WEIGHT:
        precision += 1
    taps = max(len(weights) for _, weights in rows)
    sources = np.zeros((taps, target), np.int64)
    whole = np.zeros((taps, target), np.int32)
    for place, (start, weights) in enumerate(rows):
        sources[:, place] = np.minimum(start + np.arange(taps), source - 1)
        for tap, weight in enumerate(weights):
            whole[tap, place] = int(weight * (1 << precision) + math.copysign(0.5, weight))
    return Taps(sources, whole, precision)


def _scales(source: int, target: int) -> tuple[float, float]:
    """OpenCV's scale and its inverse: the scale is the inverse of a rounded inverse, not ``source / target``."""
    inverse = target / source
    return 1.0 / inverse, inverse


def _triangle(distance: float) -> float:
    return max(1.0 - abs(distance), 0.0)


def _cubic(distance: float) -> float:
    x, a = abs(distance), CUBIC_COEFFICIENT
    if x < 1.0:
        return ((a + 2.0) * x - (a + 3.0)) * x * x + 1
    if x < 2.0:
        return (((x - 5) * x + 8) * x - 4) * a
    return 0.0


_KERNELS = {"bilinear": (_triangle, 1.0), "bicubic": (_cubic, 2.0)}
