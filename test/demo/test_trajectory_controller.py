"""What joint_trajectory_controller's rules promise, and how the demo controller moves between points."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.trajectories import point, trajectory

from groot_ros.demo.trajectory_controller import TrajectoryController
from groot_ros.demo.trajectory_rules import JointTrajectoryRules, RejectionReason

JOINTS = ("shoulder", "elbow", "gripper")
NOW = 5_000_000_000
MS = 1_000_000


def controller(**options: bool) -> TrajectoryController:
    return TrajectoryController(JointTrajectoryRules(JOINTS, **options), np.zeros(3))


def full(*points, stamp_ns=0, names=JOINTS):
    return trajectory(names, points, stamp_ns)


REJECTED = {
    "a joint is missing": (full(point([1, 1], 100 * MS), names=JOINTS[:2]), RejectionReason.JOINTS, "all are needed"),
    "a joint is unknown": (
        full(point([1, 1, 1], 100 * MS), names=("shoulder", "elbow", "wrist")),
        RejectionReason.JOINTS,
        "controller's joints are",
    ),
    "a joint is named twice": (
        full(point([1, 1, 1], 100 * MS), names=("shoulder", "shoulder", "elbow")),
        RejectionReason.JOINTS,
        "controller's joints are",
    ),
    "there are no points": (full(), RejectionReason.NO_POINTS, "no points"),
    "two points have one time": (
        full(point([0, 0, 0], 100 * MS), point([1, 1, 1], 100 * MS)),
        RejectionReason.TIMES,
        "points 0 and 1 is 0.100 s and 0.100 s",
    ),
    "the last point is past": (
        full(point([1, 1, 1], 100 * MS), stamp_ns=NOW - 300 * MS),
        RejectionReason.PAST,
        "due 0.200 s before",
    ),
    "the last point still moves": (
        full(point([1, 1, 1], 100 * MS, [0.0, 0.1, 0.0])),
        RejectionReason.END_VELOCITY,
        "not zero",
    ),
    "a value is missing": (full(point([1, 1], 100 * MS)), RejectionReason.LENGTHS, "2 positions for 3 joints"),
    "a velocity is missing": (
        full(point([1, 1, 1], 100 * MS, [0.0])),
        RejectionReason.LENGTHS,
        "1 velocities for 3 joints",
    ),
    "a value is not a number": (full(point([1, math.nan, 1], 100 * MS)), RejectionReason.NOT_FINITE, "nan"),
}


@pytest.mark.parametrize("case", REJECTED)
def test_what_the_controller_rejects_is_counted_with_its_reason_and_changes_nothing(case):
    message, reason, words = REJECTED[case]
    arm = controller()
    arm.receive(full(point([0.5, 0.5, 0.5], 200 * MS)), NOW - 50 * MS)
    before = arm.command(NOW)[0]
    rejection = arm.receive(message, NOW)
    assert rejection is not None
    assert rejection.reason is reason
    assert words in rejection.sentence
    assert arm.rejected == {reason: 1}
    np.testing.assert_array_equal(arm.command(NOW)[0], before)


def test_options_allow_what_they_say():
    partial = controller(allow_partial_joints_goal=True)
    assert partial.receive(full(point([1.0], 100 * MS), names=("elbow",)), NOW) is None
    np.testing.assert_allclose(partial.command(NOW + 100 * MS)[0], [0, 1, 0])
    moving = controller(allow_nonzero_velocity_at_trajectory_end=True)
    assert moving.receive(full(point([1, 1, 1], 100 * MS, [1.0, 1.0, 1.0])), NOW) is None


def test_a_stamp_of_zero_means_now_and_the_way_is_linear_from_the_current_command():
    arm = controller()
    arm.receive(full(point([1.0, 2.0, 0.4], 100 * MS)), NOW)
    np.testing.assert_allclose(arm.command(NOW + 25 * MS)[0], [0.25, 0.5, 0.1])
    np.testing.assert_allclose(arm.command(NOW + 25 * MS)[1], [10.0, 20.0, 4.0])
    np.testing.assert_allclose(arm.command(NOW + 900 * MS)[0], [1.0, 2.0, 0.4])
    np.testing.assert_array_equal(arm.command(NOW + 900 * MS)[1], 0.0)


def test_joints_are_taken_by_name():
    arm = controller()
    arm.receive(full(point([0.3, 0.1, 0.2], 100 * MS), names=("gripper", "shoulder", "elbow")), NOW)
    np.testing.assert_allclose(arm.command(NOW + 100 * MS)[0], [0.1, 0.2, 0.3])


def test_past_points_are_dropped_and_nothing_jumps():
    arm = controller()
    rows = [point([0.1 * i] * 3, i * 100 * MS) for i in range(10)]
    arm.receive(full(*rows, stamp_ns=NOW - 450 * MS), NOW)
    np.testing.assert_allclose(arm.command(NOW)[0], 0.0)
    np.testing.assert_allclose(arm.command(NOW + 50 * MS)[0], 0.5)
    np.testing.assert_allclose(arm.command(NOW + 150 * MS)[0], 0.6)


def test_a_trajectory_of_the_future_is_approached_until_it_begins():
    arm = controller()
    arm.receive(full(point([1.0] * 3, 0), stamp_ns=NOW + 200 * MS), NOW)
    np.testing.assert_allclose(arm.command(NOW + 100 * MS)[0], 0.5)


def test_an_empty_trajectory_cancels_where_the_command_is():
    arm = controller()
    arm.receive(full(point([1.0] * 3, 100 * MS)), NOW)
    assert arm.receive(trajectory((), (), 0), NOW + 50 * MS) is None
    np.testing.assert_allclose(arm.command(NOW + 90 * MS)[0], 0.5)
    assert arm.cancelled == 1


@given(st.lists(st.floats(-2, 2), min_size=6, max_size=6), st.integers(20, 900))
def test_with_velocities_position_and_velocity_are_met_at_the_points_and_agree_between(values, at_ms):
    arm = controller()
    middle, middle_speed, end = (np.append(values[i : i + 2], 0.0) for i in (0, 2, 4))
    arm.receive(full(point(middle, 300 * MS, middle_speed), point(end, 1000 * MS, [0.0] * 3)), NOW)
    np.testing.assert_allclose(arm.command(NOW + 300 * MS)[0], middle, atol=1e-12)
    np.testing.assert_allclose(arm.command(NOW + 300 * MS)[1], middle_speed, atol=1e-9)
    early, late = (arm.command(NOW + at_ms * MS + side * 1000)[0] for side in (-1, 1))
    speed = (late - early) / 2e-6
    np.testing.assert_allclose(arm.command(NOW + at_ms * MS)[1], speed, atol=1e-2)


@given(st.integers(0, 2000), st.integers(0, 2000), st.floats(-1, 1))
def test_a_new_trajectory_never_makes_the_command_jump(first_ms, second_ms, goal):
    arm = controller()
    arm.receive(full(point([1.0] * 3, 700 * MS)), NOW)
    later = NOW + first_ms * MS
    before = arm.command(later)[0]
    arm.receive(full(point([goal] * 3, 500 * MS), point([0.0] * 3, 900 * MS), stamp_ns=later - second_ms * MS), later)
    np.testing.assert_allclose(arm.command(later)[0], before, atol=1e-9)


def test_a_clock_that_jumps_back_holds_the_beginning():
    arm = controller()
    arm.receive(full(point([1.0] * 3, 100 * MS)), NOW)
    np.testing.assert_array_equal(arm.command(NOW - 1000 * MS)[0], 0.0)
