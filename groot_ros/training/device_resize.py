"""Resizing bytes with antialias on any device, to the bit what torch's own kernel gives on the CPU.

CUDA has no such kernel for bytes, and its float kernel rounds differently. The CPU's kernel is fixed-point arithmetic:
whole-number weights, a sum, a shift, and a byte between the two axes. Whole numbers below 2^53 are exact in float64, so
two matrix products repeat it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

_LARGEST_SHIFT = 22
_WEIGHT_BITS = 15


def resize_bytes(images: Tensor, height: int, width: int, interpolation: str) -> Tensor:
    """Resize uint8 ``(N, C, H, W)`` to ``(N, C, height, width)``; ``bilinear`` or ``bicubic``, with antialias."""
    if images.shape[-2:] == (height, width):
        return images
    if images.device.type == "cpu":
        return functional.interpolate(images, size=(height, width), mode=interpolation, antialias=True)
    return resize_by_products(images, height, width, interpolation)


def resize_by_products(images: Tensor, height: int, width: int, interpolation: str) -> Tensor:
    """The same by matrix products, on any device."""
    rows, columns = images.shape[-2:]
    if columns != width:
        weights, shift = _axis(columns, width, interpolation)
        images = _shifted(images.to(torch.float64) @ weights.to(images.device).T, shift)
    if rows != height:
        weights, shift = _axis(rows, height, interpolation)
        images = _shifted(weights.to(images.device) @ images.to(torch.float64), shift)
    return images


def _shifted(sums: Tensor, shift: int) -> Tensor:
    rounded = (sums + (1 << (shift - 1))).to(torch.int64) >> shift
    return rounded.clamp(0, 255).to(torch.uint8)


@lru_cache(maxsize=32)
def _axis(size: int, target: int, interpolation: str) -> tuple[Tensor, int]:
    """Whole-number weights ``(target, size)`` as float64, and the number of bits to shift the sums by."""
    kernel, radius = _KERNELS[interpolation]
    scale = size / target
    support_scale = max(scale, 1.0)
    support = radius * support_scale
    weights = np.zeros((target, size))
    for place in range(target):
        center = scale * (place + 0.5)
        first = max(int(center - support + 0.5), 0)
        last = min(int(center + support + 0.5), size)
        taps = [kernel(abs((tap - center + 0.5) / support_scale)) for tap in range(first, last)]
        weights[place, first:last] = np.asarray(taps) / math.fsum(taps)
    shift = 0
    while shift < _LARGEST_SHIFT and int(0.5 + float(weights.max()) * (1 << (shift + 1))) < (1 << _WEIGHT_BITS):
        shift += 1
    whole = np.trunc(weights * (1 << shift) + np.copysign(0.5, weights))
    return torch.from_numpy(whole), shift


def _triangle(distance: float) -> float:
    return max(0.0, 1.0 - distance)


def _cubic(distance: float) -> float:
    sharpness = -0.5
    if distance < 1.0:
        return ((sharpness + 2.0) * distance - (sharpness + 3.0)) * distance * distance + 1.0
    if distance < 2.0:
        return (((distance - 5.0) * distance + 8.0) * distance - 4.0) * sharpness
    return 0.0


_KERNELS: dict[str, tuple[Callable[[float], float], int]] = {"bilinear": (_triangle, 1), "bicubic": (_cubic, 2)}
