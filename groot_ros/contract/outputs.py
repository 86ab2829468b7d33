"""What the robot takes: each output draws dimensions from one or more action groups."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, model_validator
from typing_extensions import Self

from groot_ros.contract.schema import Name, NonNegativeNumber, Part, PositiveNumber
from groot_ros.contract.sources import check_unique

DrawnDimensions = dict[Name, tuple[Name, ...] | Literal["all"]]
"""Action group to the dimensions taken from it, in order; ``all`` takes every one."""


class Output(Part):
    """What all outputs share.

    Attributes:
        draws: The key ``from``: which dimensions of which action groups are sent, in the order of sending.

    """

    draws: DrawnDimensions = Field(alias="from", min_length=1)


class NamedOutput(Output):
    """An output whose values are named; ``names`` are the robot's, by default the policy's dimension names."""

    names: tuple[Name, ...] | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        check_unique("names", self.names or ())
        return self


class JointTrajectoryOutput(NamedOutput):
    """A trajectory_msgs/JointTrajectory for joint_trajectory_controller, with the rows that are still ahead."""

    type: Literal["joint_trajectory"]
    topic: Name
    final_velocity: bool = False


class PositionCommandOutput(NamedOutput):
    """A std_msgs/Float64MultiArray for forward_command_controller, sent by a timer; ``names`` is its joints' order."""

    type: Literal["position_command"]
    topic: Name
    names: tuple[Name, ...]
    rate_hz: PositiveNumber = 100.0


class TwistOutput(Output):
    """A geometry_msgs/TwistStamped: a twist of the policy, or the motion towards its pose."""

    type: Literal["twist"]
    topic: Name
    frame: Name
    rate_hz: PositiveNumber = 100.0
    gain_per_s: NonNegativeNumber = 2.0


class PoseOutput(Output):
    """A geometry_msgs/PoseStamped target."""

    type: Literal["pose"]
    topic: Name
    frame: Name
    rate_hz: PositiveNumber = 100.0


class FloatOutput(Output):
    """A std_msgs/Float64 of one dimension, for a gripper that takes a bare number."""

    type: Literal["float64"]
    topic: Name
    rate_hz: PositiveNumber = 100.0


class GripperCommandOutput(NamedOutput):
    """A goal of a control_msgs gripper action: ``gripper_command`` or the newer ``parallel_gripper_command``."""

    type: Literal["gripper_command", "parallel_gripper_command"]
    action: Name
    max_effort: NonNegativeNumber = 0.0
    tolerance: PositiveNumber = 0.001


OUTPUT_TYPES = (
    "joint_trajectory",
    "position_command",
    "twist",
    "pose",
    "float64",
    "gripper_command",
    "parallel_gripper_command",
)
OUTPUT_TAGS = OUTPUT_TYPES[:-1]  # the two gripper actions are one class


def _output_tag(value: Any) -> str:  # noqa: ANN401 - a mapping of the file, or an output that is made already
    kind = value.get("type") if isinstance(value, dict) else getattr(value, "type", None)
    return "gripper_command" if kind == "parallel_gripper_command" else str(kind)


OutputTarget = (
    JointTrajectoryOutput | PositionCommandOutput | TwistOutput | PoseOutput | FloatOutput | GripperCommandOutput
)

AnyOutput = Annotated[
    Annotated[JointTrajectoryOutput, Tag("joint_trajectory")]
    | Annotated[PositionCommandOutput, Tag("position_command")]
    | Annotated[TwistOutput, Tag("twist")]
    | Annotated[PoseOutput, Tag("pose")]
    | Annotated[FloatOutput, Tag("float64")]
    | Annotated[GripperCommandOutput, Tag("gripper_command")],
    Discriminator(_output_tag),
]
