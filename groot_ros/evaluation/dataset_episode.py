"""An episode of a LeRobot dataset that is played row by row, as the policy was trained on it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from groot_ros.alignment import NotReady, Reason
from groot_ros.alignment.buffers import Allocate
from groot_ros.contract import Contract
from groot_ros.dataset.reader import Dataset
from groot_ros.dataset.windows import TrainingWindows, WindowSpec
from groot_ros.errors import EvaluationError
from groot_ros.evaluation.episode import Array, Demonstration, Episode, Times
from groot_ros.evaluation.timing import SNAP_NS, interpolate_rows
from groot_ros.observation import NANOSECONDS_PER_SECOND, Observation


class DatasetEpisode(Episode):
    """Plays one episode of a dataset; its rows lie exactly one period apart, as training takes them.

    Args:
        dataset: The dataset.
        index: Which episode.
        contract: Says which keys are wanted, and at which rate.
        video_history: Rows before the present at which frames are taken.
        state_history: The same for states.

    Raises:
        EvaluationError: Another rate than the contract's.
        DatasetError: A key is missing.

    """

    is_demonstrated = True

    def __init__(
        self,
        dataset: Dataset,
        index: int,
        contract: Contract,
        *,
        video_history: tuple[int, ...],
        state_history: tuple[int, ...],
        name: str,
    ) -> None:
        if abs(dataset.info.fps / contract.rate_hz - 1.0) > 1e-6:
            msg = (
                f"{dataset.root} has {dataset.info.fps:g} rows a second, but the contract's rate_hz is "
                f"{contract.rate_hz:g}; both must be the rate that the checkpoint was trained at"
            )
            raise EvaluationError(msg)
        self.name = name
        self._dataset, self._index, self._contract = dataset, index, contract
        self._groups = [group for group in contract.actions if contract.action_dimensions(group)]
        self._rows = dataset.episodes[index].length
        self.duration_s = self._rows / dataset.info.fps
        self._windows = TrainingWindows(
            dataset,
            WindowSpec(
                cameras=tuple(contract.cameras),
                video_delta_indices=video_history,
                state_keys=tuple(contract.state),
                state_delta_indices=state_history,
                action_keys=tuple(self._groups),
                action_delta_indices=(0,),
            ),
        )
        self._state_history = state_history
        self._stamps: Times = np.rint(np.arange(self._rows) * NANOSECONDS_PER_SECOND / dataset.info.fps).astype(
            np.int64
        )
        stamps = dataset.stamps(index)
        if stamps is not None and "row" in stamps.stamps_ns:
            self._stamps += int(stamps.stamps_ns["row"][0])
        self._row = -1

    def play(self) -> Iterator[int]:
        """See `Episode.play`; a row is there at its own time."""
        self._row = -1
        for row in range(self._rows):
            self._row = row
            yield int(self._stamps[row])

    def reference(self, now_ns: int) -> int | NotReady:  # noqa: ARG002
        """See `Episode.reference`; the row that was reached."""
        if self._row < 0:
            return NotReady(Reason.MISSING, "row", "row: the episode has not begun")
        return int(self._stamps[self._row])

    def state_at(self, reference_ns: int) -> dict[str, NDArray[np.float32]] | NotReady:
        """See `Episode.state_at`."""
        rows = [max(0, self._row_at(reference_ns) + back) for back in self._state_history]
        return {
            group: self._dataset.state(self._index, group)[rows].astype(np.float32) for group in self._contract.state
        }

    def stamp_at(self, reference_ns: int) -> int | NotReady:
        """See `Episode.stamp_at`: rows are stamped with their own time."""
        return reference_ns

    def observation_at(self, reference_ns: int, instruction: str, allocate: Allocate) -> Observation | NotReady:  # noqa: ARG002
        """See `Episode.observation_at`; what `TrainingWindows` gives for the row, at its ideal time."""
        observation = self._windows.at(self._index, self._row_at(reference_ns)).observation
        return replace(observation, stamp_ns=reference_ns, instruction=instruction)

    def demonstration(self, times_ns: Times) -> Demonstration:
        """See `Episode.demonstration`."""
        last = int(self._stamps[-1])
        known = (times_ns >= self._stamps[0] - SNAP_NS) & (times_ns <= last + SNAP_NS)
        values: dict[str, Array] = {}
        for group in self._groups:
            action_map = self._contract.action_map(group)
            rows = self._dataset.action(self._index, group).astype(np.float64)
            values[group] = interpolate_rows(self._stamps, rows, times_ns, action_map.kinds)
            values[group][~known] = np.nan
        return Demonstration(values, known)

    def instruction(self, default: str) -> str:
        """See `Episode.instruction`; the task of the row."""
        return self._dataset.instruction(self._index, max(self._row, 0)) or default

    def messages(self) -> dict[str, int]:
        """See `Episode.messages`."""
        return {"rows": self._rows}

    def _row_at(self, reference_ns: int) -> int:
        return int(np.searchsorted(self._stamps, reference_ns - SNAP_NS))
