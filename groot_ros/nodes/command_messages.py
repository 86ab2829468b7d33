"""Commands and chunks as ROS messages: plain conversions, no node needed."""

from __future__ import annotations

from array import array
from itertools import chain
from typing import Any

import numpy as np
from builtin_interfaces.msg import Duration, Time
from geometry_msgs.msg import PoseStamped, TwistStamped
from numpy.typing import NDArray
from sensor_msgs.msg import Image
from std_msgs.msg import Float64, Float64MultiArray, MultiArrayDimension
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from groot_ros.execution.commands import ArrayCommand, FloatCommand, PoseCommand, TrajectoryCommand, TwistCommand
from groot_ros.observation import NANOSECONDS_PER_SECOND, ActionChunk


def time_message(stamp_ns: int) -> Time:
    """Nanoseconds as builtin_interfaces/Time."""
    return Time(sec=stamp_ns // NANOSECONDS_PER_SECOND, nanosec=stamp_ns % NANOSECONDS_PER_SECOND)


def duration_message(duration_ns: int) -> Duration:
    """Nanoseconds as builtin_interfaces/Duration."""
    return Duration(sec=duration_ns // NANOSECONDS_PER_SECOND, nanosec=duration_ns % NANOSECONDS_PER_SECOND)


def trajectory_message(command: TrajectoryCommand) -> JointTrajectory:
    """A command for joint_trajectory_controller."""
    message = JointTrajectory(joint_names=list(command.joints))
    message.header.stamp = time_message(command.stamp_ns)
    message.points = [
        JointTrajectoryPoint(
            positions=array("d", positions.tolist()),
            velocities=array("d", velocities.tolist()),
            time_from_start=duration_message(int(offset_ns)),
        )
        for offset_ns, positions, velocities in zip(
            command.offsets_ns, command.positions, command.velocities, strict=True
        )
    ]
    return message


def array_message(command: ArrayCommand) -> Float64MultiArray:
    """A command for forward_command_controller."""
    message = Float64MultiArray(data=array("d", command.values.tolist()))
    width = len(command.names)
    message.layout.dim = [MultiArrayDimension(label=",".join(command.names), size=width, stride=width)]
    return message


def float_message(command: FloatCommand) -> Float64:
    """A bare number."""
    return Float64(data=command.value)


def twist_message(command: TwistCommand) -> TwistStamped:
    """A velocity in space."""
    message = TwistStamped()
    message.header.stamp = time_message(command.stamp_ns)
    message.header.frame_id = command.frame
    linear, angular = message.twist.linear, message.twist.angular
    linear.x, linear.y, linear.z = (float(value) for value in command.linear)
    angular.x, angular.y, angular.z = (float(value) for value in command.angular)
    return message


def pose_message(command: PoseCommand) -> PoseStamped:
    """A target in space."""
    message = PoseStamped()
    message.header.stamp = time_message(command.stamp_ns)
    message.header.frame_id = command.frame
    position, orientation = message.pose.position, message.pose.orientation
    position.x, position.y, position.z = (float(value) for value in command.position)
    orientation.x, orientation.y, orientation.z, orientation.w = (float(value) for value in command.orientation)
    return message


def chunk_message(chunk: ActionChunk) -> JointTrajectory:
    """A whole chunk: names ``<key>/<dimension>``, stamp of the observation, row i at ``i * period``."""
    message = JointTrajectory(
        joint_names=list(chain.from_iterable([f"{key}/{name}" for name in chunk.names[key]] for key in chunk.groups))
    )
    message.header.stamp = time_message(chunk.stamp_ns)
    rows = np.concatenate(list(chunk.groups.values()), axis=1)
    message.points = [
        JointTrajectoryPoint(
            positions=array("d", row.tolist()),
            time_from_start=duration_message(chunk.row_stamp_ns(index) - chunk.stamp_ns),
        )
        for index, row in enumerate(rows)
    ]
    return message


def image_message(frames: NDArray[np.uint8], stamp_ns: int, frame_id: str) -> Image:
    """RGB frames ``(T, H, W, 3)`` side by side, the oldest on the left."""
    count, height, width, _ = frames.shape
    picture = np.ascontiguousarray(np.concatenate(list(frames), axis=1))
    message = Image(height=height, width=count * width, encoding="rgb8", step=3 * count * width)
    message.header.stamp = time_message(stamp_ns)
    message.header.frame_id = frame_id
    message.data = array("B", picture.tobytes())  # any other type costs rclpy tens of milliseconds
    return message


CONVERSIONS: dict[type[Any], Any] = {
    TrajectoryCommand: trajectory_message,
    ArrayCommand: array_message,
    FloatCommand: float_message,
    TwistCommand: twist_message,
    PoseCommand: pose_message,
}
"""Command class to the conversion of it; gripper goals go another way."""
