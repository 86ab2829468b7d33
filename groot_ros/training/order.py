"""In which order samples are seen: a pure function of the seed and the place in the training."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class SampleKey:
    """One sample: in which pass through the data, and its number."""

    epoch: int
    number: int


@dataclass(frozen=True)
class SampleOrder:
    """The endless list of samples, cut into batches and shared among the ranks.

    All passes follow one another without a gap, so that every batch is full. The samples of a global batch do not
    depend on the number of ranks: each takes its part of it.

    Attributes:
        samples: Number of samples of one pass.
        seed: Seed of the training.
        batch_size: Samples a rank takes at a time.
        rank: This rank.
        ranks: Number of ranks.

    """

    samples: int
    seed: int
    batch_size: int
    rank: int = 0
    ranks: int = 1

    def batch(self, number: int) -> list[SampleKey]:
        """Return this rank's part of the global batch ``number``."""
        first = (number * self.ranks + self.rank) * self.batch_size
        return [self.sample(place) for place in range(first, first + self.batch_size)]

    def sample(self, place: int) -> SampleKey:
        """Return the sample at a place of the endless list."""
        epoch, inside = divmod(place, self.samples)
        return SampleKey(epoch, int(_permutation(self.seed, epoch, self.samples)[inside]))


@dataclass(frozen=True)
class BatchNumbers:
    """The batches ``first`` to below ``end`` of an order, as a loader wants them."""

    order: SampleOrder
    first: int
    end: int

    def __len__(self) -> int:
        """Return the number of batches."""
        return self.end - self.first

    def __iter__(self) -> Iterator[list[SampleKey]]:
        """Iterate over the batches."""
        for number in range(self.first, self.end):
            yield self.order.batch(number)


@lru_cache(maxsize=4)
def _permutation(seed: int, epoch: int, samples: int) -> NDArray[np.int64]:
    return np.random.default_rng([seed, epoch]).permutation(samples)
