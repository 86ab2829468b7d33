"""Takes finished episodes into a LeRobot dataset, one by one; a crash at any moment leaves a dataset that loads.

Order of an episode: rows, videos and stamps get their final names, then the tables under ``meta/`` follow, then
``info.json``. A note of the episode under way lets the next writer finish what a crash has cut short.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groot_ros.dataset.column_statistics import episode_entry
from groot_ros.dataset.directory_lock import lock_directory
from groot_ros.dataset.files import move_file, read_json, write_json
from groot_ros.dataset.image_statistics import ImageHistogram, video_histogram
from groot_ros.dataset.layout import (
    CHUNK_SIZE,
    GROOT_VIEW,
    GROOT_VIEW_PATHS,
    INFO_FILE,
    V2_PATHS,
    V3_PATHS,
    LayoutVersion,
    read_info,
)
from groot_ros.dataset.metadata_v2 import MetadataV2
from groot_ros.dataset.metadata_v3 import FinishedEpisode, MetadataV3
from groot_ros.dataset.modality import ACTION_COLUMN, STATE_COLUMN
from groot_ros.dataset.reader import Dataset, open_dataset
from groot_ros.dataset.spec import DatasetSpec
from groot_ros.dataset.stage import (
    PARTIAL,
    READY,
    ROWS_FILE,
    STAGING,
    STAMPS_FILE,
    TASKS_FILE,
    UNDER_WAY,
    EpisodeStage,
    ready_stages,
)
from groot_ros.dataset.stamps import read_histograms, read_stamps
from groot_ros.dataset.statistics import DatasetStatistics, dataset_statistics, merged_histogram
from groot_ros.dataset.tables import column_array, is_number, read_table, rows_table, write_table
from groot_ros.dataset.video_reader import VideoReader
from groot_ros.errors import DatasetError

# The statistics of the whole dataset are made anew when it has grown by this factor, and at the end: so their cost
# stays in proportion to the data however many episodes come one by one.
_STATISTICS_GROWTH = 1.5


class DatasetWriter:
    """Writes one dataset; a second writer for the same directory is refused while this one is open.

    An existing dataset is continued: also one that LeRobot has appended to, and one whose writer has crashed.

    Args:
        root: Directory of the dataset; made where it does not exist.
        spec: What every episode holds; must agree with what is there.
        version: ``V3_0``, with the GR00T view in ``groot/``, or ``V2_1``.

    Raises:
        DatasetError: The directory holds something else, or a dataset of another shape, or is in use.

    """

    def __init__(self, root: Path, spec: DatasetSpec, *, version: LayoutVersion = LayoutVersion.V3_0) -> None:
        if version is LayoutVersion.V2_0:
            msg = "LeRobot v2.0 is read, but not written: write v3.0 or v2.1"
            raise DatasetError(msg)
        self._root = root
        self._spec = spec
        self._features = spec.features()
        self._cameras = [name for name, feature in self._features.items() if feature["dtype"] == "video"]
        self._paths = V3_PATHS if version is LayoutVersion.V3_0 else V2_PATHS
        self._lock = lock_directory(root)
        try:
            existing = self._check_existing(version)
            self._v3 = MetadataV3(root, spec) if version is LayoutVersion.V3_0 else None
            view_root, view_paths = (root / GROOT_VIEW, GROOT_VIEW_PATHS) if self._v3 else (root, V2_PATHS)
            self._v2 = MetadataV2(view_root, spec, view_paths)
            # The view first: once info.json of the dataset itself is written, the episode is in.
            self._metadata: list[MetadataV2 | MetadataV3] = [self._v2, *([self._v3] if self._v3 else [])]
            self._lengths = [episode.length for episode in existing.episodes] if existing else []
            self._tasks = [existing.tasks[index] for index in sorted(existing.tasks)] if existing else []
            self._names: dict[str, int] = {}
            self._statistics_at = 0  # episodes that stats.json covers
            if existing:
                self._continue(existing)
            self._finish_what_was_under_way()
        except BaseException:
            os.close(self._lock)
            raise

    @property
    def total_episodes(self) -> int:
        """Episodes in the dataset."""
        return len(self._lengths)

    @property
    def total_frames(self) -> int:
        """Rows in the dataset."""
        return sum(self._lengths)

    @property
    def names(self) -> dict[str, int]:
        """Name of an episode's source, as its stage was called, to episode index: what need not be made again."""
        return dict(self._names)

    @contextmanager
    def episode(
        self, name: str, *, labels: Mapping[str, Any] | None = None, threads: int = 0
    ) -> Iterator[EpisodeStage]:
        """Write the next episode here and now: the rows added inside the block become an episode at its end."""
        with EpisodeStage(self._root, self._spec, name, labels=labels, threads=threads) as stage:
            yield stage
        self.commit(name)

    def commit(self, name: str) -> int:
        """Take in the finished stage ``name`` and return its episode index.

        One that could not be taken in to the end, as on a full disk, comes first: some of its files lie in the places
        of the next episode.

        Raises:
            DatasetError: No such stage, a damaged one, a name that is in the dataset already, or a full disk.

        """
        if name in self._names:
            msg = f"{self._root} has {name!r} already, as episode {self._names[name]}"
            raise DatasetError(msg)
        if name not in ready_stages(self._root):
            msg = f"no finished episode {name!r} lies in {self._root / STAGING}"
            raise DatasetError(msg)
        self._finish_what_was_under_way(unless=name)
        self._take_in(name)
        self._clear(name)
        return self._names[name]

    def commit_all(self) -> list[int]:
        """Take in all finished stages by name, and return their episode indices."""
        return [self.commit(name) for name in ready_stages(self._root) if name not in self._names]

    def finish(self) -> None:
        """Bring the statistics up to date and remove what unfinished stages left.

        Call it when nothing is staged any more.

        Raises:
            DatasetError: The system refused to write.

        """
        if self.total_episodes and self._statistics_at != self.total_episodes:
            self._write_statistics()
            self._write_info()
        if not ready_stages(self._root).keys() - self._names.keys():
            shutil.rmtree(self._root / STAGING, ignore_errors=True)

    def close(self) -> None:
        """Let other writers in."""
        os.close(self._lock)

    def __enter__(self) -> DatasetWriter:
        """Return the writer."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Finish, unless an exception ends the block; close in any case."""
        try:
            if kind is None:
                self.finish()
        finally:
            self.close()

    def _check_existing(self, version: LayoutVersion) -> Dataset | None:
        if not (self._root / INFO_FILE).exists():
            strangers = [path.name for path in self._root.iterdir() if not _is_ours(path.name)]
            if strangers:
                msg = f"{self._root} holds {', '.join(sorted(strangers)[:5])}, but no dataset: give an empty directory"
                raise DatasetError(msg)
            return None
        info = read_info(self._root)
        wanted: dict[str, Any] = {
            "layout": version.value,
            "fps": float(self._spec.fps),
            "robot_type": self._spec.robot_type,
        }
        found: dict[str, Any] = {"layout": info.version.value, "fps": info.fps, "robot_type": info.robot_type}
        for name, feature in self._features.items():
            wanted[name] = _comparable(feature)
            found[name] = _comparable(info.features.get(name))
        for name in info.features.keys() - self._features.keys():
            wanted[name], found[name] = None, _comparable(info.features[name])
        for name, value in wanted.items():
            if found[name] != value:
                msg = f"{self._root} cannot be continued: its {name} is {found[name]}, but the new episodes' is {value}"
                raise DatasetError(msg)
        return open_dataset(self._root)

    def _continue(self, existing: Dataset) -> None:
        first_frame = 0
        for episode in existing.episodes:
            if self._v3 and (episode.data_file, *episode.video_files.values()) != self._files(episode.index):
                msg = (
                    f"{self._root}: episode {episode.index} shares its files with others or has another tool's names, "
                    f"but each episode must have files of its own to be seen by GR00T: write a new dataset"
                )
                raise DatasetError(msg)
            if episode.index >= self._v2.total_episodes:  # appended by LeRobot, which knows nothing of the view
                self._v2.put_episode(
                    FinishedEpisode(
                        index=episode.index,
                        length=episode.length,
                        first_frame=first_frame,
                        tasks=episode.tasks,
                        statistics=self._episode_statistics(episode.index, existing.rows(episode.index)),
                    )
                )
            stamps = self._stamps_file(episode.index)
            if stamps.exists():
                name = read_stamps(stamps).labels.get("name")
                self._names |= {name: episode.index} if name else {}
            first_frame += episode.length
        self._v2.put_tasks(self._tasks)

    def _under_way(self) -> dict[str, Any]:
        note = self._root / STAGING / UNDER_WAY
        return read_json(note) if note.exists() else {"name": None, "episode_index": None}

    def _finish_what_was_under_way(self, *, unless: str | None = None) -> None:
        note = self._under_way()
        if note["name"] in (None, unless):
            return
        if note["episode_index"] == self.total_episodes and note["name"] in ready_stages(self._root):
            self._take_in(note["name"])
        self._clear(note["name"])

    def _clear(self, name: str) -> None:
        staging = self._root / STAGING
        shutil.rmtree(staging / (name + READY), ignore_errors=True)
        (staging / UNDER_WAY).unlink(missing_ok=True)

    def _take_in(self, name: str) -> None:
        index = self.total_episodes
        note = {"name": name, "episode_index": index}
        goes_on = self._under_way() == note
        stage = self._root / STAGING / (name + READY)
        tasks: list[str] = read_json(stage / TASKS_FILE)["tasks"]
        all_tasks = [*self._tasks, *(task for task in tasks if task not in self._tasks)]
        rows = self._complete_rows(stage / ROWS_FILE, index, [all_tasks.index(task) for task in tasks])
        length = len(rows[STATE_COLUMN])
        data_file, *video_files = self._files(index)
        videos = {stage / f"{camera}.mp4": file for camera, file in zip(self._cameras, video_files, strict=True)}
        moves = videos | {stage / STAMPS_FILE: self._stamps_file(index)}
        found = {source: _present(source, target if goes_on else None) for source, target in moves.items()}
        for source in videos:
            _check_frames(found[source], length)
        if not goes_on:  # from here on it is this episode's place, and nothing but the system can refuse
            write_json(self._root / STAGING / UNDER_WAY, note)
        for source, target in moves.items():
            if found[source] == source:
                move_file(source, target)
        write_table(data_file, rows_table(rows))
        episode = FinishedEpisode(
            index=index,
            length=length,
            first_frame=self.total_frames,
            tasks=tuple(tasks),
            statistics=self._episode_statistics(index, rows),
        )
        for metadata in self._metadata:
            metadata.put_tasks(all_tasks)
            metadata.put_episode(episode)
        known_tasks, self._tasks = self._tasks, all_tasks
        self._lengths.append(length)
        try:
            if self.total_episodes >= self._statistics_at * _STATISTICS_GROWTH:
                self._write_statistics()
            self._write_info()
        except BaseException:  # it is not in, and is taken in once more
            self._tasks = known_tasks
            self._lengths.pop()
            raise
        self._names[name] = index

    def _complete_rows(self, path: Path, index: int, task_indices: list[int]) -> dict[str, NDArray[Any]]:
        """Return all columns of the dataset for the rows in a stage."""
        table = read_table(path)
        tasks = np.array(task_indices, dtype=np.int64)[column_array(table, "task", path)]
        frames = np.arange(len(table), dtype=np.int64)
        return {
            STATE_COLUMN: column_array(table, STATE_COLUMN, path),
            ACTION_COLUMN: column_array(table, ACTION_COLUMN, path),
            "timestamp": (frames / self._spec.fps).astype(np.float32),
            "frame_index": frames,
            "episode_index": np.full(len(table), index, dtype=np.int64),
            "index": frames + self.total_frames,
            "task_index": tasks,
        }

    def _episode_statistics(self, index: int, rows: Mapping[str, NDArray[Any]]) -> dict[str, dict[str, Any]]:
        histograms = self._histograms(index)
        return {
            name: histograms[name].statistics() if name in histograms else episode_entry(feature, rows[name])
            for name, feature in self._features.items()
        }

    def _write_statistics(self) -> None:
        def episodes() -> Iterator[dict[str, NDArray[Any]]]:
            names = [name for name, feature in self._features.items() if is_number(feature)]
            for index in range(self.total_episodes):
                path = self._files(index)[0]
                table = read_table(path, names)
                yield {name: column_array(table, name, path) for name in names}

        statistics = dataset_statistics(
            episodes(),
            features=self._features,
            modality=self._spec.modality,
            total_frames=self.total_frames,
            relative_actions=self._spec.relative_actions,
        )
        histograms = [self._histograms(index) for index in range(self.total_episodes)]
        columns = {
            name: statistics.columns[name]
            if name in statistics.columns
            else merged_histogram(histogram[name] for histogram in histograms).statistics()
            for name in self._features
        }
        if self._v3:
            self._v3.put_statistics(columns)
        self._v2.put_statistics(DatasetStatistics(columns, statistics.relative))
        self._statistics_at = self.total_episodes

    def _write_info(self) -> None:
        for metadata in self._metadata:
            metadata.write_info(episodes=self.total_episodes, frames=self.total_frames, tasks=len(self._tasks))

    def _histograms(self, index: int) -> dict[str, ImageHistogram]:
        """Return the histograms that lie beside an episode; LeRobot writes none, so there the video is decoded."""
        stamps = self._stamps_file(index)
        if stamps.exists():
            return read_histograms(stamps)
        return {
            camera: video_histogram(file) for camera, file in zip(self._cameras, self._files(index)[1:], strict=True)
        }

    def _files(self, index: int) -> tuple[Path, ...]:
        """Return the file of rows and the videos, in the order of the cameras."""
        videos = [self._path(self._paths.video, index, camera) for camera in self._cameras]
        return self._path(self._paths.data, index), *videos

    def _stamps_file(self, index: int) -> Path:
        return self._path(self._paths.stamps, index)

    def _path(self, template: str, index: int, camera: str = "") -> Path:
        chunk = index // CHUNK_SIZE
        return self._root / template.format(
            chunk_index=chunk, file_index=index, episode_chunk=chunk, episode_index=index, video_key=camera
        )


def _is_ours(name: str) -> bool:
    """Return whether a writer that was cut short before its first episode may have left this name behind."""
    return name in (STAGING, "data", "videos", "stamps", "meta", GROOT_VIEW) or name.endswith(PARTIAL)


def _comparable(feature: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if feature is None else {key: feature.get(key) for key in ("dtype", "shape", "names")}


def _present(source: Path, target: Path | None) -> Path:
    """Where a file of a stage lies: at ``target`` already where it was moved before a crash."""
    if source.exists():
        return source
    if target is not None and target.exists():
        return target
    msg = f"{source} is missing: the finished episode is damaged; make it again"
    raise DatasetError(msg)


def _check_frames(file: Path, rows: int) -> None:
    video = VideoReader(file)
    video.close()
    if video.frame_count != rows:
        msg = f"{file} has {video.frame_count} frames, but the episode has {rows} rows: make it again"
        raise DatasetError(msg)
