"""What is to be said about a dataset as a whole: metadata, statistics, prompts, dimensions, training samples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groot_ros.dataset.files import read_json
from groot_ros.dataset.layout import (
    GROOT_VIEW,
    INFO_FILE,
    RELATIVE_STATISTICS_FILE,
    STATISTICS_FILE,
    LayoutVersion,
)
from groot_ros.dataset.modality import ACTION_COLUMN, STATE_COLUMN, ModalitySlice
from groot_ros.dataset.quality.finding import Finding, Severity
from groot_ros.dataset.quality.rows import dimension_names
from groot_ros.dataset.reader import Dataset
from groot_ros.dataset.stage import STAGING
from groot_ros.errors import DatasetError

_CLIPPED_SHARE = 0.1
_FEW_VALUES = 10  # a dimension with fewer different values is a switch, and rests at its ends by nature
_STATISTICS_TOLERANCE = 1e-3  # of a dimension's range
_ROUNDING = 1e-5  # of the value itself: what float32 sums of a constant are off by
_QUANTILE_TOLERANCE = 0.1  # others estimate quantiles from histograms
_SAME = 1e-6

Entries = Mapping[str, Mapping[str, Any]]


def check_metadata(dataset: Dataset) -> Iterator[Finding]:
    """Yield what does not agree within the metadata."""
    info, root = dataset.info, dataset.root
    if dataset.total_frames != info.total_frames:
        yield Finding(
            Severity.ERROR,
            "totals",
            INFO_FILE,
            f"total_frames is {info.total_frames}, but the episodes have {dataset.total_frames} rows",
        )
    raw = read_json(root / INFO_FILE)
    for name, span in (raw.get("splits") or {}).items():
        end = int(str(span).rpartition(":")[2] or 0)
        if end > info.total_episodes:
            yield Finding(
                Severity.WARNING,
                "totals",
                INFO_FILE,
                f"split {name} is {span}, but there are {info.total_episodes} episodes",
            )
    if raw.get("total_chunks") == 0 and info.total_episodes:
        yield Finding(Severity.NOTE, "totals", INFO_FILE, "total_chunks is 0, but there are episodes")
    if (root / STAGING).exists():
        yield Finding(
            Severity.WARNING,
            "unfinished",
            STAGING,
            "episodes wait to be taken in: run the conversion again to finish the dataset",
        )
    for feature in [name for name, description in info.features.items() if description["dtype"] == "video"]:
        if feature not in dataset.modality.video.values():
            yield Finding(
                Severity.NOTE,
                "cameras",
                feature,
                "a video feature of info.json that modality.json does not name: GR00T will not see it",
            )


def check_prompts(dataset: Dataset, used: Mapping[int, int]) -> Iterator[Finding]:
    """Yield what is to be said about the instructions.

    Args:
        dataset: The dataset.
        used: Task index to the number of rows that carry it.

    """
    unknown = sorted(index for index in used if index not in dataset.tasks)
    if unknown:
        yield Finding(
            Severity.ERROR, "prompts", "task_index", f"rows carry {unknown}, but the tasks have no such index"
        )
    texts = {dataset.tasks[index] for index in used if index in dataset.tasks}
    if len(texts) == 1 and len(dataset.episodes) > 1:
        yield Finding(
            Severity.WARNING,
            "prompts",
            "task_index",
            f"one single instruction in all episodes ({next(iter(texts))!r}): a policy fine-tuned on it will do this "
            f"whatever it is told",
        )
    plain: dict[str, str] = {}
    for text in sorted(texts):
        other = plain.setdefault(" ".join(text.casefold().split()).rstrip(".!"), text)
        if other != text:
            yield Finding(
                Severity.WARNING,
                "prompts",
                "task_index",
                f"{other!r} and {text!r} differ in spelling only: use one of them",
            )
    if any(not text.strip() for text in texts):
        yield Finding(Severity.ERROR, "prompts", "task_index", "rows carry an empty instruction")


def check_samples(dataset: Dataset, horizon: int) -> Iterator[Finding]:
    """Yield how many training samples there are, where that is few."""
    samples = sum(max(0, episode.length - horizon + 1) for episode in dataset.episodes)
    if not samples:
        yield Finding(
            Severity.ERROR,
            "training samples",
            "episodes",
            f"no episode has the {horizon} rows of one action chunk: training has nothing to learn from",
        )
    elif len(dataset.episodes) < 30:
        yield Finding(
            Severity.NOTE,
            "training samples",
            "episodes",
            f"{len(dataset.episodes)} episodes, {samples} training samples: 100 episodes are usual, 30 are few",
        )


class ActionComparison:
    """Whether the actions are commands at all, or the measured state under another name."""

    def __init__(self) -> None:
        self._rows = 0
        self._same = 0
        self._next = 0

    def add(
        self, dataset: Dataset, rows: Mapping[str, NDArray[Any]], ranges: Mapping[str, NDArray[np.float64]]
    ) -> None:
        """Take the rows of an episode."""
        for key, command in dataset.modality.action.items():
            part = dataset.modality.state.get(key)
            if part is None or part.dimension != command.dimension:
                continue
            state, action = _take(rows, part), _take(rows, command)
            moving = ranges[part.column][part.start : part.end] > 0
            if not moving.any() or len(state) < 2:
                continue
            limit = _SAME * ranges[part.column][part.start : part.end][moving]
            state, action = state[:, moving], action[:, moving]
            self._rows += len(state)
            self._same += int((np.abs(action - state) <= limit).all(axis=1).sum())
            self._next += int((np.abs(action[:-1] - state[1:]) <= limit).all(axis=1).sum()) + 1

    def findings(self) -> Iterator[Finding]:
        """Yield the verdict on all rows."""
        if not self._rows:
            return
        if self._same > 0.95 * self._rows:
            yield Finding(
                Severity.ERROR,
                "action equals state",
                ACTION_COLUMN,
                f"in {self._same / self._rows:.0%} of the rows: a policy learns to stay where it is; record the "
                f"commanded values",
            )
        elif self._next > 0.95 * self._rows:
            yield Finding(
                Severity.WARNING,
                "action equals state",
                ACTION_COLUMN,
                "the action is the state one row later: a measured value, not a command, so a policy will not learn "
                "to press or to grip",
            )


def check_dimensions(dataset: Dataset, columns: Mapping[str, NDArray[Any]]) -> Iterator[Finding]:
    """Yield dimensions that never change, and those that rest at their ends.

    Args:
        dataset: The dataset.
        columns: State and action columns of all rows, ``(N, D)``.

    """
    for name, values in columns.items():
        names = dimension_names(dataset, ModalitySlice(0, values.shape[1], name))
        constant = [names[number] for number in np.flatnonzero(np.ptp(values, axis=0) == 0)]
        if 0 < len(constant) < values.shape[1]:  # where all are constant, the robot is frozen: said elsewhere
            yield Finding(
                Severity.WARNING,
                "constant dimension",
                name,
                f"{len(constant)} of {values.shape[1]} never change: {', '.join(constant)}",
            )
        for number, dimension in enumerate(names):
            column = values[:, number]
            if len(np.unique(column)) <= _FEW_VALUES:
                continue
            for end, word in ((column.min(), "smallest"), (column.max(), "largest")):
                share = float((column == end).mean())
                if share > _CLIPPED_SHARE:
                    yield Finding(
                        Severity.WARNING,
                        "clipped dimension",
                        f"{name}.{dimension}",
                        f"{share:.0%} of the rows have exactly the {word} value, {end:g}: a limit that cuts it off?",
                    )


def check_statistics(dataset: Dataset, entries: Entries, horizon: int) -> Iterator[Finding]:
    """Yield where the files of statistics do not fit the data.

    Args:
        dataset: The dataset.
        entries: Column to its true statistics.
        horizon: Rows of an action chunk.

    """
    folders = [dataset.root]
    if dataset.info.version is LayoutVersion.V3_0 and (dataset.root / GROOT_VIEW).is_dir():
        folders.append(dataset.root / GROOT_VIEW)
    for folder in folders:
        path = folder / STATISTICS_FILE
        if path.exists():
            yield from _check_file(dataset, path, entries)
        elif dataset.info.version is not LayoutVersion.V2_1:
            yield Finding(Severity.WARNING, "statistics", str(path.relative_to(dataset.root)), "is missing")
        relative = folder / RELATIVE_STATISTICS_FILE
        if relative.exists():
            yield from _check_relative_file(dataset, relative, horizon)


def _check_file(dataset: Dataset, path: Path, entries: Entries) -> Iterator[Finding]:
    content = read_json(path)
    where = str(path.relative_to(dataset.root))
    for name in (STATE_COLUMN, ACTION_COLUMN):
        if name not in entries:
            continue
        found = content.get(name)
        if not isinstance(found, dict):
            yield Finding(Severity.ERROR, "statistics", f"{where}: {name}", "is missing")
            continue
        true = {
            key: np.asarray(entries[name][key], dtype=np.float64) for key in ("min", "max", "mean", "std", "q01", "q99")
        }
        span = true["max"] - true["min"]
        for key, wanted in true.items():
            if key not in found:
                yield Finding(Severity.NOTE, "statistics", f"{where}: {name}", f"{key} is missing")
                continue
            value = np.asarray(found[key], dtype=np.float64).reshape(-1)
            if value.shape != wanted.shape:
                yield Finding(
                    Severity.ERROR,
                    "statistics",
                    f"{where}: {name}",
                    f"{key} has {value.size} dimensions, but the column {wanted.size}",
                )
                continue
            is_quantile = key.startswith("q")
            allowed = (_QUANTILE_TOLERANCE if is_quantile else _STATISTICS_TOLERANCE) * span
            rounding = _ROUNDING**0.5 if key == "std" else _ROUNDING  # the variance is what gets rounded
            off = np.abs(value - wanted) - allowed - rounding * np.abs(true["max"])
            if (off > 0).any():
                worst = int(np.argmax(off))
                dimension = dimension_names(dataset, ModalitySlice(0, wanted.size, name))[worst]
                yield Finding(
                    Severity.WARNING if is_quantile else Severity.ERROR,
                    "statistics",
                    f"{where}: {name}",
                    f"{key} of {dimension} is {value[worst]:g}, but the data give {wanted[worst]:g}: made before "
                    f"episodes were changed? Delete the file and have it made anew",
                )


def _check_relative_file(dataset: Dataset, path: Path, horizon: int) -> Iterator[Finding]:
    where = str(path.relative_to(dataset.root))
    for key, entry in read_json(path).items():
        if key.startswith("__"):
            continue
        rows = len(entry.get("min", ()))
        if rows != horizon:
            yield Finding(
                Severity.ERROR,
                "statistics",
                f"{where}: {key}",
                f"is for chunks of {rows} rows, but the horizon is {horizon}: training would stop with an IndexError",
            )
        part = dataset.modality.action.get(key)
        if part is None:
            yield Finding(Severity.ERROR, "statistics", f"{where}: {key}", "is no action group of the dataset")


def _take(rows: Mapping[str, NDArray[Any]], part: ModalitySlice) -> NDArray[np.float64]:
    if part.column not in rows:
        msg = f"there is no column {part.column!r}"
        raise DatasetError(msg)
    column = rows[part.column]
    return column.reshape(len(column), -1)[:, part.start : part.end].astype(np.float64)
