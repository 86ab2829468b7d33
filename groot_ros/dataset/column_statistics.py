"""Statistics of columns, in the entries that LeRobot and GR00T keep."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from groot_ros.dataset.spec import RelativeAction
from groot_ros.numerics.relative import RelativeKind
from groot_ros.numerics.statistics import Statistics, StreamingStatistics

QUANTILES = (0.01, 0.10, 0.50, 0.90, 0.99)
GROOT_STATISTICS = ("mean", "std", "min", "max", "q01", "q99")
V2_STATISTICS = ("min", "max", "mean", "std", "count")


class ColumnStatistics:
    """Statistics of one column in a single pass.

    Args:
        feature: The column's entry in ``info.json``.
        most_rows: At least as many rows as will come.

    """

    def __init__(self, feature: Mapping[str, Any], most_rows: int) -> None:
        self._is_whole = not str(feature["dtype"]).startswith("float")
        width = int(np.prod(feature["shape"], dtype=np.int64))
        self._stream = StreamingStatistics((width,), most_rows=most_rows, quantiles=QUANTILES)

    def add(self, values: NDArray[Any]) -> None:
        """Take rows ``(N,)`` or ``(N, D)``."""
        self._stream.add(values.reshape(len(values), -1))

    def entry(self) -> dict[str, Any]:
        """Return LeRobot's entry: lists of D numbers; ``min`` and ``max`` of whole numbers are whole."""
        statistics = self._stream.finish()
        entry = _lists(statistics, ("min", "max", "mean", "std", "q01", "q10", "q50", "q90", "q99"))
        if self._is_whole:
            for name in ("min", "max"):
                entry[name] = [int(value) for value in entry[name]]
        entry["count"] = [statistics.count]
        return entry


def episode_entry(feature: Mapping[str, Any], values: NDArray[Any]) -> dict[str, Any]:
    """Return LeRobot's entry for the rows of one episode."""
    statistics = ColumnStatistics(feature, most_rows=len(values))
    statistics.add(values)
    return statistics.entry()


def groot_statistics(
    entries: Mapping[str, Mapping[str, Any]], features: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Return GR00T's ``stats.json``: every column of floating-point numbers, with the fingerprint of its schema.

    With a fingerprint that fits, GR00T takes the numbers as they are; it hashes the schema, not the data.
    """
    columns = [name for name, feature in features.items() if "float" in str(feature["dtype"])]
    content: dict[str, Any] = {name: {key: entries[name][key] for key in GROOT_STATISTICS} for name in columns}
    content["__fingerprints__"] = {
        name: fingerprint({"dtype": features[name]["dtype"], "feature": name, "shape": features[name]["shape"]})
        for name in columns
    }
    return content


def groot_relative_statistics(entries: Mapping[RelativeAction, Statistics]) -> dict[str, Any]:
    """Return GR00T's ``relative_stats.json``: by action group, lists ``[T][D]``, with fingerprints of the settings."""
    content: dict[str, Any] = {
        relative.action_key: _lists(statistics, GROOT_STATISTICS) for relative, statistics in entries.items()
    }
    content["__fingerprints__"] = {relative.action_key: _relative_fingerprint(relative) for relative in entries}
    return content


def fingerprint(schema: Mapping[str, Any]) -> str:
    """Return GR00T's hash of a schema."""
    canonical = json.dumps(schema, sort_keys=True, separators=(",", ":"))
    return "sha256:" + hashlib.sha256(canonical.encode()).hexdigest()


def _relative_fingerprint(relative: RelativeAction) -> str:
    is_pose = relative.kind is not RelativeKind.JOINTS
    return fingerprint(
        {
            "embodiment_tag": relative.embodiment_tag,
            "action_key": relative.action_key,
            "action_delta_indices": list(relative.delta_indices),
            "state_delta_indices": [relative.delta_indices[0]],
            "rep": "RELATIVE",
            "type": "EEF" if is_pose else "NON_EEF",
            "format": relative.kind.name if is_pose else "DEFAULT",
            "state_key": None if relative.state_key == relative.action_key else relative.state_key,
        }
    )


def _lists(statistics: Statistics, names: tuple[str, ...]) -> dict[str, Any]:
    def as_list(values: ArrayLike | None) -> Any:  # noqa: ANN401 - lists as deep as the array
        return np.asarray(values, dtype=np.float64).tolist()

    return {name: as_list(getattr(statistics, name)) for name in names}
