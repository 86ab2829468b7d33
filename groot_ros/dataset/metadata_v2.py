"""The JSON files under ``meta/`` of a v2.1 dataset with GR00T's additions: the old layout, and the view inside v3.0.

The view is nothing but these files: its paths lead to the rows and videos of the v3.0 dataset around it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from groot_ros.dataset.column_statistics import V2_STATISTICS, groot_relative_statistics, groot_statistics
from groot_ros.dataset.files import read_json, whole_file, write_json
from groot_ros.dataset.json_lines import JsonLines
from groot_ros.dataset.layout import (
    CHUNK_SIZE,
    INFO_FILE,
    MODALITY_FILE,
    RELATIVE_STATISTICS_FILE,
    STATISTICS_FILE,
    LayoutVersion,
    PathTemplates,
)
from groot_ros.dataset.metadata_v3 import FinishedEpisode
from groot_ros.dataset.spec import DatasetSpec
from groot_ros.dataset.statistics import DatasetStatistics

EPISODES_FILE = "meta/episodes.jsonl"
TASKS_FILE = "meta/tasks.jsonl"
EPISODES_STATISTICS_FILE = "meta/episodes_stats.jsonl"


class MetadataV2:
    """Writes ``meta/`` of a v2.1 dataset or of the GR00T view; `write_info` comes last."""

    def __init__(self, root: Path, spec: DatasetSpec, paths: PathTemplates) -> None:
        self._root = root
        self._spec = spec
        self._paths = paths
        self._features = spec.features()
        info = root / INFO_FILE
        known = int(read_json(info).get("total_episodes", 0)) if info.exists() else 0
        self._episodes = JsonLines(root / EPISODES_FILE, known)
        self._statistics = JsonLines(root / EPISODES_STATISTICS_FILE, known)

    @property
    def total_episodes(self) -> int:
        """Episodes whose lines are written."""
        return min(len(self._episodes), len(self._statistics))

    def put_episode(self, episode: FinishedEpisode) -> None:
        """Write the lines of an episode behind those before it."""
        line = {"episode_index": episode.index, "tasks": list(episode.tasks), "length": episode.length}
        self._episodes.put(episode.index, line)
        statistics = {name: {key: entry[key] for key in V2_STATISTICS} for name, entry in episode.statistics.items()}
        self._statistics.put(episode.index, {"episode_index": episode.index, "stats": statistics})

    def put_tasks(self, tasks: list[str]) -> None:
        """Write all tasks."""
        with whole_file(self._root / TASKS_FILE) as temporary:
            lines = [json.dumps({"task_index": i, "task": task}, ensure_ascii=False) for i, task in enumerate(tasks)]
            temporary.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    def put_statistics(self, statistics: DatasetStatistics) -> None:
        """Write ``stats.json`` and, where there are relative actions, ``relative_stats.json``.

        A file of relative statistics that no longer belongs to the dataset is removed.
        """
        write_json(self._root / STATISTICS_FILE, groot_statistics(statistics.columns, self._features))
        relative_file = self._root / RELATIVE_STATISTICS_FILE
        if statistics.relative:
            write_json(relative_file, groot_relative_statistics(statistics.relative))
        else:
            relative_file.unlink(missing_ok=True)

    def write_info(self, *, episodes: int, frames: int, tasks: int) -> None:
        """Write ``modality.json`` and then ``info.json`` with these totals."""
        cameras = [name for name, feature in self._features.items() if feature["dtype"] == "video"]
        content: dict[str, Any] = {
            "codebase_version": LayoutVersion.V2_1.value,
            "robot_type": self._spec.robot_type,
            "total_episodes": episodes,
            "total_frames": frames,
            "total_tasks": tasks,
            "total_videos": episodes * len(cameras),
            "total_chunks": -(-episodes // CHUNK_SIZE),
            "chunks_size": CHUNK_SIZE,
            "fps": self._spec.fps,
            "splits": {"train": f"0:{episodes}"},
            "data_path": self._paths.data,
            "video_path": self._paths.video if cameras else None,
            "features": self._features,
        }
        if self._spec.notes:
            content["groot_ros"] = dict(self._spec.notes)
        write_json(self._root / MODALITY_FILE, self._spec.modality.to_json())
        write_json(self._root / INFO_FILE, content)


def read_v2_tasks(lines: Sequence[Mapping[str, Any]]) -> dict[int, str]:
    """Return task index to task from the records of ``tasks.jsonl``."""
    return {int(line["task_index"]): str(line["task"]) for line in lines}
