"""Where the episodes of a dataset lie: their rows, their videos, and their place in files that hold several."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from groot_ros.dataset.files import read_json_lines
from groot_ros.dataset.layout import INFO_FILE, V2_PATHS, V3_PATHS, DatasetInfo
from groot_ros.dataset.metadata_v2 import EPISODES_FILE
from groot_ros.dataset.metadata_v3 import read_episode_rows
from groot_ros.errors import DatasetError


@dataclass(frozen=True)
class EpisodeEntry:
    """Where an episode lies.

    Attributes:
        index: Its number.
        length: Rows.
        tasks: Its tasks in words.
        data_file: Parquet file with its rows.
        first_row: Its first row in that file.
        video_files: Video feature to file.
        video_starts_s: Video feature to the time of its first frame in that file; empty where files hold one episode.
        stamps_file: Where its source stamps lie, if it has any.

    """

    index: int
    length: int
    tasks: tuple[str, ...]
    data_file: Path
    first_row: int
    video_files: dict[str, Path]
    video_starts_s: dict[str, float]
    stamps_file: Path


def episodes_v3(root: Path, info: DatasetInfo) -> list[EpisodeEntry]:
    """The episodes of a dataset v3.0, whose files may hold several."""
    rows = read_episode_rows(root, info.total_episodes)
    first_of_file: dict[tuple[int, int], int] = {}
    for row in rows:
        place = (row["data/chunk_index"], row["data/file_index"])
        first_of_file[place] = min(first_of_file.get(place, row["dataset_from_index"]), row["dataset_from_index"])
    episodes = []
    for row in rows:
        chunk, number = row["data/chunk_index"], row["data/file_index"]
        features = [name for name in _video_features(info) if f"videos/{name}/file_index" in row]
        episodes.append(
            EpisodeEntry(
                index=row["episode_index"],
                length=row["length"],
                tasks=tuple(row["tasks"]),
                data_file=root / info.file(info.data_path, chunk=chunk, number=number),
                first_row=row["dataset_from_index"] - first_of_file[chunk, number],
                video_files={
                    name: root
                    / info.file(
                        info.video_path or V3_PATHS.video,
                        chunk=row[f"videos/{name}/chunk_index"],
                        number=row[f"videos/{name}/file_index"],
                        video_key=name,
                    )
                    for name in features
                },
                video_starts_s={name: row[f"videos/{name}/from_timestamp"] for name in features},
                stamps_file=root / info.file(V3_PATHS.stamps, chunk=chunk, number=number),
            )
        )
    return episodes


def episodes_v2(root: Path, info: DatasetInfo) -> list[EpisodeEntry]:
    """The episodes of a dataset v2.x, one a file.

    Raises:
        DatasetError: Episodes are missing in the metadata.

    """
    path = root / EPISODES_FILE
    records = read_json_lines(path, ("episode_index", "tasks", "length"))
    lines = sorted(records, key=lambda line: int(line["episode_index"]))[: info.total_episodes]
    if [line["episode_index"] for line in lines] != list(range(info.total_episodes)):
        msg = f"{path} must have one line for each of the {info.total_episodes} episodes of {INFO_FILE}"
        raise DatasetError(msg)
    # Within the GR00T view everything lies in the dataset around it, and so do the stamps.
    stamps = V2_PATHS.stamps if not info.data_path.startswith("../") else "../" + V3_PATHS.stamps
    episodes = []
    for line in lines:
        number = int(line["episode_index"])
        chunk = number // info.chunks_size
        episodes.append(
            EpisodeEntry(
                index=number,
                length=int(line["length"]),
                tasks=tuple(line["tasks"]),
                data_file=root / info.file(info.data_path, chunk=chunk, number=number),
                first_row=0,
                video_files={
                    name: root
                    / info.file(info.video_path or V2_PATHS.video, chunk=chunk, number=number, video_key=name)
                    for name in _video_features(info)
                },
                video_starts_s={},
                stamps_file=root / info.file(stamps, chunk=chunk, number=number),
            )
        )
    return episodes


def _video_features(info: DatasetInfo) -> list[str]:
    return [name for name, feature in info.features.items() if feature["dtype"] == "video"]
