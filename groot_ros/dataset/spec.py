"""What a dataset that is to be written holds: groups, names, cameras, rate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from groot_ros.dataset.layout import INDEX_FEATURES
from groot_ros.dataset.modality import ACTION_COLUMN, IMAGE_PREFIX, STATE_COLUMN, Modality
from groot_ros.dataset.video_writer import VideoEncoding
from groot_ros.errors import DatasetError
from groot_ros.numerics.relative import RelativeKind


@dataclass(frozen=True, kw_only=True)
class RelativeAction:
    """An action group that a policy learns against the state at the start of its chunk.

    Attributes:
        action_key: The action group.
        state_key: The state group that is the reference; of the same layout.
        delta_indices: Rows of a chunk, counted from the observation.
        kind: How action and state compose.
        embodiment_tag: The tag whose statistics these are.

    """

    action_key: str
    state_key: str
    delta_indices: tuple[int, ...]
    kind: RelativeKind
    embodiment_tag: str


@dataclass(frozen=True, kw_only=True)
class DatasetSpec:
    """The shape of every episode of one dataset.

    Attributes:
        fps: Rows a second; a whole number, since LeRobot takes no other.
        robot_type: Name of the robot.
        state: State group to the names of its dimensions, in order.
        action: Action group to the names of its dimensions, in order.
        cameras: Camera key to ``(height, width)`` in pixels.
        encoding: How videos are stored.
        relative_actions: Groups for which per-row relative statistics are written.
        notes: How the dataset was made, written into ``info.json`` under ``groot_ros``; LeRobot ignores it.

    """

    fps: int
    robot_type: str
    state: Mapping[str, tuple[str, ...]]
    action: Mapping[str, tuple[str, ...]]
    cameras: Mapping[str, tuple[int, int]]
    encoding: VideoEncoding = field(default_factory=VideoEncoding)
    relative_actions: tuple[RelativeAction, ...] = ()
    notes: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check what can be checked without data."""
        if not isinstance(self.fps, int) or self.fps <= 0:
            msg = f"a LeRobot dataset needs a whole number of rows a second, but the rate is {self.fps}"
            raise DatasetError(msg)
        for kind, groups in (("state", self.state), ("action", self.action)):
            if not groups:
                msg = f"a dataset needs at least one {kind} group"
                raise DatasetError(msg)
            for key, names in groups.items():
                if not names or len(set(names)) != len(names):
                    msg = f"{kind} group {key!r} must name its dimensions, each once, but has {names}"
                    raise DatasetError(msg)
        for camera, (height, width) in self.cameras.items():
            self.encoding.check_size(height, width, camera)
        for relative in self.relative_actions:
            self._check_relative(relative)

    @property
    def modality(self) -> Modality:
        """Groups and cameras by modality key."""
        return Modality.from_groups(
            {key: len(names) for key, names in self.state.items()},
            {key: len(names) for key, names in self.action.items()},
            self.cameras,
        )

    def features(self) -> dict[str, dict[str, Any]]:
        """Return the features of ``info.json``."""
        features: dict[str, dict[str, Any]] = {
            STATE_COLUMN: _vector(self.state),
            ACTION_COLUMN: _vector(self.action),
        }
        for camera, (height, width) in self.cameras.items():
            features[IMAGE_PREFIX + camera] = {
                "dtype": "video",
                "shape": [height, width, 3],
                "names": ["height", "width", "channels"],
                "info": self.encoding.video_info(height, width, self.fps),
            }
        return features | {name: dict(feature) for name, feature in INDEX_FEATURES.items()}

    def _check_relative(self, relative: RelativeAction) -> None:
        if relative.action_key not in self.action or relative.state_key not in self.state:
            msg = (
                f"relative action {relative.action_key!r} refers to state {relative.state_key!r}, but there are the "
                f"actions {', '.join(self.action)} and the states {', '.join(self.state)}"
            )
            raise DatasetError(msg)
        actions, states = len(self.action[relative.action_key]), len(self.state[relative.state_key])
        if actions != states:
            msg = (
                f"relative action {relative.action_key!r} has {actions} dimensions, but its reference "
                f"{relative.state_key!r} has {states}: they must agree"
            )
            raise DatasetError(msg)


def _vector(groups: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    names = [name for group in groups.values() for name in group]
    if len(set(names)) != len(names):  # two arms with x, y, z each
        names = [f"{key}/{name}" for key, group in groups.items() for name in group]
    return {"dtype": "float32", "shape": [len(names)], "names": names}
