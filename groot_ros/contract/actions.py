"""What each action group of the policy means: positions, velocities, deltas, poses, or nothing for this robot."""

from __future__ import annotations

from enum import Enum
from typing import Literal

from pydantic import Field, model_validator
from typing_extensions import Self

from groot_ros.contract.poses import RotationFormat
from groot_ros.contract.schema import FaultyKeyError, Name, Number, Part
from groot_ros.contract.sources import Row, check_known, check_unique
from groot_ros.contract.units import UnitKeys


class Meaning(Enum):
    """What a row of an action group says.

    Positions and poses are absolute targets, which may be indexed and blended in time. Velocities are held at zero.
    Deltas add to where the robot is; ``unused`` groups are predicted and ignored.
    """

    POSITION = "position"
    VELOCITY = "velocity"
    DELTA = "delta"
    POSE = "pose"
    UNUSED = "unused"


class DimensionKind(Enum):
    """How a dimension may be joined in time."""

    CONTINUOUS = "continuous"
    WRAPPED = "wrapped"
    BINARY = "binary"
    ROTATION = "rotation"


class Level(Part):
    """One of the two levels of a binary group: what the policy says, and what the robot is sent."""

    policy: Number
    robot: Number


class ActionGroup(UnitKeys):
    """One action group.

    Attributes:
        meaning: What the values are; never guessed.
        kind: ``continuous``, or ``binary`` with ``open`` and ``closed``.
        names: The dimensions, in the policy's order; by default those of the state group ``state``.
        state: The state group whose names, units and rotation the group shares; by default the one of the same key.
        integrate: For deltas: the deltas are added up to absolute targets from the observation's state before planning.
        rotation: For poses, where the state group has another layout or none.
        tool_rotation: For poses, likewise.
        wraps: Dimensions that jump from one end of the circle to the other.
        hysteresis: For binary groups: share of the span between the levels that must be passed beyond the middle.

    """

    meaning: Meaning
    kind: Literal["continuous", "binary"] = "continuous"
    names: tuple[Name, ...] | None = None
    state: Name | None = None
    integrate: bool = False
    rotation: RotationFormat | None = None
    tool_rotation: tuple[Row, Row, Row] | None = None
    wraps: tuple[Name, ...] = ()
    open: Level | None = None
    closed: Level | None = None
    hysteresis: Number = Field(default=0.1, ge=0, lt=1)

    @model_validator(mode="after")
    def _check(self) -> Self:
        check_unique("names", self.names or ())
        if self.names is not None:
            check_known("wraps", self.wraps, self.names)
            self.joint_map(self.names)
        if self.kind == "binary":
            self._check_levels()
        elif self.open is not None or self.closed is not None:
            raise FaultyKeyError("kind", "found continuous with open or closed", "levels belong to kind: binary")
        if self.integrate and self.meaning is not Meaning.DELTA:
            raise FaultyKeyError("integrate", f"found true for {self.meaning.value}", "only deltas can be integrated")
        if self.meaning is not Meaning.POSE and (self.rotation is not None or self.tool_rotation is not None):
            raise FaultyKeyError("rotation", f"found one for {self.meaning.value}", "only a pose has a rotation")
        if self.meaning is Meaning.POSE and self.has_units:
            raise FaultyKeyError("meaning", "found pose with units", "a pose is in metres; it takes rotation alone")
        return self

    def _check_levels(self) -> None:
        if self.open is None or self.closed is None:
            missing = "open" if self.open is None else "closed"
            raise FaultyKeyError(missing, "found nothing", "a binary group needs both, as {policy: 1, robot: 0.04}")
        if self.open.policy == self.closed.policy or self.open.robot == self.closed.robot:
            raise FaultyKeyError("closed", "found the same value as open", "the two levels must differ")
        if self.meaning is not Meaning.POSITION:
            raise FaultyKeyError(
                "kind", f"found binary for {self.meaning.value}", "a binary group has meaning: position"
            )
        if self.has_units:
            raise FaultyKeyError("kind", "found binary with units", "the levels are written in both units already")
