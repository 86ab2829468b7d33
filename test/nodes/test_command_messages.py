"""Commands and chunks as ROS messages, field by field."""

from __future__ import annotations

from array import array

import numpy as np
import pytest

pytest.importorskip("rclpy")

from groot_ros.execution.commands import (
    ArrayCommand,
    FloatCommand,
    PoseCommand,
    TrajectoryCommand,
    TwistCommand,
)
from groot_ros.nodes.command_messages import (
    array_message,
    chunk_message,
    float_message,
    image_message,
    pose_message,
    trajectory_message,
    twist_message,
)
from groot_ros.observation import ActionChunk

STAMP_NS = 1_700_000_000_123_456_789


def test_a_trajectory_keeps_stamp_names_times_positions_and_velocities():
    command = TrajectoryCommand(
        output="arm",
        stamp_ns=STAMP_NS,
        joints=("a", "b"),
        offsets_ns=np.array([33_333_333, 1_500_000_000]),
        positions=np.array([[0.1, 0.2], [0.3, 0.4]]),
        velocities=np.array([[1.0, 2.0], [0.0, 0.0]]),
    )
    message = trajectory_message(command)
    assert (message.header.stamp.sec, message.header.stamp.nanosec) == (1_700_000_000, 123_456_789)
    assert message.joint_names == ["a", "b"]
    assert [list(point.positions) for point in message.points] == [[0.1, 0.2], [0.3, 0.4]]
    assert [list(point.velocities) for point in message.points] == [[1.0, 2.0], [0.0, 0.0]]
    times = [(point.time_from_start.sec, point.time_from_start.nanosec) for point in message.points]
    assert times == [(0, 33_333_333), (1, 500_000_000)]


def test_an_array_says_the_names_of_its_numbers():
    message = array_message(ArrayCommand("arm", ("a", "b"), np.array([1.5, -2.5])))
    assert list(message.data) == [1.5, -2.5]
    assert message.layout.dim[0].label == "a,b"
    assert message.layout.dim[0].size == 2


def test_a_number_a_twist_and_a_pose_keep_their_values_and_frames():
    assert float_message(FloatCommand("gripper", 0.25)).data == 0.25
    twist = twist_message(TwistCommand("arm", STAMP_NS, "base", np.array([1.0, 2, 3]), np.array([4.0, 5, 6])))
    assert twist.header.frame_id == "base"
    assert (twist.twist.linear.z, twist.twist.angular.x) == (3.0, 4.0)
    pose = pose_message(PoseCommand("arm", STAMP_NS, "base", np.array([1.0, 2, 3]), np.array([0.0, 0, 0.6, 0.8])))
    assert (pose.pose.position.y, pose.pose.orientation.z, pose.pose.orientation.w) == (2.0, 0.6, 0.8)


def test_a_chunk_names_each_dimension_by_its_key_and_a_key_of_width_zero_has_none():
    groups = {"arm": np.array([[1.0, 2.0], [3.0, 4.0]]), "empty": np.empty((2, 0)), "hand": np.array([[5.0], [6.0]])}
    chunk = ActionChunk(STAMP_NS, 0.1, groups, {"arm": ["a", "b"], "empty": [], "hand": ["0"]})
    message = chunk_message(chunk)
    assert message.joint_names == ["arm/a", "arm/b", "hand/0"]
    assert [list(point.positions) for point in message.points] == [[1.0, 2.0, 5.0], [3.0, 4.0, 6.0]]
    assert [point.time_from_start.nanosec for point in message.points] == [0, 100_000_000]
    assert message.header.stamp.nanosec == 123_456_789


def test_the_frames_of_a_history_lie_side_by_side_the_oldest_on_the_left():
    frames = np.stack([np.full((2, 3, 3), 10, np.uint8), np.full((2, 3, 3), 20, np.uint8)])
    message = image_message(frames, STAMP_NS, "front")
    assert (message.height, message.width, message.step, message.encoding) == (2, 6, 18, "rgb8")
    assert isinstance(message.data, array)
    picture = np.frombuffer(message.data, np.uint8).reshape(2, 6, 3)
    assert (picture[:, :3] == 10).all()
    assert (picture[:, 3:] == 20).all()
