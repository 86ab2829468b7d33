"""An episode on its way into a dataset: rows and videos in a directory of their own, until they are complete.

Any number of processes may stage episodes of one dataset at the same time; `DatasetWriter` takes them in one by one.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from groot_ros.dataset.files import read_json, sync_directory, sync_file, unwritable, write_json
from groot_ros.dataset.image_statistics import ImageHistogram
from groot_ros.dataset.modality import ACTION_COLUMN, IMAGE_PREFIX, STATE_COLUMN
from groot_ros.dataset.spec import DatasetSpec
from groot_ros.dataset.stamps import ROW_STAMP, EpisodeStamps, write_stamps
from groot_ros.dataset.tables import rows_table, write_table
from groot_ros.dataset.video_writer import VideoWriter
from groot_ros.errors import DatasetError

STAGING = ".staging"
ROWS_FILE = "rows.parquet"
STAMPS_FILE = "stamps.parquet"
TASKS_FILE = "tasks.json"
READY = ".ready"
PARTIAL = ".partial"
UNDER_WAY = "under_way.json"
"""Says which stage is being taken in: some of its files may have their final names already."""


class EpisodeStage:
    """Takes the rows of one episode. Leave the ``with`` block to complete it; an exception in it discards it.

    Args:
        root: The dataset's directory.
        spec: What an episode of the dataset holds.
        name: Name of the episode's source, one of a kind in this dataset: a second stage of the same name replaces it.
        labels: What is known of the episode (source, success, ...); may be added to until the stage is completed.
        threads: Threads of each video encoder; 0 lets it choose. With several stages at work, 1 is best.

    """

    def __init__(
        self, root: Path, spec: DatasetSpec, name: str, *, labels: Mapping[str, Any] | None = None, threads: int = 0
    ) -> None:
        if not name or Path(name).name != name or name.startswith("."):
            msg = f"the episode name {name!r} cannot be the name of a directory"
            raise DatasetError(msg)
        self.labels: dict[str, Any] = {"name": name, **(labels or {})}
        self._spec = spec
        self._directory = root / STAGING / (name + PARTIAL)
        self._ready = root / STAGING / (name + READY)
        try:
            shutil.rmtree(self._directory, ignore_errors=True)
            self._directory.mkdir(parents=True)
        except OSError as error:
            raise unwritable(self._directory, error) from error
        self._states: list[NDArray[np.float32]] = []
        self._actions: list[NDArray[np.float32]] = []
        self._tasks: list[str] = []
        self._stamps: dict[str, list[int]] = {}
        self._histograms = {IMAGE_PREFIX + camera: ImageHistogram() for camera in spec.cameras}
        self._videos = {
            camera: VideoWriter(
                self._directory / f"{IMAGE_PREFIX}{camera}.mp4",
                fps=spec.fps,
                height=height,
                width=width,
                encoding=spec.encoding,
                threads=threads,
            )
            for camera, (height, width) in spec.cameras.items()
        }

    def __len__(self) -> int:
        """Return the number of rows so far."""
        return len(self._states)

    def add(
        self,
        *,
        task: str,
        state: Mapping[str, ArrayLike],
        action: Mapping[str, ArrayLike],
        images: Mapping[str, NDArray[np.uint8]],
        stamp_ns: int,
        image_stamps_ns: Mapping[str, int],
        more_stamps_ns: Mapping[str, int] | None = None,
    ) -> None:
        """Take the next row.

        Args:
            task: The instruction.
            state: State group to values ``(D,)`` in policy units.
            action: Action group to the commanded values ``(D,)`` in policy units.
            images: Camera key to frame, uint8 ``(H, W, 3)`` RGB; encoded before the call returns.
            stamp_ns: Reference stamp of the row; must grow from row to row.
            image_stamps_ns: Camera key to the exact capture time of its frame.
            more_stamps_ns: Exact stamps of further streams (``state.single_arm``), the same ones in every row.

        Raises:
            DatasetError: A group, camera or stamp that is missing or unknown, a wrong shape, a value that is not
                finite, an empty task, or a disk that is full.

        """
        where = f"row {len(self)} of episode {self._ready.name.removesuffix(READY)!r}"
        if not task.strip():
            msg = f"{where} has no task: an episode needs an instruction"
            raise DatasetError(msg)
        _same_keys(images, self._spec.cameras, f"{where}: images")
        _same_keys(image_stamps_ns, self._spec.cameras, f"{where}: image stamps")
        stamps = {ROW_STAMP: stamp_ns}
        stamps |= {IMAGE_PREFIX + camera: stamp for camera, stamp in image_stamps_ns.items()}
        stamps |= more_stamps_ns or {}
        if self._stamps:
            _same_keys(stamps, self._stamps, f"{where}: stamps")
            if stamp_ns <= self._stamps[ROW_STAMP][-1]:
                msg = (
                    f"{where} has the stamp {stamp_ns} ns, but the row before it {self._stamps[ROW_STAMP][-1]} ns: "
                    f"rows must be in order of time"
                )
                raise DatasetError(msg)
        state_row = _row(state, self._spec.state, f"{where}: state")
        action_row = _row(action, self._spec.action, f"{where}: action")
        for camera, video in self._videos.items():
            video.add(images[camera])
            self._histograms[IMAGE_PREFIX + camera].add(images[camera])
        self._states.append(state_row)
        self._actions.append(action_row)
        self._tasks.append(task)
        for name, stamp in stamps.items():
            self._stamps.setdefault(name, []).append(int(stamp))

    def complete(self) -> Path:
        """Write everything to disk and return the directory that `DatasetWriter.commit` takes.

        Raises:
            DatasetError: No row was added, or the disk is full.

        """
        if not len(self):
            self.discard()
            msg = f"episode {self._ready.name.removesuffix(READY)!r} has no row"
            raise DatasetError(msg)
        for video in self._videos.values():
            video.close()
        tasks = list(dict.fromkeys(self._tasks))
        numbers = np.array([tasks.index(task) for task in self._tasks], dtype=np.int64)
        write_table(
            self._directory / ROWS_FILE,
            rows_table({STATE_COLUMN: np.stack(self._states), ACTION_COLUMN: np.stack(self._actions), "task": numbers}),
        )
        stamps = {name: np.array(values, dtype=np.int64) for name, values in self._stamps.items()}
        write_stamps(self._directory / STAMPS_FILE, EpisodeStamps(stamps, self.labels, self._histograms))
        write_json(self._directory / TASKS_FILE, {"tasks": tasks})
        try:
            for video_file in self._directory.glob("*.mp4"):
                sync_file(video_file)
            sync_directory(self._directory)
            shutil.rmtree(self._ready, ignore_errors=True)
            self._directory.replace(self._ready)
            sync_directory(self._ready.parent)
        except OSError as error:
            raise unwritable(self._ready, error) from error
        return self._ready

    def discard(self) -> None:
        """Forget the episode."""
        for video in self._videos.values():
            video.abandon()
        shutil.rmtree(self._directory, ignore_errors=True)

    def __enter__(self) -> EpisodeStage:
        """Return the stage."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Complete the episode, or discard it after an exception."""
        if kind is None:
            self.complete()
        else:
            self.discard()


