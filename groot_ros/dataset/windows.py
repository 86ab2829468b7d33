"""Training windows: what the policy saw at a row, and the actions that followed."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groot_ros.dataset.reader import Dataset
from groot_ros.dataset.stamps import ROW_STAMP
from groot_ros.errors import DatasetError
from groot_ros.observation import NANOSECONDS_PER_SECOND, Observation


@dataclass(frozen=True, kw_only=True)
class WindowSpec:
    """Which rows around the present belong to a window, and which keys.

    Attributes:
        cameras: Camera keys, in the order of the policy.
        video_delta_indices: Rows of the frames, counted from the present, the last one being 0.
        state_keys: State groups.
        state_delta_indices: Rows of the states, the last one being 0.
        action_keys: Action groups.
        action_delta_indices: Rows of the actions, the first one being 0.
        annotation: Annotation key of the instruction (without ``annotation.``); None takes ``task_index``.

    """

    cameras: tuple[str, ...]
    video_delta_indices: tuple[int, ...]
    state_keys: tuple[str, ...]
    state_delta_indices: tuple[int, ...]
    action_keys: tuple[str, ...]
    action_delta_indices: tuple[int, ...]
    annotation: str | None = None


@dataclass(frozen=True)
class Window:
    """One training sample.

    Attributes:
        episode: Episode index.
        row: Row of the present in the episode.
        observation: What the policy saw. Its stamp is the row's source stamp where the dataset keeps it, else the row's
            time in the episode.
        actions: Action group to values ``(H, D)`` float64, absolute, in physical units.

    """

    episode: int
    row: int
    observation: Observation
    actions: dict[str, NDArray[np.float64]]


class TrainingWindows:
    """All windows of a dataset whose actions lie within their episode, by number.

    A history that reaches before the episode repeats its first row, as the live policy does: it is never taken from
    the episode's end.

    Args:
        dataset: The dataset.
        spec: Keys and rows.
        episodes: The episodes that windows are taken of, in the order of the numbers; None for all.

    Raises:
        DatasetError: A key that the dataset lacks, indices that do not fit together, or no episode long enough.

    """

    def __init__(self, dataset: Dataset, spec: WindowSpec, episodes: Sequence[int] | None = None) -> None:
        self._dataset = dataset
        self._spec = spec
        self._episodes = list(range(len(dataset.episodes)) if episodes is None else episodes)
        _check(dataset, spec)
        ahead = max(spec.action_delta_indices)
        lengths = [dataset.episodes[episode].length for episode in self._episodes]
        self._first_windows = list(itertools.accumulate((max(0, length - ahead) for length in lengths), initial=0))
        if not len(self):
            which = "its" if episodes is None else "the chosen"
            msg = (
                f"{dataset.root} gives no training window: the longest of {which} {len(lengths)} episodes has "
                f"{max(lengths, default=0)} rows, but a window needs {ahead + 1}"
            )
            raise DatasetError(msg)

    def __len__(self) -> int:
        """Return the number of windows."""
        return self._first_windows[-1]

    def __getitem__(self, number: int) -> Window:
        """Return window ``number``, counted through the episodes."""
        if not 0 <= number < len(self):
            msg = f"there are {len(self)} windows, but window {number} is asked for"
            raise IndexError(msg)
        return self.at(*self.place(number))

    def place(self, number: int) -> tuple[int, int]:
        """Return episode and row of window ``number`` without reading it."""
        chosen = bisect.bisect_right(self._first_windows, number) - 1
        return self._episodes[chosen], number - self._first_windows[chosen]

    def at(self, episode: int, row: int) -> Window:
        """Return the window at a row of an episode.

        Raises:
            DatasetError: The actions would reach beyond the episode, or a file is missing or damaged.

        """
        spec, dataset = self._spec, self._dataset
        length = dataset.episodes[episode].length
        if not 0 <= row < length - max(spec.action_delta_indices):
            msg = (
                f"row {row} of episode {episode} has no window: it needs the actions up to row "
                f"{row + max(spec.action_delta_indices)}, and the episode has {length} rows"
            )
            raise DatasetError(msg)
        frame_rows = [max(0, row + delta) for delta in spec.video_delta_indices]
        state_rows = [max(0, row + delta) for delta in spec.state_delta_indices]
        action_rows = [max(0, row + delta) for delta in spec.action_delta_indices]
        stamps = self._row_stamps(episode)
        observation = Observation(
            images={camera: dataset.frames(episode, camera, frame_rows) for camera in spec.cameras},
            state={key: dataset.state(episode, key)[state_rows].astype(np.float32) for key in spec.state_keys},
            instruction=dataset.instruction(episode, row, spec.annotation),
            stamp_ns=int(stamps[ROW_STAMP][row]),
            image_stamps_ns={
                camera: tuple(int(stamp) for stamp in stamps[dataset.modality.video[camera]][frame_rows])
                for camera in spec.cameras
                if dataset.modality.video[camera] in stamps
            },
        )
        actions = {key: dataset.action(episode, key)[action_rows].astype(np.float64) for key in spec.action_keys}
        return Window(episode, row, observation, actions)

    def _row_stamps(self, episode: int) -> dict[str, NDArray[Any]]:
        stamps = self._dataset.stamps(episode)
        if stamps is not None:
            return dict(stamps.stamps_ns)
        rows = np.arange(self._dataset.episodes[episode].length)
        return {ROW_STAMP: np.rint(rows * (NANOSECONDS_PER_SECOND / self._dataset.info.fps)).astype(np.int64)}


def _check(dataset: Dataset, spec: WindowSpec) -> None:
    modality = dataset.modality
    for kind, wanted, known in (
        ("camera", spec.cameras, modality.video),
        ("state group", spec.state_keys, modality.state),
        ("action group", spec.action_keys, modality.action),
    ):
        missing = [key for key in wanted if key not in known]
        if missing:
            msg = f"{dataset.root} has no {kind} {', '.join(missing)}; it has {', '.join(known) or 'none'}"
            raise DatasetError(msg)
    for name, indices in (("video", spec.video_delta_indices), ("state", spec.state_delta_indices)):
        if not indices or max(indices) > 0:
            msg = f"the {name} delta indices are {list(indices)}, but a window sees nothing of the future"
            raise DatasetError(msg)
    if not spec.action_delta_indices or min(spec.action_delta_indices) < 0:
        msg = f"the action delta indices are {list(spec.action_delta_indices)}, but must start at 0 or later"
        raise DatasetError(msg)
