"""Chunks side by side: many small arrays cost a hundred times what one large array costs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from groot_ros.evaluation.columns import ActionColumns
from groot_ros.evaluation.episode import Times
from groot_ros.evaluation.pilot import Prediction

Array = NDArray[np.float64]
STAGES = ("data_processing", "backbone", "action_head", "decode", "prediction", "capture_to_chunk")
SIZE = 64


class ChunkBlock:
    """Up to `SIZE` predictions of one policy; its arrays hold those that were added.

    Args:
        columns: The action dimensions.
        horizon: Rows of a chunk.

    """

    def __init__(self, columns: ActionColumns, horizon: int) -> None:
        self._columns = columns
        self._count = 0
        self._stamps_ns = np.empty(SIZE, np.int64)
        self._arrivals_ns = np.empty(SIZE, np.int64)
        self._accepted = np.empty(SIZE, np.bool_)
        self._times_ns = np.empty((SIZE, horizon), np.int64)
        self._predicted = np.full((SIZE, horizon, columns.width), np.nan)
        self._recorded = np.empty((SIZE, horizon, columns.width))
        self._latencies_s = np.empty((SIZE, len(STAGES)))

    def __len__(self) -> int:
        """How many predictions were added."""
        return self._count

    @property
    def is_full(self) -> bool:
        """Whether there is no room for another one."""
        return self._count == SIZE

    def add(self, prediction: Prediction, times_ns: Times, recorded: Array) -> None:
        """Add a prediction.

        Args:
            prediction: The prediction.
            times_ns: Times of its rows ``(H,)``.
            recorded: The same rows as they were demonstrated ``(H, width)``.

        """
        row, chunk = self._count, prediction.chunk
        self._stamps_ns[row], self._arrivals_ns[row] = chunk.stamp_ns, prediction.arrived_ns
        self._accepted[row] = not prediction.refusal
        self._times_ns[row], self._recorded[row] = times_ns, recorded
        self._columns.join_into(self._predicted[row], chunk.groups)
        stages = prediction.stages_s
        self._latencies_s[row] = np.nan
        for column, stage in enumerate(STAGES[:-1] if stages else ()):
            self._latencies_s[row, column] = stages.get(stage, np.nan)
        self._latencies_s[row, -1] = (prediction.arrived_ns - chunk.stamp_ns) / 1e9
        self._count += 1

    @property
    def stamps_ns(self) -> Times:
        """Stamps of the observations ``(N,)``."""
        return self._stamps_ns[: self._count]

    @property
    def arrivals_ns(self) -> Times:
        """When the chunks were there ``(N,)``."""
        return self._arrivals_ns[: self._count]

    @property
    def accepted(self) -> NDArray[np.bool_]:
        """Which chunks were executed ``(N,)``."""
        return self._accepted[: self._count]

    @property
    def times_ns(self) -> Times:
        """Times of the rows ``(N, H)``."""
        return self._times_ns[: self._count]

    @property
    def predicted(self) -> Array:
        """The rows ``(N, H, width)``."""
        return self._predicted[: self._count]

    @property
    def recorded(self) -> Array:
        """The demonstrated rows ``(N, H, width)``; NaN where nothing is known."""
        return self._recorded[: self._count]

    @property
    def latencies_s(self) -> Array:
        """What each of `STAGES` took ``(N, stages)``; NaN where it was not measured."""
        return self._latencies_s[: self._count]
