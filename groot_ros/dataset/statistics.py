"""Statistics of a whole dataset in one pass over its episodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groot_ros.dataset.column_statistics import ColumnStatistics
from groot_ros.dataset.image_statistics import ImageHistogram
from groot_ros.dataset.modality import Modality, ModalitySlice
from groot_ros.dataset.spec import RelativeAction
from groot_ros.dataset.tables import is_number
from groot_ros.errors import DatasetError
from groot_ros.numerics.statistics import RelativeStatistics, Statistics

Columns = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class DatasetStatistics:
    """All statistics of a dataset.

    Attributes:
        columns: Column to LeRobot's entry (lists).
        relative: Relative action to statistics ``(T, D)``; those for which an episode was long enough.

    """

    columns: dict[str, dict[str, Any]]
    relative: dict[RelativeAction, Statistics]


def dataset_statistics(
    episodes: Iterable[Columns],
    *,
    features: Mapping[str, Mapping[str, Any]],
    modality: Modality,
    total_frames: int,
    relative_actions: Sequence[RelativeAction] = (),
) -> DatasetStatistics:
    """Return the statistics of all numeric columns, each equal to plain numpy on all rows.

    Args:
        episodes: The columns of each episode, ``(N,)`` or ``(N, D)``; read once.
        features: Features of ``info.json``.
        modality: Where the groups of the relative actions lie.
        total_frames: At least the number of rows of all episodes.
        relative_actions: Groups whose statistics against the state at the start of a chunk are wanted, row by row.

    Raises:
        DatasetError: A value that is not finite, or more rows than announced.

    """
    columns = {
        name: ColumnStatistics(feature, total_frames) for name, feature in features.items() if is_number(feature)
    }
    relatives = {
        relative: RelativeStatistics(
            relative.delta_indices,
            dimension=modality.action[relative.action_key].dimension,
            kind=relative.kind,
            most_frames=total_frames,
            state_delta=relative.delta_indices[0],
        )
        for relative in relative_actions
    }
    chunks = dict.fromkeys(relatives, 0)
    for number, episode in enumerate(episodes):
        with _naming(number):
            for name, statistics in columns.items():
                statistics.add(episode[name])
            for relative, relative_statistics in relatives.items():
                actions = _take(episode, modality.action[relative.action_key])
                states = _take(episode, modality.state[relative.state_key])
                chunks[relative] += relative_statistics.add_episode(actions, states)
    return DatasetStatistics(
        columns={name: statistics.entry() for name, statistics in columns.items()},
        relative={relative: statistics.finish() for relative, statistics in relatives.items() if chunks[relative]},
    )


def merged_histogram(histograms: Iterable[ImageHistogram]) -> ImageHistogram:
    """Return the histogram of all frames of a camera."""
    total = ImageHistogram()
    for histogram in histograms:
        total.merge(histogram)
    return total


@contextmanager
def _naming(episode: int) -> Iterator[None]:
    """Say in which episode the numbers are bad."""
    try:
        yield
    except (ValueError, KeyError) as error:
        msg = f"no statistics can be made of episode {episode}: {error}"
        raise DatasetError(msg) from error


def _take(episode: Columns, part: ModalitySlice) -> NDArray[np.float64]:
    column = episode[part.column]
    return column.reshape(len(column), -1)[:, part.start : part.end].astype(np.float64)
