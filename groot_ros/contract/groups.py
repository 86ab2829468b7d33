"""Whole groups between robot and policy: the maps of their sources side by side, and those of actions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from groot_ros.contract.actions import ActionGroup, DimensionKind, Meaning
from groot_ros.contract.poses import (
    POSE_DIMENSIONS,
    PoseMap,
    RotationFormat,
    tool_rotation_matrix,
    whole_pose_dimensions,
)
from groot_ros.contract.schema import FaultyKeyError
from groot_ros.contract.sources import PoseSource, StateSource, TransformSource
from groot_ros.contract.units import JointMap

Array = NDArray[np.float64]


@dataclass(frozen=True)
class BinaryMap:
    """Two levels: whatever lies nearer to ``open`` is open."""

    names: tuple[str, ...]
    policy_levels: tuple[float, float]
    robot_levels: tuple[float, float]

    def to_policy(self, values: Array) -> Array:
        """Robot values ``(..., D)`` as the policy's levels."""
        return _nearest(values, self.robot_levels, self.policy_levels)

    def to_topic(self, values: Array) -> Array:
        """Policy values ``(..., D)`` as the robot's levels."""
        return _nearest(values, self.policy_levels, self.robot_levels)


def _nearest(values: Array, levels: tuple[float, float], results: tuple[float, float]) -> Array:
    values = np.asarray(values, np.float64)
    is_open = np.abs(values - levels[0]) <= np.abs(values - levels[1])
    return np.where(is_open, results[0], results[1])


PartMap = JointMap | PoseMap | BinaryMap


@dataclass(frozen=True)
class GroupMap:
    """The robot's values of a group ``(..., R)`` to the policy's ``(..., D)`` and back.

    R differs from D only for poses, which the robot writes as x, y, z, qx, qy, qz, qw.

    Attributes:
        dimensions: The D dimension names of the policy.
        kinds: How each of the D dimensions may be joined in time.
        parts: The maps side by side, one a source.
        periods: Of each dimension that wraps, the full turn in the robot's units.

    """

    dimensions: tuple[str, ...]
    kinds: tuple[DimensionKind, ...]
    parts: tuple[PartMap, ...]
    periods: Mapping[str, float] = field(default_factory=dict)

    @cached_property
    def _robot_widths(self) -> list[int]:
        return [_robot_width(part) for part in self.parts]

    @cached_property
    def _policy_widths(self) -> list[int]:
        return [_policy_width(part) for part in self.parts]

    @property
    def robot_width(self) -> int:
        """R, the number of values that the robot has."""
        return sum(_robot_width(part) for part in self.parts)

    @property
    def robot_names(self) -> tuple[str, ...]:
        """The R names of the robot's values."""
        return tuple(
            name for part in self.parts for name in (POSE_DIMENSIONS if isinstance(part, PoseMap) else part.names)
        )

    def to_policy(self, values: Array) -> Array:
        """Robot values ``(..., R)`` in the policy's layout and units, float64 ``(..., D)``."""
        pieces = _split(np.asarray(values, np.float64), self._robot_widths)
        return _join([part.to_policy(piece) for part, piece in zip(self.parts, pieces, strict=True)], values)

    def to_robot(self, values: Array) -> Array:
        """Policy values ``(..., D)`` in the robot's layout and units, float64 ``(..., R)``."""
        pieces = _split(np.asarray(values, np.float64), self._policy_widths)
        return _join([part.to_topic(piece) for part, piece in zip(self.parts, pieces, strict=True)], values)


def _robot_width(part: PartMap) -> int:
    return len(POSE_DIMENSIONS) if isinstance(part, PoseMap) else len(part.names)


def _policy_width(part: PartMap) -> int:
    return len(part.taken) if isinstance(part, PoseMap) else len(part.names)


def _split(values: Array, widths: Sequence[int]) -> list[Array]:
    if values.shape[-1] != sum(widths):
        msg = f"found {values.shape[-1]} values, wanted {sum(widths)}"
        raise ValueError(msg)
    if len(widths) == 1:  # nearly all groups; np.split costs more than the map itself
        return [values]
    return np.split(values, np.cumsum(widths)[:-1], axis=-1) if widths else []


def _join(pieces: Sequence[Array], values: Array) -> Array:
    if len(pieces) == 1:
        return pieces[0]
    return np.concatenate(pieces, axis=-1) if pieces else np.empty((*np.shape(values)[:-1], 0))