def ready_stages(root: Path) -> dict[str, Path]:
    """Return the episodes of a dataset that are complete but not yet taken in: name to directory, by name."""
    return {path.name.removesuffix(READY): path for path in sorted((root / STAGING).glob(f"*{READY}"))}


def whole_stages(root: Path, cameras: Iterable[str]) -> list[str]:
    """Return the names of the episodes that wait and need not be made again: those that lack no video.

    The one that is being taken in lacks those that were moved already.
    """
    note = root / STAGING / UNDER_WAY
    under_way = read_json(note)["name"] if note.exists() else None
    videos = [f"{IMAGE_PREFIX}{camera}.mp4" for camera in cameras]
    return [
        name
        for name, stage in ready_stages(root).items()
        if name == under_way or all((stage / video).is_file() for video in videos)
    ]


def _same_keys(found: Mapping[str, Any], wanted: Mapping[str, Any], where: str) -> None:
    if found.keys() != wanted.keys():
        missing, unknown = sorted(wanted.keys() - found.keys()), sorted(found.keys() - wanted.keys())
        msg = f"{where}: {', '.join(missing) or 'none'} missing, {', '.join(unknown) or 'none'} unknown"
        raise DatasetError(msg)


def _row(values: Mapping[str, ArrayLike], groups: Mapping[str, tuple[str, ...]], where: str) -> NDArray[np.float32]:
    _same_keys(values, groups, where)
    parts = []
    for key, names in groups.items():
        part = np.asarray(values[key], dtype=np.float32)
        if part.shape != (len(names),):
            msg = f"{where}.{key} has shape {part.shape}, but its dimensions are {', '.join(names)}"
            raise DatasetError(msg)
        if not np.isfinite(part).all():
            msg = f"{where}.{key} is not finite: {dict(zip(names, part.tolist(), strict=True))}"
            raise DatasetError(msg)
        parts.append(part)
    return np.concatenate(parts)
