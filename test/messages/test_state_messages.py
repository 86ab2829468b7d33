"""Joints, arrays, poses, transforms and any field: by name, in order, finite, or refused with a sentence."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation, Slerp
from support.contracts import small_contract

from groot_ros.errors import MessageError
from groot_ros.messages import (
    TransformTracker,
    header_stamp_ns,
    read_joint_state,
    read_multi_array,
    read_named_values,
    read_pose,
    read_state,
)
from groot_ros.messages.fields import read_numbers

sensor_msgs = pytest.importorskip("sensor_msgs.msg", reason="the sensor_msgs wheel is not installed")
geometry_msgs = pytest.importorskip("geometry_msgs.msg", reason="the geometry_msgs wheel is not installed")
trajectory_msgs = pytest.importorskip("trajectory_msgs.msg", reason="the trajectory_msgs wheel is not installed")
std_msgs = pytest.importorskip("std_msgs.msg", reason="the std_msgs wheel is not installed")

SECOND = 1_000_000_000


def joints(names=("a", "b", "c"), position=(1.0, 2.0, 3.0), **fields):
    return sensor_msgs.JointState(name=list(names), position=list(position), **fields)


def test_joints_are_found_by_name():
    np.testing.assert_array_equal(read_joint_state(joints(), ["c", "a"], "js"), [3.0, 1.0])


@given(st.permutations(["a", "b", "c"]))
def test_a_permuted_joint_state_gives_the_same_values(order):
    values = {"a": 1.0, "b": 2.0, "c": 3.0}
    message = joints(order, [values[name] for name in order])
    np.testing.assert_array_equal(read_joint_state(message, ["a", "b"], "js"), [1.0, 2.0])


def test_velocity_and_effort_are_read_where_asked():
    message = joints(velocity=[4.0, 5.0, 6.0])
    np.testing.assert_array_equal(read_joint_state(message, ["b"], "js", field="velocity"), [5.0])
    with pytest.raises(MessageError, match="js: 3 joint names, but 0 values in effort"):
        read_joint_state(message, ["b"], "js", field="effort")


def test_a_bag_message_gives_the_same_as_a_live_one():
    bag = SimpleNamespace(name=["a", "b"], position=np.array([1.0, 2.0]))
    np.testing.assert_array_equal(read_joint_state(bag, ["b", "a"], "js"), [2.0, 1.0])


def test_the_values_do_not_change_with_the_message():
    message = joints()
    values = read_joint_state(message, ["a", "b", "c"], "js")
    message.position[0] = 9.0
    assert values[0] == 1.0


def test_a_missing_joint_is_named_with_those_that_are_there():
    with pytest.raises(MessageError, match="js: the message has no joint d, e; it has a, b, c"):
        read_joint_state(joints(), ["a", "d", "e"], "js")
    with pytest.raises(MessageError, match="it has none"):
        read_joint_state(joints([], []), ["a"], "js")


def test_a_joint_that_stands_twice_is_refused():
    with pytest.raises(MessageError, match="js: the joint name a stands twice in one message"):
        read_joint_state(joints(["a", "b", "a"]), ["b"], "js")


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_joint_that_is_not_finite_is_named(value):
    with pytest.raises(MessageError, match=f"js: b is {value}; a state must be finite"):
        read_joint_state(joints(position=[1.0, value, 3.0]), ["a", "b"], "js")
    np.testing.assert_array_equal(read_joint_state(joints(position=[1.0, value, 3.0]), ["a"], "js"), [1.0])


def trajectory():
    points = [trajectory_msgs.JointTrajectoryPoint(positions=[float(row), row + 0.5]) for row in range(2)]
    return trajectory_msgs.JointTrajectory(joint_names=["a", "b"], points=points)


def test_commands_are_read_by_name_from_a_trajectory():
    values = read_named_values(
        trajectory(), ["b", "a"], "cmd", names_field="joint_names", values_field="points[-1].positions"
    )
    np.testing.assert_array_equal(values, [1.5, 1.0])


def test_numbers_are_read_at_any_path():
    message = geometry_msgs.TwistStamped()
    message.twist.linear.x, message.twist.angular.z = 1.0, -2.0
    paths = ("twist.angular.z", "twist.linear.x")
    np.testing.assert_array_equal(read_numbers(message, paths, "twist"), [-2.0, 1.0])
    assert read_numbers(trajectory(), ("points[1].positions[0]",), "cmd") == [1.0]
    assert read_numbers(std_msgs.Bool(data=True), ("data",), "switch") == [1.0]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("twist.linear.w", "twist: Vector3 has no field 'w' (path twist.linear.w); it has x, y, z"),
        ("twist.linear", "twist: twist.linear is Vector3, wanted one number"),
        ("header.frame_id", "twist: header.frame_id is str, wanted one number"),
    ],
)
def test_a_path_that_leads_to_no_number_is_refused(path, expected):
    with pytest.raises(MessageError) as caught:
        read_numbers(geometry_msgs.TwistStamped(), (path,), "twist")
    assert str(caught.value) == expected


def test_an_index_beyond_the_end_is_refused():
    with pytest.raises(MessageError, match=r"cmd: points\[2\]\.positions\[0\] asks for element 2, but there are 2"):
        read_numbers(trajectory(), ("points[2].positions[0]",), "cmd")


def test_an_array_has_as_many_values_as_names():
    message = std_msgs.Float64MultiArray(data=[1.0, 2.0])
    np.testing.assert_array_equal(read_multi_array(message, ["a", "b"], "arr"), [1.0, 2.0])
    with pytest.raises(MessageError, match="arr: found 2 values, wanted 3: a, b, c"):
        read_multi_array(message, ["a", "b", "c"], "arr")
    with pytest.raises(MessageError, match="arr: b is nan"):
        read_multi_array(std_msgs.Float64MultiArray(data=[1.0, float("nan")]), ["a", "b"], "arr")


def pose_message(position, quaternion, stamp_ns=0):
    message = geometry_msgs.PoseStamped()
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp_ns, SECOND)
    message.pose.position.x, message.pose.position.y, message.pose.position.z = map(float, position)
    orientation = message.pose.orientation
    orientation.x, orientation.y, orientation.z, orientation.w = map(float, quaternion)
    return message


def test_a_pose_is_seven_numbers():
    np.testing.assert_array_equal(read_pose(pose_message([1, 2, 3], [0, 0, 1, 0]), "ee"), [1, 2, 3, 0, 0, 1, 0])


def test_an_orientation_that_was_never_set_is_refused():
    with pytest.raises(MessageError, match="ee: the quaternion has length 0, wanted 1"):
        read_pose(pose_message([1, 2, 3], [0, 0, 0, 0]), "ee")
    with pytest.raises(MessageError, match="ee: y is nan; a pose must be finite"):
        read_pose(pose_message([1, float("nan"), 3], [0, 0, 0, 1]), "ee")


def test_the_contract_says_how_each_source_is_read():
    source = small_contract().state["arm"][0]
    np.testing.assert_array_equal(read_state(source, joints(), "js"), [1.0, 2.0])
    pose = small_contract(
        ("{topic: joint_states, joints: [a, b], policy_unit: deg}", "{topic: tool, rotation: rpy}"),
        ("meaning: position", "meaning: pose"),
        ("type: joint_trajectory, topic", "type: pose, frame: base, topic"),
    ).state["arm"][0]
    assert read_state(pose, pose_message([1, 2, 3], [0, 0, 0, 1]), "ee").shape == (7,)


def test_the_stamp_of_a_message_without_a_header_is_not_invented():
    assert header_stamp_ns(std_msgs.Float64MultiArray()) is None
    assert header_stamp_ns(pose_message([0, 0, 0], [0, 0, 0, 1], stamp_ns=3 * SECOND + 7)) == 3 * SECOND + 7


def transforms(*links):
    """A TFMessage of (parent, child, stamp, pose)."""
    found = []
    for parent, child, stamp_ns, pose in links:
        transform = geometry_msgs.TransformStamped(child_frame_id=child)
        transform.header.frame_id = parent
        transform.header.stamp.sec, transform.header.stamp.nanosec = divmod(stamp_ns, SECOND)
        translation, rotation = transform.transform.translation, transform.transform.rotation
        translation.x, translation.y, translation.z = map(float, pose[:3])
        rotation.x, rotation.y, rotation.z, rotation.w = map(float, pose[3:])
        found.append(transform)
    return SimpleNamespace(transforms=found)


def matrix(pose) -> np.ndarray:
    result = np.eye(4)
    result[:3, :3], result[:3, 3] = Rotation.from_quat(pose[3:]).as_matrix(), pose[:3]
    return result


def random_pose(seed: int) -> np.ndarray:
    generator = np.random.default_rng(seed)
    return np.concatenate([generator.uniform(-1, 1, 3), Rotation.random(random_state=seed).as_quat()])


def test_a_chain_of_transforms_is_the_product_of_its_links():
    base, arm, hand, camera = (random_pose(seed) for seed in range(4))
    tracker = TransformTracker("tool", "camera")  # up one branch of the tree, down the other
    static = transforms(("link", "tool", 0, hand), ("base", "camera", 0, camera))
    assert tracker.add(static, "tf", static=True) == []
    samples = tracker.add(transforms(("world", "base", 5, base), ("base", "link", 5, arm)), "tf")
    wanted = np.linalg.inv(matrix(arm) @ matrix(hand)) @ matrix(camera)
    assert [stamp for stamp, _ in samples] == [5]
    np.testing.assert_allclose(matrix(samples[0][1]), wanted, atol=1e-12)


def test_links_of_different_stamps_meet_at_the_older_one():
    first, second, arm = random_pose(1), random_pose(2), random_pose(3)
    tracker = TransformTracker("base", "tool")
    tracker.add(transforms(("base", "link", 100, first)), "tf")
    assert [stamp for stamp, _ in tracker.add(transforms(("link", "tool", 100, arm)), "tf")] == [100]
    assert tracker.add(transforms(("base", "link", 200, second)), "tf") == []
    ((stamp, pose),) = tracker.add(transforms(("link", "tool", 150, arm)), "tf")
    half_way = np.eye(4)
    half_way[:3, :3] = Slerp([0, 1], Rotation.from_quat([first[3:], second[3:]]))(0.5).as_matrix()
    half_way[:3, 3] = (first[:3] + second[:3]) / 2
    assert stamp == 150
    np.testing.assert_allclose(matrix(pose), half_way @ matrix(arm), atol=1e-12)


def test_a_repeated_transform_gives_no_second_sample():
    tracker = TransformTracker("base", "tool")
    message = transforms(("base", "tool", 100, random_pose(1)))
    assert len(tracker.add(message, "tf")) == 1
    assert tracker.add(message, "tf") == []


def test_time_that_goes_back_starts_anew():
    tracker = TransformTracker("base", "tool")
    tracker.add(
        transforms(("base", "link", 9 * SECOND, random_pose(1)), ("link", "tool", 9 * SECOND, random_pose(2))), "tf"
    )
    assert tracker.add(transforms(("base", "link", SECOND, random_pose(3))), "tf") == []
    assert [stamp for stamp, _ in tracker.add(transforms(("link", "tool", SECOND, random_pose(4))), "tf")] == [SECOND]


def test_a_transform_that_is_merely_late_is_left_out():
    tracker = TransformTracker("base", "tool")
    tracker.add(transforms(("base", "tool", 1000, random_pose(1))), "tf")
    assert tracker.add(transforms(("base", "tool", 900, random_pose(2))), "tf") == []
    assert [stamp for stamp, _ in tracker.add(transforms(("base", "tool", 1100, random_pose(2))), "tf")] == [1100]


def test_frames_that_are_not_linked_give_nothing_and_a_sentence_when_asked():
    tracker = TransformTracker("base", "tool")
    assert tracker.add(transforms(("odom", "tool", 1, random_pose(1))), "tf") == []
    with pytest.raises(MessageError, match="tf: no transforms link tool to base; known frames: tool"):
        tracker.lookup(1, "tf")


def test_frames_in_a_circle_are_refused():
    tracker = TransformTracker("base", "tool")
    with pytest.raises(MessageError, match="linked in a circle"):
        tracker.add(transforms(("a", "tool", 1, random_pose(1)), ("tool", "a", 1, random_pose(2))), "tf")


def test_the_memory_of_a_tracker_is_bounded():
    tracker = TransformTracker("base", "tool")
    for stamp in range(1, 5000):
        tracker.add(transforms(("base", "tool", stamp, (0, 0, 0, 0, 0, 0, 1))), "tf")
    assert len(tracker._links["tool"].stamps) <= 2000
