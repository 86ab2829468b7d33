"""Statistics of a stream that is read once: what normalisation needs, equal to numpy on the whole data.

Quantiles near the ends need only the values near the ends, so memory holds about 4 % of the stream, and they are exact.
Those in the middle are exact too, at the price of holding the whole stream.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from groot_ros.numerics.relative import RelativeKind, to_relative

Array = NDArray[np.float64]

GROOT_QUANTILES = (0.01, 0.99)


@dataclass(frozen=True)
class Statistics:
    """Statistics over the first axis of a stream, float64; named as in ``statistics.json``.

    ``std`` is that of the population; quantiles interpolate linearly, as numpy does. Those that were not asked for are
    None.
    """

    min: Array
    max: Array
    mean: Array
    std: Array
    q01: Array
    q99: Array
    count: int
    q10: Array | None = None
    q50: Array | None = None
    q90: Array | None = None


class StreamingStatistics:
    """Statistics of rows that come in blocks.

    Args:
        shape: Shape of one row, for instance ``(D,)``, or ``(T, D)`` for relative actions by time step.
        most_rows: At least as many rows as will come (a dataset knows its number of frames): it says how many values
            near the ends must be kept so that the quantiles are exact.
        quantiles: Which to keep, each with a field in `Statistics`: always 0.01 and 0.99; LeRobot wants 0.10, 0.50 and
            0.90 too.

    """

    def __init__(self, shape: Sequence[int], *, most_rows: int, quantiles: Sequence[float] = GROOT_QUANTILES) -> None:
        if most_rows < 1:
            msg = f"statistics need at least one row, but most_rows is {most_rows}"
            raise ValueError(msg)
        self._shape = tuple(shape)
        self._most_rows = most_rows
        # One more than the rank of the quantile, one for the neighbour to interpolate with, one for rounding.
        innermost = max(min(quantile, 1.0 - quantile) for quantile in quantiles)
        keep = min(most_rows, int(innermost * (most_rows - 1)) + 3)
        self._quantiles = tuple(quantiles)
        self._lowest = _Tail(self._shape, keep)
        self._highest = _Tail(self._shape, keep)
        self._count = 0
        self._mean = np.zeros(self._shape)
        self._squares = np.zeros(self._shape)  # sum of squared distances from the mean

    def add(self, rows: ArrayLike) -> None:
        """Take rows ``(N, *shape)``.

        Raises:
            ValueError: Another shape, a value that is not finite, or more rows than announced.

        """
        block = np.array(rows, dtype=np.float64)  # a copy: the caller may reuse his buffer
        if block.shape[1:] != self._shape or block.ndim != len(self._shape) + 1:
            msg = f"statistics over rows of shape {self._shape} cannot take a block of shape {block.shape}"
            raise ValueError(msg)
        if not np.isfinite(block).all():
            where = tuple(int(index) for index in np.argwhere(~np.isfinite(block))[0])
            msg = f"statistics take finite values only, but row {where[0]}, dimension {where[1:]} is {block[where]}"
            raise ValueError(msg)
        if self._count + len(block) > self._most_rows:
            msg = f"{self._count + len(block)} rows came, but only {self._most_rows} were announced by most_rows"
            raise ValueError(msg)
        if not len(block):
            return
        self._lowest.add(block)
        self._highest.add(-block)
        # Chan's rule for joining two parts: exact in real numbers, and stable where a sum of squares is not.
        total = self._count + len(block)
        block_mean = block.mean(axis=0)
        difference = block_mean - self._mean
        self._squares += np.square(block - block_mean).sum(axis=0)
        self._squares += np.square(difference) * (self._count * len(block) / total)
        self._mean += difference * (len(block) / total)
        self._count = total

    def finish(self) -> Statistics:
        """Return the statistics of all rows so far.

        Raises:
            ValueError: No row has come.

        """
        if not self._count:
            msg = "there are no statistics of nothing: not one row has come"
            raise ValueError(msg)
        lowest, highest = self._lowest.sorted(), self._highest.sorted()
        return Statistics(
            min=lowest[0],
            max=-highest[0],
            mean=self._mean.copy(),
            std=np.sqrt(self._squares / self._count),
            **{
                f"q{round(100 * quantile):02d}": self._quantile(quantile, lowest, highest)
                for quantile in self._quantiles
            },
            count=self._count,
        )

    def _quantile(self, quantile: float, lowest: Array, highest: Array) -> Array:
        """Return a quantile from the end of the stream that is nearer to it."""
        rank, fraction = _rank(quantile, self._count)
        if quantile <= 0.5:
            return _between(lowest[rank], lowest[min(rank + 1, self._count - 1)], fraction)
        from_top = self._count - 1 - rank
        return _between(-highest[from_top], -highest[max(from_top - 1, 0)], fraction)


class RelativeStatistics:
    """Statistics of actions relative to the state at the start of their chunk, one row per time step of the chunk.

    Args:
        delta_indices: The action's time steps in rows, for instance ``range(16)``.
        dimension: Number of values D of the action group.
        kind: How action and state compose.
        most_frames: At least as many frames as will come.
        state_delta: The time step of the reference state, in rows: the last of the state's delta indices.

    """

    def __init__(
        self,
        delta_indices: Sequence[int],
        *,
        dimension: int,
        kind: RelativeKind,
        most_frames: int,
        state_delta: int = 0,
    ) -> None:
        if state_delta != delta_indices[0]:
            msg = (
                f"a relative chunk begins at its reference state, but the state is taken at row {state_delta} "
                f"and the first action at row {delta_indices[0]}"
            )
            raise ValueError(msg)
        self._deltas = np.asarray(delta_indices, dtype=np.int64)
        self._kind = kind
        self._state_delta = state_delta
        self._statistics = StreamingStatistics((len(self._deltas), dimension), most_rows=most_frames)

    def add_episode(self, actions: ArrayLike, states: ArrayLike) -> int:
        """Take one episode and return how many chunks it gave: none where it is shorter than a chunk.

        Args:
            actions: Absolute actions ``(L, D)``.
            states: States ``(L, D)`` of the reference key, at the same frames.

        """
        actions, states = np.asarray(actions, dtype=np.float64), np.asarray(states, dtype=np.float64)
        if len(actions) != len(states):
            msg = f"an episode has as many states as actions, but there are {len(states)} and {len(actions)}"
            raise ValueError(msg)
        starts = np.arange(max(0, -int(self._deltas.min())), len(actions) - int(self._deltas.max()))
        if not len(starts):
            return 0
        windows = actions[starts[:, None] + self._deltas]
        references = states[starts + self._state_delta][:, None]
        self._statistics.add(to_relative(windows, references, self._kind))
        return len(starts)

    def finish(self) -> Statistics:
        """Return statistics of shape ``(T, D)``.

        Raises:
            ValueError: No episode was as long as a chunk.

        """
        return self._statistics.finish()


class _Tail:
    """The smallest values of a stream, per dimension."""

    def __init__(self, shape: tuple[int, ...], keep: int) -> None:
        self._keep = keep
        self._kept = np.empty((0, *shape))
        self._waiting: list[Array] = []
        self._waiting_rows = 0

    def add(self, block: Array) -> None:
        self._waiting.append(block)
        self._waiting_rows += len(block)
        if self._waiting_rows >= self._keep:  # so that each value is looked at a fixed number of times
            self._settle()

    def sorted(self) -> Array:
        self._settle()
        return np.sort(self._kept, axis=0)

    def _settle(self) -> None:
        everything = np.concatenate([self._kept, *self._waiting])
        if len(everything) > self._keep:
            everything = np.partition(everything, self._keep - 1, axis=0)[: self._keep].copy()
        self._kept = everything
        self._waiting = []
        self._waiting_rows = 0


def _rank(quantile: float, count: int) -> tuple[int, float]:
    """Return the rank below a quantile of ``count`` sorted values, and how far the quantile lies beyond it."""
    position = quantile * (count - 1)
    return int(position), position - int(position)


def _between(below: Array, above: Array, fraction: float) -> Array:
    """Interpolate from the nearer end, as numpy does, so that the last bit is the same."""
    step = above - below
    return below + step * fraction if fraction < 0.5 else above - step * (1.0 - fraction)
