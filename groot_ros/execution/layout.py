"""From the policy's action groups to the columns of a plan in the robot's units, and back."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from groot_ros.contract.actions import DimensionKind, Meaning
from groot_ros.contract.groups import GroupMap
from groot_ros.contract.poses import POSE_DIMENSIONS
from groot_ros.errors import MotionError
from groot_ros.execution.columns import Array, Columns
from groot_ros.observation import ActionChunk


@dataclass(frozen=True)
class GroupLayout:
    """One action group of the policy.

    Attributes:
        key: Modality key.
        meaning: What the numbers say.
        map: Policy units to the robot's and back. The columns of a binary group stay in the policy's units, because
            its hysteresis needs the policy's own number; its output turns them into one of the robot's two levels.

    """

    key: str
    meaning: Meaning
    map: GroupMap

    @property
    def names(self) -> tuple[str, ...]:
        """The D dimension names, in the policy's order."""
        return self.map.dimensions

    @property
    def is_binary(self) -> bool:
        """Whether the dimensions have two values only."""
        return DimensionKind.BINARY in self.map.kinds

    @property
    def columns(self) -> Columns:
        """The group's columns in the plan: its own dimensions, or those of a ROS pose."""
        if self.meaning is Meaning.POSE:
            return _pose_columns(self.key)
        periods = tuple(2.0 * math.pi if kind is DimensionKind.WRAPPED else math.inf for kind in self.map.kinds)
        return Columns(tuple(f"{self.key}/{name}" for name in self.names), self.map.kinds, periods)

    def to_columns(self, values: Array) -> Array:
        """Policy rows ``(H, D)`` to plan columns."""
        return values if self.is_binary else self.map.to_robot(values)

    def from_columns(self, values: Array) -> Array:
        """Plan columns back to policy rows ``(H, D)``."""
        return values if self.is_binary else self.map.to_policy(values)


@dataclass(frozen=True)
class PlanLayout:
    """All action groups, whose columns stand one after the other in a plan.

    Attributes:
        groups: The action groups.
        integrated_poses: Outputs whose pose is integrated from deltas; their seven columns follow those of the groups.

    """

    groups: tuple[GroupLayout, ...]
    integrated_poses: tuple[str, ...] = ()

    @cached_property
    def columns(self) -> Columns:
        """The columns of a plan, named ``<key>/<dimension>``."""
        parts = [group.columns for group in self.groups]
        parts += [_pose_columns(output) for output in self.integrated_poses]
        return Columns(
            tuple(name for part in parts for name in part.names),
            tuple(kind for part in parts for kind in part.kinds),
            tuple(period for part in parts for period in part.periods),
        )

    def index(self, key: str, dimension: str) -> int:
        """Column number of a dimension.

        Raises:
            MotionError: There is no such dimension.

        """
        name = f"{key}/{dimension}"
        if name not in self.columns.names:
            msg = f"the policy has no action dimension {name!r}; it has {', '.join(self.columns.names)}"
            raise MotionError(msg)
        return self.columns.names.index(name)

    def rows(self, chunk: ActionChunk) -> Array:
        """The rows ``(H, columns)`` of a chunk, in the robot's units; integrated poses are still zero.

        Raises:
            MotionError: A group is missing, has other dimensions, or a value is not finite.

        """
        parts = [group.to_columns(_values(group, chunk)) for group in self.groups]
        parts.append(np.zeros((chunk.horizon, len(POSE_DIMENSIONS) * len(self.integrated_poses))))
        return np.concatenate(parts, axis=1)

    def chunk(self, rows: Array, stamp_ns: int, period_s: float) -> ActionChunk:
        """Rows ``(H, columns)`` as a chunk in the policy's units: the inverse of :meth:`rows`."""
        groups, index = {}, 0
        for group in self.groups:
            width = len(group.columns.names)
            groups[group.key] = group.from_columns(rows[:, index : index + width])
            index += width
        names = {group.key: list(group.names) for group in self.groups}
        return ActionChunk(stamp_ns=stamp_ns, period_s=period_s, groups=groups, names=names)


def _pose_columns(key: str) -> Columns:
    kinds = (DimensionKind.CONTINUOUS,) * 3 + (DimensionKind.ROTATION,) * 4
    return Columns(tuple(f"{key}/{name}" for name in POSE_DIMENSIONS), kinds, (math.inf,) * len(kinds))


def _values(group: GroupLayout, chunk: ActionChunk) -> Array:
    if group.key not in chunk.groups:
        msg = f"action chunk: group {group.key!r} is missing; it has {', '.join(sorted(chunk.groups))}"
        raise MotionError(msg)
    values = np.asarray(chunk.groups[group.key], dtype=np.float64)
    wanted = (chunk.horizon, len(group.names))
    if values.shape != wanted:
        msg = f"action chunk: group {group.key!r} has the shape {values.shape}, but {wanted} is wanted"
        raise MotionError(msg)
    if not np.all(np.isfinite(values)):
        row, column = np.argwhere(~np.isfinite(values))[0]
        msg = f"action chunk: {group.key}/{group.names[column]} is {values[row, column]} in row {row}"
        raise MotionError(msg)
    return values
