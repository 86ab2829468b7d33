"""What one policy did in one episode: its errors, its seams, and what the robot would have been told."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from groot_ros.evaluation.columns import ActionColumns
from groot_ros.evaluation.episode import Episode, Times
from groot_ros.evaluation.errors_by_row import ErrorsByRow
from groot_ros.evaluation.pilot import Prediction
from groot_ros.evaluation.row_table import RowTable
from groot_ros.evaluation.timing import interpolate_rows, row_times_ns
from groot_ros.execution.status import ExecutorStatus
from groot_ros.observation import ActionChunk

Array = NDArray[np.float64]
STAGES = ("data_processing", "backbone", "action_head", "decode", "prediction", "capture_to_chunk")
REMEMBERED = 1024


class Demonstrated:
    """The demonstration as rows of all columns; several policies ask for the same times.

    Args:
        episode: What is being played.
        columns: The action dimensions.

    """

    def __init__(self, episode: Episode, columns: ActionColumns) -> None:
        self._episode = episode
        self._columns = columns
        self._known: dict[tuple[int, int], Array] = {}

    def at(self, times_ns: Times) -> Array:
        """What was demonstrated ``(N, width)``; NaN where it is not known."""
        key = (int(times_ns[0]), len(times_ns))
        if key not in self._known:
            if len(self._known) >= REMEMBERED:
                del self._known[next(iter(self._known))]
            self._known[key] = self._columns.join(self._episode.demonstration(times_ns).values, len(times_ns))
        return self._known[key]


class Logbook:
    """Listens to a pilot.

    Args:
        columns: The action dimensions.
        horizon: Rows of a chunk.
        levels: Value between open and closed of each gripper ``(width,)``; NaN elsewhere.
        demonstrated: What was demonstrated.
        start_rows: Rows at the start in which the robot is brought to the plan: no part of how smooth the motion is.
        on_chunk: Called with each prediction, its rows ``(H, width)``, and the demonstrated ones.

    """

    def __init__(
        self,
        columns: ActionColumns,
        horizon: int,
        levels: Array,
        demonstrated: Demonstrated,
        *,
        start_rows: int = 0,
        on_chunk: Callable[[Prediction, Array, Array], None] | None = None,
    ) -> None:
        self.start_rows = start_rows
        self.columns = columns
        self.levels = levels
        self.errors = ErrorsByRow(columns, horizon)
        self.executed = RowTable(columns.width)
        self.demonstration = RowTable(columns.width)
        self.seams = RowTable(columns.width)
        self.latencies_s = RowTable(len(STAGES))
        self.predictions = 0
        self.rows_expired = 0
        self.rows_executed = 0
        self.refusals: dict[str, int] = {}
        self.status: ExecutorStatus | None = None
        self._demonstrated = demonstrated
        self._on_chunk = on_chunk
        self._accepted: ActionChunk | None = None

    def note_prediction(self, prediction: Prediction) -> None:
        """Take a chunk that has arrived."""
        chunk = prediction.chunk
        self.predictions += 1
        self.rows_expired += prediction.rows_expired
        predicted = self.columns.join(chunk.groups, chunk.horizon)
        wanted = self._demonstrated.at(row_times_ns(chunk))
        self.errors.add(predicted, wanted, self.levels)
        stages = [prediction.stages_s.get(stage, np.nan) for stage in STAGES[:-1]]
        total_s = (prediction.arrived_ns - chunk.stamp_ns) / 1e9
        self.latencies_s.add(chunk.stamp_ns, np.array([*stages, total_s]))
        if not prediction.refusal:
            self._note_seam(chunk, predicted, prediction.arrived_ns)
            self._accepted = chunk
        if self._on_chunk is not None:
            self._on_chunk(prediction, predicted, wanted)

    def note_row(self, row_ns: int, values: dict[str, Array]) -> None:
        """Take what the robot is told to do at a row's time."""
        self.executed.add(row_ns, self.columns.join(values, 1)[0])
        self.demonstration.add(row_ns, self._demonstrated.at(np.array([row_ns], np.int64))[0])

    def _note_seam(self, chunk: ActionChunk, predicted: Array, arrived_ns: int) -> None:
        """The step from the plan before to this one at the first row that is executed of it."""
        before, times_ns = self._accepted, row_times_ns(chunk)
        row = int(np.searchsorted(times_ns, arrived_ns))
        if before is None or row == len(times_ns):
            return
        before_ns = row_times_ns(before)
        if times_ns[row] > before_ns[-1]:
            return
        rows = self.columns.join(before.groups, before.horizon)
        planned = interpolate_rows(before_ns, rows, times_ns[row : row + 1], self.columns.kinds)
        self.seams.add(arrived_ns, np.abs(self.columns.difference(predicted[row], planned[0])))
