"""The tables under ``meta/`` of a v3.0 dataset, with every column that LeRobot itself writes.

A missing ``stats/...`` column goes unnoticed until someone appends an episode with LeRobot: then nothing loads
any more.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from groot_ros.dataset.files import write_json
from groot_ros.dataset.layout import (
    CHUNK_SIZE,
    EPISODES_TABLES,
    INFO_FILE,
    STATISTICS_FILE,
    TASKS_TABLE,
    V3_PATHS,
    LayoutVersion,
)
from groot_ros.dataset.spec import DatasetSpec
from groot_ros.dataset.tables import read_table, write_table
from groot_ros.errors import DatasetError

EPISODES_PER_TABLE = 100  # each finished episode rewrites the last table, so tables are kept small
# LeRobot packs episodes into one file up to these sizes. Below one episode's size, it too writes one file an episode
# when it appends, which the GR00T view needs.
FILE_SIZE_MB = 0.001
_STATISTICS = ("min", "max", "mean", "std", "count", "q01", "q10", "q50", "q90", "q99")
_NEEDED = ("episode_index", "tasks", "length", "data/chunk_index", "data/file_index", "dataset_from_index")


@dataclass(frozen=True)
class FinishedEpisode:
    """An episode whose rows, videos and stamps lie in their places.

    Attributes:
        index: Number of the episode.
        length: Number of rows.
        first_frame: Rows of all episodes before it.
        tasks: Its tasks, in the order of their appearance.
        statistics: Feature to LeRobot's entry, for every feature.

    """

    index: int
    length: int
    first_frame: int
    tasks: tuple[str, ...]
    statistics: Mapping[str, Mapping[str, Any]]


class MetadataV3:
    """Writes ``meta/`` of a v3.0 dataset; `write_info` comes last, for only then do readers see the episode."""

    def __init__(self, root: Path, spec: DatasetSpec) -> None:
        self._root = root
        self._spec = spec
        self._features = spec.features()
        self._cameras = [name for name, feature in self._features.items() if feature["dtype"] == "video"]

    def put_episode(self, episode: FinishedEpisode) -> None:
        """Write the row of an episode behind the rows of those before it.

        Raises:
            DatasetError: The system refused to write.

        """
        path, rows = self._last_table(episode.index)
        chunk, number = int(path.parent.name.removeprefix("chunk-")), int(path.stem.removeprefix("file-"))
        rows.append(
            self._episode_row(episode) | {"meta/episodes/chunk_index": chunk, "meta/episodes/file_index": number}
        )
        write_table(path, pa.Table.from_pylist(rows, schema=self._schema()))

    def put_tasks(self, tasks: list[str]) -> None:
        """Write all tasks; the table is a pandas frame whose index is the task, as LeRobot expects."""
        table = pa.table({"task_index": pa.array(range(len(tasks)), pa.int64()), "task": pa.array(tasks, pa.string())})
        columns = [
            {"name": name, "field_name": name, "pandas_type": kind, "numpy_type": numpy_kind, "metadata": None}
            for name, kind, numpy_kind in (("task_index", "int64", "int64"), ("task", "unicode", "object"))
        ]
        pandas = {"index_columns": ["task"], "column_indexes": [], "columns": columns, "pandas_version": "2.2.0"}
        write_table(self._root / TASKS_TABLE, table.replace_schema_metadata({b"pandas": json.dumps(pandas).encode()}))

    def put_statistics(self, entries: Mapping[str, Mapping[str, Any]]) -> None:
        """Write ``stats.json``."""
        write_json(self._root / STATISTICS_FILE, {name: dict(entry) for name, entry in entries.items()})

    def write_info(self, *, episodes: int, frames: int, tasks: int) -> None:
        """Write ``info.json`` with these totals."""
        content: dict[str, Any] = {
            "codebase_version": LayoutVersion.V3_0.value,
            "robot_type": self._spec.robot_type,
            "total_episodes": episodes,
            "total_frames": frames,
            "total_tasks": tasks,
            "chunks_size": CHUNK_SIZE,
            "data_files_size_in_mb": FILE_SIZE_MB,
            "video_files_size_in_mb": FILE_SIZE_MB,
            "fps": self._spec.fps,
            "splits": {"train": f"0:{episodes}"},
            "data_path": V3_PATHS.data,
            "video_path": V3_PATHS.video if self._cameras else None,
            "features": self._features,
        }
        if self._spec.notes:
            content["groot_ros"] = dict(self._spec.notes)
        write_json(self._root / INFO_FILE, content)

    def _last_table(self, index: int) -> tuple[Path, list[dict[str, Any]]]:
        """Return the table that episode ``index`` belongs into, and the rows before it there."""
        tables = sorted((self._root / EPISODES_TABLES).glob("chunk-*/file-*.parquet"))
        for path in reversed(tables):
            rows = [row for row in read_table(path).to_pylist() if row["episode_index"] < index]
            if not rows:
                continue  # left behind by a write that was cut short: it is written anew
            if len(rows) < EPISODES_PER_TABLE:
                return path, rows
            number = (
                int(path.parent.name.removeprefix("chunk-")) * CHUNK_SIZE + int(path.stem.removeprefix("file-")) + 1
            )
            return self._table_path(number), []
        return self._table_path(0), []

    def _table_path(self, number: int) -> Path:
        chunk, file = divmod(number, CHUNK_SIZE)
        return self._root / EPISODES_TABLES / f"chunk-{chunk:03d}" / f"file-{file:03d}.parquet"

    def _episode_row(self, episode: FinishedEpisode) -> dict[str, Any]:
        chunk = episode.index // CHUNK_SIZE
        row: dict[str, Any] = {
            "episode_index": episode.index,
            "tasks": list(episode.tasks),
            "length": episode.length,
            "data/chunk_index": chunk,
            "data/file_index": episode.index,
            "dataset_from_index": episode.first_frame,
            "dataset_to_index": episode.first_frame + episode.length,
        }
        for camera in self._cameras:
            row[f"videos/{camera}/chunk_index"] = chunk
            row[f"videos/{camera}/file_index"] = episode.index
            row[f"videos/{camera}/from_timestamp"] = 0.0
            row[f"videos/{camera}/to_timestamp"] = episode.length / self._spec.fps
        for name, entry in episode.statistics.items():
            row |= {f"stats/{name}/{key}": entry[key] for key in _STATISTICS}
        return row

    def _schema(self) -> pa.Schema:
        whole, real = pa.int64(), pa.float64()
        fields = [("episode_index", whole), ("tasks", pa.list_(pa.string())), ("length", whole)]
        fields += [("data/chunk_index", whole), ("data/file_index", whole)]
        fields += [("dataset_from_index", whole), ("dataset_to_index", whole)]
        for camera in self._cameras:
            fields += [(f"videos/{camera}/chunk_index", whole), (f"videos/{camera}/file_index", whole)]
            fields += [(f"videos/{camera}/from_timestamp", real), (f"videos/{camera}/to_timestamp", real)]
        for name, feature in self._features.items():
            values = pa.list_(pa.list_(pa.list_(real))) if feature["dtype"] == "video" else pa.list_(real)
            limits = pa.list_(whole) if str(feature["dtype"]).startswith("int") else values
            kinds = {"min": limits, "max": limits, "count": pa.list_(whole)}
            fields += [(f"stats/{name}/{key}", kinds.get(key, values)) for key in _STATISTICS]
        return pa.schema([*fields, ("meta/episodes/chunk_index", whole), ("meta/episodes/file_index", whole)])


def read_episode_rows(root: Path, count: int) -> list[dict[str, Any]]:
    """Return the first ``count`` rows of the episodes tables, without statistics, ordered by episode.

    Raises:
        DatasetError: A table is damaged, or an episode has no row.

    """
    rows: dict[int, dict[str, Any]] = {}
    for path in sorted((root / EPISODES_TABLES).glob("chunk-*/file-*.parquet")):
        table = read_table(path)
        names = [name for name in table.column_names if not name.startswith("stats/")]
        missing = [name for name in _NEEDED if name not in names]
        if missing:
            msg = f"{path} has no column {', '.join(missing)}"
            raise DatasetError(msg)
        for row in table.select(names).to_pylist():
            rows[row["episode_index"]] = row
    absent = [index for index in range(count) if index not in rows]
    if absent:
        msg = f"{root / EPISODES_TABLES} has no row for episode {absent[0]}, but {INFO_FILE} counts {count} episodes"
        raise DatasetError(msg)
    return [rows[index] for index in range(count)]


def read_tasks(root: Path) -> dict[int, str]:
    """Return task index to task.

    Raises:
        DatasetError: Missing, damaged, or without the task's text.

    """
    path = root / TASKS_TABLE
    table = read_table(path)
    # pandas calls an index without a name __index_level_0__
    text = next((name for name in ("task", "__index_level_0__") if name in table.column_names), None)
    if text is None or "task_index" not in table.column_names:
        msg = f"{path} must have the columns task and task_index, but has {', '.join(table.column_names)}"
        raise DatasetError(msg)
    return dict(zip(table.column("task_index").to_pylist(), table.column(text).to_pylist(), strict=True))
