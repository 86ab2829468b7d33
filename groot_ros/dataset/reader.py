"""LeRobot datasets v3.0, v2.1 and v2.0, with or without GR00T's ``modality.json``: rows, frames, tasks, stamps."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groot_ros.dataset.episodes import EpisodeEntry, episodes_v2, episodes_v3
from groot_ros.dataset.files import read_json, read_json_lines
from groot_ros.dataset.layout import (
    GROOT_VIEW,
    INFO_FILE,
    MODALITY_FILE,
    DatasetInfo,
    LayoutVersion,
    read_info,
)
from groot_ros.dataset.metadata_v2 import TASKS_FILE, read_v2_tasks
from groot_ros.dataset.metadata_v3 import read_tasks
from groot_ros.dataset.modality import (
    TASK_COLUMN,
    Modality,
    ModalitySlice,
    nearest_spelling,
    parse_modality,
    similar_name,
    whole_columns,
)
from groot_ros.dataset.stamps import EpisodeStamps, read_stamps
from groot_ros.dataset.tables import column_array, is_number, read_table
from groot_ros.dataset.video_reader import VideoReader
from groot_ros.errors import DatasetError

_OPEN_VIDEOS = 64  # that are kept open for the next access
_KEPT_STAMPS = 512  # episodes
_KEPT_ROW_BYTES = 256 << 20  # of tables, so that short episodes are read once and not for every sample of them


@dataclass
class _Caches:
    """Files that are open in this process; another process opens its own."""

    rows: OrderedDict[Path, dict[str, NDArray[Any]]] = field(default_factory=OrderedDict)
    videos: OrderedDict[Path, VideoReader] = field(default_factory=OrderedDict)
    process: int = field(default_factory=os.getpid)
    inherited: list[OrderedDict[Path, VideoReader]] = field(default_factory=list)

    def own_videos(self) -> OrderedDict[Path, VideoReader]:
        """Return the videos that this process has opened.

        Those of the process that it was forked from are useless here: their decoders wait for threads that were not
        forked, also when they are closed. So they are set aside.
        """
        if self.process != os.getpid():
            self.inherited.append(self.videos)
            self.videos, self.process = OrderedDict(), os.getpid()
        return self.videos

    stamps: OrderedDict[Path, EpisodeStamps | None] = field(default_factory=OrderedDict)

    def __reduce__(self) -> tuple[type[_Caches], tuple[()]]:
        """Travel to another process without the open files."""
        return _Caches, ()


@dataclass(frozen=True)
class Dataset:
    """A dataset that is being read; made by `open_dataset`. May be sent to other processes.

    Attributes:
        root: Its directory.
        info: What ``info.json`` says.
        modality: Groups and cameras by modality key.
        tasks: Task index to task in words.
        episodes: Where the episodes lie, by index.

    """

    root: Path
    info: DatasetInfo
    modality: Modality
    tasks: dict[int, str]
    episodes: list[EpisodeEntry]
    _caches: _Caches = field(default_factory=_Caches, repr=False, compare=False)

    @property
    def total_frames(self) -> int:
        """Rows of all episodes."""
        return sum(episode.length for episode in self.episodes)

    def independent(self) -> Dataset:
        """Return the same dataset with files of its own, for another thread."""
        return replace(self, _caches=_Caches())

    def rows(self, episode: int) -> dict[str, NDArray[Any]]:
        """Return all numeric columns of an episode, ``(N,)`` or ``(N, D)``.

        Raises:
            DatasetError: The file is missing, damaged, or holds other rows than the metadata says.

        """
        entry = self._entry(episode)
        columns = self._read_rows(entry.data_file)
        part = slice(entry.first_row, entry.first_row + entry.length)
        rows = {name: values[part] for name, values in columns.items()}
        count = len(next(iter(rows.values())))
        if count != entry.length:
            msg = f"{entry.data_file}: episode {episode} is to have {entry.length} rows, but {count} are there"
            raise DatasetError(msg)
        indices = rows.get("episode_index")
        if indices is not None and (indices != episode).any():
            msg = (
                f"{entry.data_file}: the rows of episode {episode} carry the episode_index "
                f"{', '.join(str(value) for value in np.unique(indices)[:5])}"
            )
            raise DatasetError(msg)
        return rows

    def column(self, episode: int, name: str) -> NDArray[Any]:
        """Return one numeric column of an episode.

        Raises:
            DatasetError: No such column.

        """
        rows = self.rows(episode)
        if name not in rows:
            msg = (
                f"{self._entry(episode).data_file} has no numeric column {name!r}{nearest_spelling(name, rows)}; "
                f"it has {', '.join(rows)}"
            )
            raise DatasetError(msg)
        return rows[name]

    def state(self, episode: int, key: str) -> NDArray[Any]:
        """Return a state group of an episode, ``(N, D)`` in the dataset's own units and type."""
        return self._group(episode, key, self.modality.state, "state")

    def action(self, episode: int, key: str) -> NDArray[Any]:
        """Return an action group of an episode, ``(N, D)`` in the dataset's own units and type."""
        return self._group(episode, key, self.modality.action, "action")

    def instruction(self, episode: int, row: int, annotation: str | None = None) -> str:
        """Return the task of a row in words.

        Args:
            episode: Episode.
            row: Row in the episode.
            annotation: Annotation key of ``modality.json`` (without ``annotation.``); None takes ``task_index``.

        Raises:
            DatasetError: No such annotation, or an index without a task.

        """
        if annotation is None:
            column = TASK_COLUMN
        elif annotation in self.modality.annotation:
            column = self.modality.annotation[annotation]
        else:
            msg = (
                f"{self.root} has no annotation {annotation!r}"
                f"{nearest_spelling(annotation, self.modality.annotation)}; "
                f"it has {', '.join(self.modality.annotation) or 'none'}"
            )
            raise DatasetError(msg)
        index = int(self.column(episode, column)[row])
        if index not in self.tasks:
            msg = (
                f"{self.root}: row {row} of episode {episode} has {column} {index}, but the tasks are "
                f"{', '.join(str(known) for known in self.tasks)}"
            )
            raise DatasetError(msg)
        return self.tasks[index]

    def frames(self, episode: int, camera: str, rows: Sequence[int]) -> NDArray[np.uint8]:
        """Return frames of a camera, uint8 ``(len(rows), H, W, 3)`` RGB.

        Args:
            episode: Episode.
            camera: Camera key of the modality.
            rows: Rows in the episode, in any order.

        Raises:
            DatasetError: No such camera or row; the video is missing (the message names where one of a similar name
                lies), damaged, or shorter than the episode.

        """
        entry = self._entry(episode)
        for row in rows:
            if not 0 <= row < entry.length:
                msg = f"episode {episode} has {entry.length} rows, but row {row} is asked for"
                raise DatasetError(msg)
        video, first = self.video(episode, camera)
        if first + entry.length > video.frame_count:
            msg = (
                f"{video.path} has {video.frame_count - first} frames from the start of episode {episode}, "
                f"but the episode has {entry.length} rows"
            )
            raise DatasetError(msg)
        return video.read([first + row for row in rows])

    def video(self, episode: int, camera: str) -> tuple[VideoReader, int]:
        """Return the open video of a camera and the number of the episode's first frame in it."""
        if camera not in self.modality.video:
            pictures = [name for name, feature in self.info.features.items() if feature["dtype"] == "image"]
            hint = f"; {', '.join(pictures)} are pictures in the rows, and only videos are read" if pictures else ""
            msg = (
                f"{self.root} has no camera {camera!r}{nearest_spelling(camera, self.modality.video)}; "
                f"it has {', '.join(self.modality.video) or 'none'}{hint}"
            )
            raise DatasetError(msg)
        return self.feature_video(episode, self.modality.video[camera])

    def feature_video(self, episode: int, feature: str) -> tuple[VideoReader, int]:
        """Return the open video of a video feature, and the number of the episode's first frame in it."""
        entry = self._entry(episode)
        if feature not in entry.video_files:
            msg = f"{self.root}: the metadata of episode {episode} names no file for the camera {feature!r}"
            raise DatasetError(msg)
        video = self._open_video(entry.video_files[feature], feature)
        start = entry.video_starts_s.get(feature)
        return video, 0 if start is None else video.number_at(start, tolerance_s=0.5 / self.info.fps)

    def stamps(self, episode: int) -> EpisodeStamps | None:
        """Return the exact source stamps of an episode, and what is known about it; None where none were kept."""
        cache, path = self._caches.stamps, self._entry(episode).stamps_file
        if path not in cache:
            cache[path] = read_stamps(path) if path.exists() else None
            if len(cache) > _KEPT_STAMPS:
                cache.popitem(last=False)
        cache.move_to_end(path)
        return cache[path]

    def _entry(self, episode: int) -> EpisodeEntry:
        if not 0 <= episode < len(self.episodes):
            msg = f"{self.root} has {len(self.episodes)} episodes, but episode {episode} is asked for"
            raise DatasetError(msg)
        return self.episodes[episode]

    def _group(self, episode: int, key: str, groups: dict[str, ModalitySlice], kind: str) -> NDArray[Any]:
        if key not in groups:
            msg = f"{self.root} has no {kind} group {key!r}{nearest_spelling(key, groups)}; it has {', '.join(groups)}"
            raise DatasetError(msg)
        part = groups[key]
        column = self.column(episode, part.column)
        return column.reshape(len(column), -1)[:, part.start : part.end]

    def _read_rows(self, path: Path) -> dict[str, NDArray[Any]]:
        cache = self._caches.rows
        if path not in cache:
            table = read_table(path)
            names = [name for name, feature in self.info.features.items() if is_number(feature)]
            cache[path] = {name: column_array(table, name, path) for name in names if name in table.column_names}
            if not cache[path]:
                msg = f"{path} has none of the columns that {INFO_FILE} names"
                raise DatasetError(msg)
            while len(cache) > 1 and _bytes(cache) > _KEPT_ROW_BYTES:
                cache.popitem(last=False)
        cache.move_to_end(path)
        return cache[path]

    def _open_video(self, path: Path, feature: str) -> VideoReader:
        cache = self._caches.own_videos()
        if path not in cache:
            if not path.is_file():
                raise DatasetError(_missing_video(path, feature))
            cache[path] = VideoReader(path)
            if len(cache) > _OPEN_VIDEOS:
                cache.popitem(last=False)[1].close()
        cache.move_to_end(path)
        return cache[path]


