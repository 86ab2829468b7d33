"""Which sender makes the commands of which kind of output."""

from __future__ import annotations

from groot_ros.contract.outputs import GripperCommandOutput, JointTrajectoryOutput, TwistOutput
from groot_ros.contract.timing import Motion
from groot_ros.execution.gripper_sender import GripperSender
from groot_ros.execution.limits import ColumnLimits
from groot_ros.execution.outputs import Route
from groot_ros.execution.sampled_sender import SampledSender, SteppedSender
from groot_ros.execution.sender import Sender
from groot_ros.execution.trajectory_sender import TrajectorySender
from groot_ros.execution.twist_sender import TwistSender


def make_sender(route: Route, limits: ColumnLimits, motion: Motion) -> Sender:
    """The sender of one output."""
    target = route.target
    if isinstance(target, JointTrajectoryOutput):
        return TrajectorySender(route, target, limits, motion)
    if isinstance(target, TwistOutput):
        return TwistSender(route, target, limits, motion)
    if isinstance(target, GripperCommandOutput):
        return GripperSender(route, target, limits, motion)
    return (SteppedSender if route.is_stepped else SampledSender)(route, limits, motion)
