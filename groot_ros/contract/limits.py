"""What no command may exceed: joints in the robot's units, poses and twists in space."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, model_validator
from typing_extensions import Self

from groot_ros.contract.schema import FaultyKeyError, Name, Number, OrNone, Part, PositiveNumber
from groot_ros.contract.sources import Row


class JointLimits(Part):
    """Limits of one joint, in the units that the robot takes. Each is written, were it as ``none``.

    Attributes:
        position: Lowest and highest position.
        velocity: Highest speed of the joint, units per second.
        step_per_s: Fastest change of the command itself, units per second, where that is slower than ``velocity``.

    """

    position: OrNone[tuple[Number, Number]]
    velocity: OrNone[PositiveNumber]
    step_per_s: OrNone[PositiveNumber] = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.position is not None and not self.position[0] < self.position[1]:
            raise FaultyKeyError("position", f"found {list(self.position)}", "the first must be below the second")
        return self


class Workspace(Part):
    """A box in the frame of the output, metres."""

    min: Row
    max: Row

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not all(low < high for low, high in zip(self.min, self.max, strict=True)):
            raise FaultyKeyError("min", f"found {list(self.min)}", f"each must be below {list(self.max)}")
        return self


class CartesianLimits(Part):
    """Limits of a pose or twist output. Each is written, were it as ``none``.

    Attributes:
        workspace: The box in which the target must lie.
        linear: Highest speed, m/s.
        angular: Highest turning rate, rad/s.

    """

    workspace: OrNone[Workspace]
    linear: OrNone[PositiveNumber]
    angular: OrNone[PositiveNumber]


class Limits(Part):
    """The key ``limits``.

    Attributes:
        urdf: Where the robot's joints are described: a file (a name that ends with .urdf, relative to the contract) or
            a topic that carries the description.
        joints: Limits by robot joint name; they stand beside the urdf's, and the narrower one holds.
        poses: Limits by name of a pose or twist output.

    """

    urdf: Name | None = None
    joints: dict[Name, OrNone[JointLimits]] = Field(default_factory=dict)
    poses: dict[Name, OrNone[CartesianLimits]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.urdf is not None and self.urdf.endswith((".xacro", ".xml")):
            raise FaultyKeyError(
                "urdf",
                f"found {self.urdf!r}",
                "wanted a file that ends with .urdf (xacro robot.xacro > robot.urdf makes one) or a topic",
            )
        return self

    @property
    def urdf_topic(self) -> str | None:
        """The topic that carries the robot's description, where ``urdf`` is one."""
        return None if self.urdf is None or self.urdf.endswith(".urdf") else self.urdf

    def urdf_file(self, folder: Path) -> Path | None:
        """The file of the robot's description, where ``urdf`` is one; relative names start at ``folder``."""
        return folder / self.urdf if self.urdf is not None and self.urdf.endswith(".urdf") else None