def _bytes(tables: Mapping[Path, Mapping[str, NDArray[Any]]]) -> int:
    return sum(column.nbytes for table in tables.values() for column in table.values())


def open_dataset(root: Path | str, modality: Modality | None = None) -> Dataset:
    """Open a dataset: its metadata is read and checked, rows and frames are read when asked for.

    Args:
        root: Directory with ``meta/info.json``: a dataset of any version, or the GR00T view inside one of v3.0.
        modality: Groups and cameras by key; None takes ``meta/modality.json``, the one of the GR00T view, or, where
            there is neither, the whole columns under the keys ``state`` and ``action``.

    Raises:
        DatasetError: Not a dataset, damaged, or of an unknown version.

    """
    root = Path(root)
    info = read_info(root)
    if info.version is LayoutVersion.V3_0:
        tasks, episodes = read_tasks(root), episodes_v3(root, info)
    else:
        tasks = read_v2_tasks(read_json_lines(root / TASKS_FILE, ("task_index", "task")))
        episodes = episodes_v2(root, info)
    return Dataset(root, info, modality or _find_modality(root, info), tasks, episodes)


def _find_modality(root: Path, info: DatasetInfo) -> Modality:
    for path in (root / MODALITY_FILE, root / GROOT_VIEW / MODALITY_FILE):
        if path.exists():
            return parse_modality(read_json(path), str(path), info.features)
    return whole_columns(info.features)


def _missing_video(path: Path, feature: str) -> str:
    """Say that a video is missing, and under which similar name one lies where there is no folder of this name."""
    own_folder = next((folder for folder in path.parents if folder.name == feature), None)
    if own_folder and not own_folder.exists():
        inside = path.relative_to(own_folder)
        others = [other.name for other in own_folder.parent.glob("*") if (other / inside).is_file()]
        actual = similar_name(feature, others)
        if actual:
            return (
                f"{INFO_FILE} names the camera {feature!r}, but its videos lie under {actual!r} in "
                f"{own_folder.parent}: give both the same name"
            )
    return f"{path} is missing: {INFO_FILE} names the camera {feature!r}, but it has no video there"
