"""The versions of the LeRobot layout, and ``info.json``, which says where everything lies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from groot_ros.dataset.files import read_json
from groot_ros.errors import DatasetError

INFO_FILE = "meta/info.json"
MODALITY_FILE = "meta/modality.json"
STATISTICS_FILE = "meta/stats.json"
RELATIVE_STATISTICS_FILE = "meta/relative_stats.json"
TASKS_TABLE = "meta/tasks.parquet"
EPISODES_TABLES = "meta/episodes"
GROOT_VIEW = "groot"
CHUNK_SIZE = 1000

# The columns that every dataset has beside its own features.
INDEX_FEATURES: dict[str, dict[str, Any]] = {
    "timestamp": {"dtype": "float32", "shape": [1], "names": None},
    "frame_index": {"dtype": "int64", "shape": [1], "names": None},
    "episode_index": {"dtype": "int64", "shape": [1], "names": None},
    "index": {"dtype": "int64", "shape": [1], "names": None},
    "task_index": {"dtype": "int64", "shape": [1], "names": None},
}


class LayoutVersion(Enum):
    """``codebase_version`` of the layouts that are read; V2_0 is not written."""

    V3_0 = "v3.0"
    V2_1 = "v2.1"
    V2_0 = "v2.0"


@dataclass(frozen=True)
class PathTemplates:
    """Where the files of an episode lie, relative to the dataset, in the format strings of ``info.json``."""

    data: str
    video: str
    stamps: str


# One file an episode: the file number is the episode's, the chunk number its thousands.
V3_PATHS = PathTemplates(
    data="data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet",
    video="videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4",
    stamps="stamps/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet",
)
V2_PATHS = PathTemplates(
    data="data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet",
    video="videos/chunk-{episode_chunk:03d}/{video_key}/episode_{episode_index:06d}.mp4",
    stamps="stamps/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet",
)
# The view names the files of the v3.0 dataset around it by the numbers that GR00T formats with.
GROOT_VIEW_PATHS = PathTemplates(
    data="../data/chunk-{episode_chunk:03d}/file-{episode_index:03d}.parquet",
    video="../videos/{video_key}/chunk-{episode_chunk:03d}/file-{episode_index:03d}.mp4",
    stamps="../stamps/chunk-{episode_chunk:03d}/file-{episode_index:03d}.parquet",
)


@dataclass(frozen=True)
class DatasetInfo:
    """What ``info.json`` says, as far as it is needed.

    Attributes:
        version: Layout.
        fps: Rows a second.
        robot_type: Name of the robot, None where there is none.
        features: Column or camera to its description (``dtype``, ``shape``, ``names``, ...).
        total_episodes: Number of episodes.
        total_frames: Number of rows.
        chunks_size: Episodes (v2) in one chunk directory.
        data_path: Format string of the row files.
        video_path: Format string of the video files; None where there are no videos.
        notes: What this package noted about the making of the dataset; empty for datasets of others.

    """

    version: LayoutVersion
    fps: float
    robot_type: str | None
    features: dict[str, dict[str, Any]]
    total_episodes: int
    total_frames: int
    chunks_size: int
    data_path: str
    video_path: str | None
    notes: dict[str, Any]

    def file(self, template: str, *, chunk: int, number: int, video_key: str = "") -> str:
        """Fill in a format string: both spellings of the numbers are given, so that one call serves all layouts."""
        return template.format(
            chunk_index=chunk, file_index=number, episode_chunk=chunk, episode_index=number, video_key=video_key
        )


def read_info(root: Path) -> DatasetInfo:
    """Return ``meta/info.json`` of the dataset in ``root``.

    Raises:
        DatasetError: Missing, damaged, of an unknown version, or without a key that is needed.

    """
    path = root / INFO_FILE
    if not path.is_file():
        inside = [child for child in sorted(root.glob("*")) if (child / INFO_FILE).is_file()] if root.is_dir() else []
        hint = f"; {inside[0]} has one" if inside else ""
        msg = f"{root} is not a LeRobot dataset: there is no {INFO_FILE} in it{hint}"
        raise DatasetError(msg)
    content = read_json(path)
    try:
        version = LayoutVersion(content["codebase_version"])
    except (KeyError, ValueError) as error:
        allowed = ", ".join(version.value for version in LayoutVersion)
        found = content.get("codebase_version", "none")
        msg = f"{path}: codebase_version is {found}, but only {allowed} are read"
        raise DatasetError(msg) from error
    features = content.get("features")
    if not isinstance(features, dict) or not all(_is_feature(feature) for feature in features.values()):
        msg = f"{path}: features must map names to objects with dtype and shape"
        raise DatasetError(msg)
    fps = content.get("fps")
    if not isinstance(fps, (int, float)) or fps <= 0:
        msg = f"{path}: fps must be a positive number, but is {fps!r}"
        raise DatasetError(msg)
    default = V3_PATHS if version is LayoutVersion.V3_0 else V2_PATHS
    return DatasetInfo(
        version=version,
        fps=float(fps),
        robot_type=content.get("robot_type"),
        features=features,
        total_episodes=_count(content, "total_episodes", path),
        total_frames=_count(content, "total_frames", path),
        chunks_size=int(content.get("chunks_size", CHUNK_SIZE)),
        data_path=content.get("data_path", default.data),
        video_path=content.get("video_path", default.video),
        notes=content.get("groot_ros", {}),
    )


def _is_feature(feature: object) -> bool:
    return isinstance(feature, Mapping) and "dtype" in feature and "shape" in feature


def _count(content: Mapping[str, Any], key: str, path: Path) -> int:
    value = content.get(key)
    if not isinstance(value, int) or value < 0:
        msg = f"{path}: {key} must be a whole number, but is {value!r}"
        raise DatasetError(msg)
    return value
