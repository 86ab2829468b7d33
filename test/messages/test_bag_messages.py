"""The same message, live and out of a bag: real rclpy serialises it, real rosbags reads it, one road takes both."""

from __future__ import annotations

from array import array
from types import SimpleNamespace

import numpy as np
import pytest
from rosbags.typesys import Stores, get_typestore

from groot_ros.messages import TransformTracker, header_stamp_ns, read_image, read_joint_state, read_pose
from groot_ros.messages.fields import read_numbers

serialization = pytest.importorskip("rclpy.serialization", reason="rclpy is not installed")
sensor_msgs = pytest.importorskip("sensor_msgs.msg", reason="the sensor_msgs wheel is not installed")
geometry_msgs = pytest.importorskip("geometry_msgs.msg", reason="the geometry_msgs wheel is not installed")

STORE = get_typestore(Stores.ROS2_JAZZY)


def from_bag(message, kind: str):
    return STORE.deserialize_cdr(serialization.serialize_message(message), kind)


def stamped(message):
    message.header.stamp.sec, message.header.stamp.nanosec = 12, 345
    return message


def test_an_image_out_of_a_bag_is_the_same_and_shares_its_bytes():
    data = np.random.default_rng(1).integers(0, 256, 4 * 18, np.uint8)
    for encoding in ("rgb8", "bgr8"):
        live = stamped(sensor_msgs.Image(height=4, width=5, encoding=encoding, step=18))
        live.data = array("B", data.tobytes())
        bag = from_bag(live, "sensor_msgs/msg/Image")
        np.testing.assert_array_equal(read_image(bag, "front").rgb(), read_image(live, "front").rgb())
        assert header_stamp_ns(bag) == header_stamp_ns(live) == 12_000_000_345
        assert np.shares_memory(read_image(bag, "front").pixels, bag.data)


def test_joints_out_of_a_bag_are_the_same():
    live = stamped(sensor_msgs.JointState(name=["a", "b"], position=[1.0, 2.0], velocity=[3.0, 4.0], effort=[5.0, 6.0]))
    bag = from_bag(live, "sensor_msgs/msg/JointState")
    for field in ("position", "velocity", "effort"):
        np.testing.assert_array_equal(
            read_joint_state(bag, ["b", "a"], "js", field=field), read_joint_state(live, ["b", "a"], "js", field=field)
        )
    assert read_numbers(bag, ("position[1]",), "js") == [2.0]


def test_poses_and_transforms_out_of_a_bag_are_the_same():
    live = stamped(geometry_msgs.PoseStamped())
    live.pose.position.x, live.pose.orientation.w = 0.5, 1.0
    bag = from_bag(live, "geometry_msgs/msg/PoseStamped")
    np.testing.assert_array_equal(read_pose(bag, "tool"), read_pose(live, "tool"))
    transform = stamped(geometry_msgs.TransformStamped(child_frame_id="tool"))
    transform.header.frame_id = "base"
    transform.transform.translation.z = 2.0
    message = SimpleNamespace(transforms=[from_bag(transform, "geometry_msgs/msg/TransformStamped")])
    ((stamp_ns, pose),) = TransformTracker("base", "tool").add(message, "tf")
    assert stamp_ns == 12_000_000_345
    np.testing.assert_array_equal(pose, [0, 0, 2, 0, 0, 0, 1])
