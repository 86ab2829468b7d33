"""One modality key's way between physical and normalised values: which rule, with which statistics."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from groot_ros.checkpoint.processor_config import ModalityConfig
from groot_ros.checkpoint.statistics import KeyStatistics
from groot_ros.errors import CheckpointError
from groot_ros.numerics.normalization import (
    denormalize_mean_std,
    denormalize_min_max,
    normalize_mean_std,
    normalize_min_max,
)

Array = NDArray[np.float64]


@dataclass(frozen=True)
class MinMaxScaling:
    """A range, minimum to maximum or first to last percentile, that becomes -1 to 1."""

    low: Array
    high: Array

    def normalize(self, values: ArrayLike) -> Array:
        """Physical to normalised, not clipped."""
        return normalize_min_max(values, self.low, self.high)

    def denormalize(self, normalized: ArrayLike) -> Array:
        """Normalised to physical, clipped to the range."""
        return denormalize_min_max(normalized, self.low, self.high)

    def first_rows(self, rows: int) -> MinMaxScaling:
        """The same where values have only the first ``rows`` time steps."""
        return MinMaxScaling(_first_rows(self.low, rows), _first_rows(self.high, rows))


@dataclass(frozen=True)
class MeanStdScaling:
    """Zero mean and unit standard deviation."""

    mean: Array
    std: Array

    def normalize(self, values: ArrayLike) -> Array:
        """Physical to normalised."""
        return normalize_mean_std(values, self.mean, self.std)

    def denormalize(self, normalized: ArrayLike) -> Array:
        """Normalised to physical."""
        return denormalize_mean_std(normalized, self.mean, self.std)

    def first_rows(self, rows: int) -> MeanStdScaling:
        """The same where values have only the first ``rows`` time steps."""
        return MeanStdScaling(_first_rows(self.mean, rows), _first_rows(self.std, rows))


Scaling = MinMaxScaling | MeanStdScaling


def scaling_of(
    key: str, modality: ModalityConfig, statistics: KeyStatistics, *, use_percentiles: bool, where: str
) -> Scaling:
    """Return the rule for a key.

    Args:
        key: The modality key.
        modality: Its modality, which says which keys are scaled by mean and standard deviation.
        statistics: Of this key.
        use_percentiles: Whether q01 and q99 take the place of minimum and maximum.
        where: What the statistics are, for the message: ``state statistics of 'libero_sim'``.

    Raises:
        CheckpointError: Percentiles are asked for and not there.

    """
    if key in modality.mean_std_embedding_keys:
        return MeanStdScaling(statistics.mean, statistics.std)
    if not use_percentiles:
        return MinMaxScaling(statistics.min, statistics.max)
    if statistics.q01 is None or statistics.q99 is None:
        msg = (
            f"{where}: key {key!r} has no q01 and q99, which use_percentiles needs; compute the statistics anew, "
            "or set use_percentiles to false as it was in training"
        )
        raise CheckpointError(msg)
    return MinMaxScaling(statistics.q01, statistics.q99)


def _first_rows(statistics: Array, rows: int) -> Array:
    return statistics if statistics.ndim == 1 else statistics[:rows]
