"""Makes the report: one pass over the rows, one over the frames."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groot_ros.dataset.modality import ACTION_COLUMN, STATE_COLUMN, TASK_COLUMN
from groot_ros.dataset.quality.finding import Finding, Severity, merge
from groot_ros.dataset.quality.rows import check_rows
from groot_ros.dataset.quality.videos import CameraFacts, look_at_video
from groot_ros.dataset.quality.whole import (
    ActionComparison,
    check_dimensions,
    check_metadata,
    check_prompts,
    check_samples,
    check_statistics,
)
from groot_ros.dataset.reader import Dataset, open_dataset
from groot_ros.dataset.statistics import dataset_statistics
from groot_ros.errors import DatasetError

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class QualityReport:
    """Everything the report says.

    Attributes:
        dataset: The dataset.
        horizon: Rows of an action chunk that it was judged for.
        findings: What was found, errors first.
        columns: State and action of all rows, ``(N, D)``.
        cameras: What was seen of every camera in every episode.

    """

    dataset: Dataset
    horizon: int
    findings: list[Finding]
    columns: dict[str, NDArray[Any]]
    cameras: list[CameraFacts]

    @property
    def has_errors(self) -> bool:
        """Whether training on the dataset as it is would be a waste."""
        return any(finding.severity is Severity.ERROR for finding in self.findings)

    def count(self, severity: Severity) -> int:
        """Return the number of findings of a severity."""
        return sum(finding.severity is severity for finding in self.findings)


def check_dataset(
    root: Path | str, *, horizon: int = 16, quick: bool = False, progress: Progress | None = None
) -> QualityReport:
    """Read a whole dataset and say what is wrong with it.

    Args:
        root: Directory of the dataset.
        horizon: Rows of an action chunk of the policy that is to be trained.
        quick: Decode a few frames of each video instead of all.
        progress: Called with what is being done, how many steps are done, and how many there are.

    Raises:
        DatasetError: Not a dataset, or its metadata cannot be read at all.

    """
    dataset = open_dataset(root)
    tell = progress or (lambda _what, _done, _total: None)
    findings: list[Finding] = []
    readable = list(_readable_episodes(dataset, findings, tell))
    columns = _stack(readable, (STATE_COLUMN, ACTION_COLUMN))
    ranges = _ranges(dataset, readable)
    comparison, used = ActionComparison(), Counter[int]()
    for episode, rows in readable:
        findings += check_rows(dataset, episode, rows, ranges, horizon)
        comparison.add(dataset, rows, ranges)
        used.update(rows[TASK_COLUMN].tolist() if TASK_COLUMN in rows else ())
    findings += comparison.findings()
    findings += check_metadata(dataset)
    findings += check_prompts(dataset, used)
    findings += check_samples(dataset, horizon)
    findings += check_dimensions(dataset, columns)
    findings += _check_statistics(dataset, readable, horizon)
    cameras = _look_at_videos(dataset, quick=quick, tell=tell)
    for facts in cameras:
        findings += facts.findings
    findings += _check_resolutions(cameras)
    return QualityReport(dataset, horizon, merge(findings), columns, cameras)


def _readable_episodes(
    dataset: Dataset, findings: list[Finding], tell: Progress
) -> Iterator[tuple[int, dict[str, NDArray[Any]]]]:
    for entry in dataset.episodes:
        tell("rows", entry.index, len(dataset.episodes))
        try:
            rows = dataset.rows(entry.index)
        except DatasetError as error:
            findings.append(Finding(Severity.ERROR, "rows", entry.data_file.name, str(error), (entry.index,)))
            continue
        bad = [name for name, values in rows.items() if not np.isfinite(values.astype(np.float64)).all()]
        findings += [
            Finding(Severity.ERROR, "rows", name, "has values that are not finite", (entry.index,)) for name in bad
        ]
        if not bad:
            yield entry.index, rows


def _ranges(dataset: Dataset, episodes: list[tuple[int, dict[str, NDArray[Any]]]]) -> dict[str, NDArray[np.float64]]:
    """Largest minus smallest value of every dimension, also of columns that only modality.json names."""
    parts = (*dataset.modality.state.values(), *dataset.modality.action.values())
    names = dict.fromkeys((STATE_COLUMN, ACTION_COLUMN, *(part.column for part in parts)))
    columns = _stack(episodes, names)
    return {name: np.ptp(values.astype(np.float64), axis=0) for name, values in columns.items() if len(values)}


def _stack(episodes: list[tuple[int, dict[str, NDArray[Any]]]], names: Iterable[str]) -> dict[str, NDArray[Any]]:
    columns = {}
    for name in names:
        parts = [rows[name].reshape(len(rows[name]), -1) for _, rows in episodes if name in rows]
        if parts:
            columns[name] = np.concatenate(parts)
    return columns


def _check_statistics(
    dataset: Dataset, episodes: list[tuple[int, dict[str, NDArray[Any]]]], horizon: int
) -> list[Finding]:
    features = {
        name: feature for name, feature in dataset.info.features.items() if name in (STATE_COLUMN, ACTION_COLUMN)
    }
    total = sum(len(next(iter(rows.values()))) for _, rows in episodes)
    if not total or not features:
        return []
    try:
        statistics = dataset_statistics(
            (rows for _, rows in episodes), features=features, modality=dataset.modality, total_frames=total
        )
        return list(check_statistics(dataset, statistics.columns, horizon))
    except DatasetError as error:
        return [Finding(Severity.ERROR, "statistics", "columns", str(error))]


def _look_at_videos(dataset: Dataset, *, quick: bool, tell: Progress) -> list[CameraFacts]:
    """Decode in as many threads as there are cores: FFmpeg frees Python while it works."""
    features = [name for name, feature in dataset.info.features.items() if feature["dtype"] == "video"]
    total = len(features) * len(dataset.episodes)

    def look_at_part(part: list[tuple[int, str]]) -> list[CameraFacts]:
        own = dataset.independent()
        return [look_at_video(own, episode, feature, quick=quick) for episode, feature in part]

    tasks = [(entry.index, feature) for feature in features for entry in dataset.episodes]
    size = max(1, min(8, len(tasks) // (os.cpu_count() or 1)))
    parts = [tasks[start : start + size] for start in range(0, len(tasks), size)]
    cameras: list[CameraFacts] = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for facts in pool.map(look_at_part, parts):
            cameras += facts
            tell("frames", len(cameras), total)
    return cameras


def _check_resolutions(cameras: list[CameraFacts]) -> Iterator[Finding]:
    """Find a camera whose resolution differs between episodes, and cameras whose aspect ratios differ."""
    sizes: dict[str, dict[tuple[int, int], list[int]]] = {}
    for facts in cameras:
        if facts.size:
            sizes.setdefault(facts.feature, {}).setdefault(facts.size, []).append(facts.episode)
    for feature, found in sizes.items():
        if len(found) > 1:
            text = ", ".join(f"{width}x{height} in {len(episodes)}" for (height, width), episodes in found.items())
            yield Finding(Severity.ERROR, "resolution", feature, f"differs between episodes: {text}")
    ratios = {feature: max(found)[1] / max(found)[0] for feature, found in sizes.items()}
    if ratios and max(ratios.values()) - min(ratios.values()) > 0.01:
        text = ", ".join(f"{feature} {ratio:.2f}" for feature, ratio in ratios.items())
        yield Finding(
            Severity.WARNING,
            "resolution",
            "cameras",
            f"differ in width / height ({text}): GR00T stacks all views of a sample, so it needs letter_box_transform",
        )
