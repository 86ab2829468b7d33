"""Between physical values and what the network sees: min-max (also of percentiles), mean and standard deviation.

Pure arithmetic, with results in float64, that follows the original to the last rule; non-finite values pass through, so
whoever has values from outside checks them first. Statistics are ``(D,)``, or ``(T, D)`` with one row per time step,
and broadcast against values ``(..., T, D)``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def normalize_min_max(values: ArrayLike, low: ArrayLike, high: ArrayLike) -> Array:
    """Map ``[low, high]`` onto ``[-1, 1]``, without clipping; a dimension whose range is as good as zero becomes 0.

    As good as zero is numpy's ``isclose(high, low)``: 100.0 to 100.0005 counts.

    """
    values, low, high = _float64(values, low, high)
    flat = np.isclose(high, low)
    span = np.where(flat, 1.0, high - low)
    return np.where(flat, 0.0, 2.0 * (values - low) / span - 1.0)


def denormalize_min_max(normalized: ArrayLike, low: ArrayLike, high: ArrayLike) -> Array:
    """Map ``[-1, 1]`` onto ``[low, high]``; what lies outside is clipped, always.

    A range that is only nearly zero is spanned here although `normalize_min_max` gives 0 for it, as in the original.

    """
    low, high = _float64(low, high)
    # In the number type that came: a float32 prediction then gives the original's values to the last bit.
    fraction = (np.clip(np.asarray(normalized), -1.0, 1.0) + 1.0) / 2.0
    return np.asarray(fraction, dtype=np.float64) * (high - low) + low


def normalize_mean_std(values: ArrayLike, mean: ArrayLike, std: ArrayLike) -> Array:
    """Map to zero mean and unit standard deviation; a dimension whose standard deviation is 0 stays as it is."""
    values, mean, std = _float64(values, mean, std)
    constant = std == 0.0
    return np.where(constant, values, (values - mean) / np.where(constant, 1.0, std))


def denormalize_mean_std(normalized: ArrayLike, mean: ArrayLike, std: ArrayLike) -> Array:
    """Undo `normalize_mean_std`; nothing is clipped."""
    normalized, mean, std = _float64(normalized, mean, std)
    return np.where(std == 0.0, normalized, normalized * std + mean)


def _float64(*arrays: ArrayLike) -> list[Array]:
    return [np.asarray(array, dtype=np.float64) for array in arrays]