def state_map(sources: Sequence[StateSource]) -> GroupMap:
    """The map of a state group."""
    return GroupMap(
        tuple(name for source in sources for name in source.dimensions),
        tuple(kind for source in sources for kind in _source_kinds(source)),
        tuple(source.map for source in sources),
        {name: period for source in sources for name, period in _periods(source).items()},
    )


def _periods(source: StateSource) -> dict[str, float]:
    return {} if isinstance(source, PoseSource | TransformSource) else source.periods


def _source_kinds(source: StateSource) -> list[DimensionKind]:
    if isinstance(source, PoseSource | TransformSource):
        return [_pose_kind(name) for name in source.dimensions]
    return [DimensionKind.WRAPPED if name in source.wraps else DimensionKind.CONTINUOUS for name in source.dimensions]


def _pose_kind(name: str) -> DimensionKind:
    return DimensionKind.CONTINUOUS if name in {"x", "y", "z"} else DimensionKind.ROTATION


def action_map(group: str, actions: Mapping[str, ActionGroup], state: Mapping[str, Sequence[StateSource]]) -> GroupMap:
    """The map of an action group: its own keys, or those of the state group that it shares names with.

    Raises:
        FaultyKeyError: A used group whose names or layout are written nowhere.

    """
    action = actions[group]
    sources = state.get(action.state or group, ())
    if action.meaning is Meaning.POSE:
        return _pose_action(group, action, sources)
    names = action.names or tuple(name for source in sources for name in source.dimensions)
    if action.meaning is Meaning.UNUSED:
        kinds = (DimensionKind.CONTINUOUS,) * len(names)
        return GroupMap(names, kinds, (JointMap(names, np.ones(len(names)), np.zeros(len(names))),))
    if not names:
        raise FaultyKeyError(
            f"actions.{group}.names",
            "found nothing, and no state group of this name",
            "write the dimensions' names, or the key state",
        )
    if action.kind == "binary" and action.open is not None and action.closed is not None:
        levels = ((action.open.policy, action.closed.policy), (action.open.robot, action.closed.robot))
        return GroupMap(names, (DimensionKind.BINARY,) * len(names), (BinaryMap(names, *levels),))
    joint_map, periods = _joint_action(action, names, sources)
    if action.meaning is not Meaning.POSITION:
        return GroupMap(names, (DimensionKind.CONTINUOUS,) * len(names), (joint_map.differences(),))
    kinds = tuple(DimensionKind.WRAPPED if name in periods else DimensionKind.CONTINUOUS for name in names)
    return GroupMap(names, kinds, (joint_map,), periods)


def _joint_action(
    action: ActionGroup, names: tuple[str, ...], sources: Sequence[StateSource]
) -> tuple[JointMap, dict[str, float]]:
    """Units and full turns: by the action's own keys, or those of the state's dimensions of the same names."""
    if action.has_units or action.wraps:
        return action.joint_map(names), action.turns(action.wraps, names)
    factor, offset, periods = np.ones(len(names)), np.zeros(len(names)), {}
    for source in sources:
        for row, name in enumerate(names):
            if not isinstance(source, PoseSource | TransformSource) and name in source.dimensions:
                one = source.map.select([name])
                factor[row], offset[row] = one.factor[0], one.offset[0]
                periods.update({name: source.periods[name]} if name in source.periods else {})
    return JointMap(names, factor, offset), periods


def _pose_action(group: str, action: ActionGroup, sources: Sequence[StateSource]) -> GroupMap:
    """A pose in its own layout, or in that of the state group, which is then one pose."""
    pose = sources[0] if len(sources) == 1 and isinstance(sources[0], PoseSource | TransformSource) else None
    form = action.rotation or (pose.rotation if pose else None)
    if form is None:
        raise FaultyKeyError(
            f"actions.{group}.rotation",
            "found nothing, and no state group that is one pose",
            f"allowed are {', '.join(known.value for known in RotationFormat)}",
        )
    tool_rotation = action.tool_rotation or (pose.tool_rotation if pose else None)
    whole = whole_pose_dimensions(form)
    names = action.names or (pose.dimensions if pose and set(pose.dimensions) == set(whole) else whole)
    if set(names) != set(whole):
        raise FaultyKeyError(f"actions.{group}.names", f"found {', '.join(names)}", f"wanted {', '.join(whole)}")
    part = PoseMap(form, tool_rotation_matrix(tool_rotation), names)
    return GroupMap(names, tuple(_pose_kind(name) for name in names), (part,))
