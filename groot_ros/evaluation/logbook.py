"""What one policy did in one episode: its errors, its seams, and what the robot would have been told."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from groot_ros.evaluation.chunk_block import STAGES, ChunkBlock
from groot_ros.evaluation.columns import ActionColumns
from groot_ros.evaluation.episode import Times
from groot_ros.evaluation.errors_by_row import ErrorsByRow
from groot_ros.evaluation.pilot import Prediction
from groot_ros.evaluation.row_table import RowTable
from groot_ros.evaluation.timing import rows_at
from groot_ros.execution.status import ExecutorStatus

Array = NDArray[np.float64]


class Logbook:
    """Listens to a pilot. Chunks are reckoned many at a time; `close` reckons the last ones.

    Args:
        columns: The action dimensions.
        horizon: Rows of a chunk.
        levels: Value between open and closed of each gripper ``(width,)``; NaN elsewhere.
        demonstration: What was demonstrated at the times of the executed rows; whoever plays the episode fills it.
        start_rows: Rows at the start in which the robot is brought to the plan: no part of how smooth the motion is.
        on_block: Called with the chunks, some at a time.

    """

    def __init__(
        self,
        columns: ActionColumns,
        horizon: int,
        levels: Array,
        demonstration: RowTable,
        *,
        start_rows: int = 0,
        on_block: Callable[[ChunkBlock], None] | None = None,
    ) -> None:
        self.start_rows = start_rows
        self.columns = columns
        self.levels = levels
        self.errors = ErrorsByRow(columns, horizon)
        self.executed = RowTable(columns.width)
        self.demonstration = demonstration
        self.seams = RowTable(columns.width)
        self.latencies_s = RowTable(len(STAGES))
        self.predictions = 0
        self.rows_expired = 0
        self.rows_executed = 0
        self.refusals: dict[str, int] = {}
        self.status: ExecutorStatus | None = None
        self._block = ChunkBlock(columns, horizon)
        self._horizon = horizon
        self._on_block = on_block
        self._accepted: tuple[Times, Array] | None = None

    def note_prediction(self, prediction: Prediction, times_ns: Times, recorded: Array) -> None:
        """Take a chunk that has arrived.

        Args:
            prediction: The chunk.
            times_ns: Times of its rows ``(H,)``.
            recorded: The same rows as they were demonstrated ``(H, width)``; NaN where nothing is known.

        """
        self.predictions += 1
        self.rows_expired += prediction.rows_expired
        self._block.add(prediction, times_ns, recorded)
        if self._block.is_full:
            self._reckon()

    def note_rows(self, stamps_ns: Times, rows: Array) -> None:
        """Take what the robot is told to do at the times of rows ``(N,)``: ``(N, width)``."""
        self.executed.add(stamps_ns, rows)

    def close(self) -> None:
        """The episode has ended."""
        if len(self._block):
            self._reckon()

    def _reckon(self) -> None:
        block, self._block = self._block, ChunkBlock(self.columns, self._horizon)
        self.errors.add(block.predicted, block.recorded, self.levels)
        self.latencies_s.add(block.stamps_ns, block.latencies_s)
        self._add_seams(block)
        if self._on_block is not None:
            self._on_block(block)

    def _add_seams(self, block: ChunkBlock) -> None:
        """The step from the plan before to each accepted chunk, at the first row that is executed of it."""
        accepted = block.accepted
        times_ns, rows = block.times_ns[accepted], block.predicted[accepted]
        arrivals_ns = block.arrivals_ns[accepted]
        if self._accepted is not None:
            times_ns = np.concatenate([self._accepted[0], times_ns])
            rows = np.concatenate([self._accepted[1], rows])
        else:
            arrivals_ns = arrivals_ns[1:]
        if not len(times_ns):
            return
        self._accepted = times_ns[-1:], rows[-1:]
        before_ns, before, times_ns, rows = times_ns[:-1], rows[:-1], times_ns[1:], rows[1:]
        first = np.count_nonzero(times_ns < arrivals_ns[:, np.newaxis], axis=1)
        chunks = np.flatnonzero(first < times_ns.shape[1])
        seam_ns = times_ns[chunks, first[chunks]]
        chunks = chunks[seam_ns <= before_ns[chunks, -1]]
        seam_ns = times_ns[chunks, first[chunks]]
        planned = rows_at(before_ns[chunks], before[chunks], seam_ns, self.columns.kinds)
        jumps = np.abs(self.columns.difference(rows[chunks, first[chunks]], planned))
        self.seams.add(arrivals_ns[chunks], jumps)
