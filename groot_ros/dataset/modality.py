"""``modality.json``: which part of which column a modality key of GR00T is."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from groot_ros.errors import DatasetError

STATE_COLUMN = "observation.state"
ACTION_COLUMN = "action"
IMAGE_PREFIX = "observation.images."
TASK_COLUMN = "task_index"
# Both spellings that GR00T's examples use; each names the standard column, so either configuration finds the task.
TASK_ANNOTATIONS = ("human.action.task_description", "human.task_description")


@dataclass(frozen=True)
class ModalitySlice:
    """Dimensions ``start`` to ``end`` (exclusive) of a column."""

    start: int
    end: int
    column: str

    @property
    def dimension(self) -> int:
        """Number of dimensions D."""
        return self.end - self.start


@dataclass(frozen=True)
class Modality:
    """Modality keys of a dataset.

    Attributes:
        state: Key to slice of a column.
        action: Key to slice of a column.
        video: Key to video feature.
        annotation: Key (without ``annotation.``) to the column that holds task indices.

    """

    state: dict[str, ModalitySlice]
    action: dict[str, ModalitySlice]
    video: dict[str, str]
    annotation: dict[str, str]

    @classmethod
    def from_groups(cls, state: Mapping[str, int], action: Mapping[str, int], cameras: Iterable[str]) -> Modality:
        """Lay groups of the given dimensions one after the other, in their order."""
        return cls(
            state=_one_after_the_other(state, STATE_COLUMN),
            action=_one_after_the_other(action, ACTION_COLUMN),
            video={camera: IMAGE_PREFIX + camera for camera in cameras},
            annotation=dict.fromkeys(TASK_ANNOTATIONS, TASK_COLUMN),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the content of ``modality.json``."""

        def slices(groups: dict[str, ModalitySlice]) -> dict[str, Any]:
            return {
                key: {"start": part.start, "end": part.end, "original_key": part.column} for key, part in groups.items()
            }

        return {
            "state": slices(self.state),
            "action": slices(self.action),
            "video": {key: {"original_key": feature} for key, feature in self.video.items()},
            "annotation": {key: {"original_key": column} for key, column in self.annotation.items()},
        }


def whole_columns(features: Mapping[str, Mapping[str, Any]]) -> Modality:
    """Return the modality of a dataset that names no groups: the key ``state``, the key ``action``, all cameras."""

    def whole(key: str, column: str) -> dict[str, ModalitySlice]:
        return {key: ModalitySlice(0, int(features[column]["shape"][0]), column)} if column in features else {}

    return Modality(
        state=whole("state", STATE_COLUMN),
        action=whole("action", ACTION_COLUMN),
        video={
            name.removeprefix(IMAGE_PREFIX): name for name, feature in features.items() if feature["dtype"] == "video"
        },
        annotation=dict.fromkeys(TASK_ANNOTATIONS, TASK_COLUMN),
    )


def parse_modality(content: Mapping[str, Any], where: str, features: Mapping[str, Mapping[str, Any]]) -> Modality:
    """Return the content of a ``modality.json``, checked against the features of ``info.json``.

    Raises:
        DatasetError: A key that does not fit the features; it is named with what would fit.

    """
    for name in ("state", "action", "video"):
        if not isinstance(content.get(name, {}), Mapping):
            msg = f"{where}: {name} must map keys to objects, but is {content[name]!r}"
            raise DatasetError(msg)
    video = {}
    for key, entry in content.get("video", {}).items():
        feature = entry.get("original_key", IMAGE_PREFIX + key)
        if feature not in features:
            cameras = [name for name, description in features.items() if description["dtype"] == "video"]
            msg = (
                f"{where}: camera {key!r} is to come from the feature {feature!r}, but info.json has no such feature"
                f"{nearest_spelling(feature, cameras)}; its video features are {', '.join(cameras) or 'none'}"
            )
            raise DatasetError(msg)
        video[key] = feature
    return Modality(
        state=_parse_slices(content.get("state", {}), STATE_COLUMN, f"{where}: state", features),
        action=_parse_slices(content.get("action", {}), ACTION_COLUMN, f"{where}: action", features),
        video=video,
        annotation={
            key: (entry or {}).get("original_key", f"annotation.{key}")
            for key, entry in (content.get("annotation") or {}).items()
        },
    )


def nearest_spelling(name: str, candidates: Iterable[str]) -> str:
    """Return ``" (do you mean 'x'?)"`` where a candidate is spelled much like ``name``, else nothing."""
    match = similar_name(name, candidates)
    return f" (do you mean {match!r}?)" if match else ""


def similar_name(name: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate that is spelled most like ``name``; what all cameras begin with does not count."""
    short = {candidate.removeprefix(IMAGE_PREFIX): candidate for candidate in candidates}
    matches = difflib.get_close_matches(name.removeprefix(IMAGE_PREFIX), short, n=1, cutoff=0.75)
    return short[matches[0]] if matches else None


def _one_after_the_other(groups: Mapping[str, int], column: str) -> dict[str, ModalitySlice]:
    slices, start = {}, 0
    for key, dimension in groups.items():
        slices[key] = ModalitySlice(start, start + dimension, column)
        start += dimension
    return slices


def _parse_slices(
    groups: Mapping[str, Any], default_column: str, where: str, features: Mapping[str, Mapping[str, Any]]
) -> dict[str, ModalitySlice]:
    slices = {}
    for key, entry in groups.items():
        column = entry.get("original_key", default_column)
        if column not in features:
            msg = (
                f"{where}.{key} is to come from the column {column!r}, but info.json has no such feature"
                f"{nearest_spelling(column, features)}"
            )
            raise DatasetError(msg)
        width = int(features[column]["shape"][0])
        start, end = entry.get("start"), entry.get("end")
        if not (isinstance(start, int) and isinstance(end, int) and 0 <= start < end <= width):
            msg = (
                f"{where}.{key} is to be dimensions {start} to {end} of {column!r}, which has {width}: "
                f"give 0 <= start < end <= {width}"
            )
            raise DatasetError(msg)
        slices[key] = ModalitySlice(start, end, column)
    return slices
