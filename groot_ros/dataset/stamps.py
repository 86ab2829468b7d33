"""The exact source stamps of every row and camera, in a file beside the rows, with what is known about the episode.

They are no columns of the dataset itself: whoever appends an episode with LeRobot would have to give them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groot_ros.dataset.image_statistics import ImageHistogram
from groot_ros.dataset.tables import column_array, read_table, rows_table, write_table

ROW_STAMP = "row"
_LABELS = b"groot_ros.labels"
_HISTOGRAM = "groot_ros.image_histogram."


@dataclass(frozen=True)
class EpisodeStamps:
    """What is kept beside the rows of an episode.

    Attributes:
        stamps_ns: Column to stamps in nanoseconds, int64 ``(N,)``. ``row`` is the reference stamp of each row, a video
            feature's name the capture time of its frame; more columns where the maker had more.
        labels: What is known of the episode: its source, whether it was a success, gaps, ...
        histograms: Video feature to the histogram of its pixels as they were before encoding.

    """

    stamps_ns: dict[str, NDArray[np.int64]]
    labels: dict[str, Any]
    histograms: dict[str, ImageHistogram]


def write_stamps(path: Path, stamps: EpisodeStamps) -> None:
    """Write the stamps of an episode, whole or not at all."""
    metadata = {_LABELS: json.dumps(stamps.labels, ensure_ascii=False).encode()}
    metadata |= {
        f"{_HISTOGRAM}{feature}".encode(): histogram.to_json().encode()
        for feature, histogram in stamps.histograms.items()
    }
    write_table(path, rows_table(stamps.stamps_ns).replace_schema_metadata(metadata))


def read_stamps(path: Path) -> EpisodeStamps:
    """Return what `write_stamps` wrote.

    Raises:
        DatasetError: Missing or damaged.

    """
    table = read_table(path)
    metadata: Mapping[bytes, bytes] = table.schema.metadata or {}
    return EpisodeStamps(
        stamps_ns={name: column_array(table, name, path) for name in table.column_names},
        labels=json.loads(metadata.get(_LABELS, b"{}")),
        histograms=_histograms(metadata),
    )


def read_histograms(path: Path) -> dict[str, ImageHistogram]:
    """Return only the histograms, without reading the stamps.

    Raises:
        DatasetError: Missing or damaged.

    """
    return _histograms(read_table(path, columns=[]).schema.metadata or {})


def _histograms(metadata: Mapping[bytes, bytes]) -> dict[str, ImageHistogram]:
    return {
        name.decode().removeprefix(_HISTOGRAM): ImageHistogram.from_json(text.decode())
        for name, text in metadata.items()
        if name.startswith(_HISTOGRAM.encode())
    }
