"""``statistics.json``: the numbers that normalisation is made of, per embodiment tag."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class KeyStatistics:
    """Statistics of one modality key, float64.

    Each array is ``(D,)``; for relative actions ``(T, D)``, one row per time step of the chunk (a file may also give
    ``(D,)`` there). ``q01`` and ``q99`` are None where a file has none.
    """

    min: NDArray[np.float64]
    max: NDArray[np.float64]
    mean: NDArray[np.float64]
    std: NDArray[np.float64]
    q01: NDArray[np.float64] | None = None
    q99: NDArray[np.float64] | None = None

    @property
    def dimension(self) -> int:
        """Number of dimensions D."""
        return int(self.min.shape[-1])


@dataclass(frozen=True)
class TagStatistics:
    """Statistics of one embodiment tag, by modality key."""

    state: dict[str, KeyStatistics] = field(default_factory=dict)
    action: dict[str, KeyStatistics] = field(default_factory=dict)
    relative_action: dict[str, KeyStatistics] = field(default_factory=dict)
