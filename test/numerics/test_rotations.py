"""Rotations: every way to write one leads to the same rotation, and the way between two is the short one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from groot_ros.numerics.rotations import (
    matrix_from_quaternion,
    matrix_from_rot6d,
    matrix_from_rotvec,
    matrix_from_rpy,
    quaternion_from_matrix,
    rot6d_from_matrix,
    rotvec_from_matrix,
    rpy_from_matrix,
    slerp_quaternion,
    slerp_rotvec,
)

component = st.floats(-1.0, 1.0, allow_nan=False, width=64)
rotvecs = arrays(np.float64, (3,), elements=st.floats(-1.7, 1.7)).filter(lambda v: 1e-6 < np.linalg.norm(v) < 3.1)


@pytest.mark.parametrize(
    ("write", "read"),
    [
        (quaternion_from_matrix, matrix_from_quaternion),
        (rotvec_from_matrix, matrix_from_rotvec),
        (rpy_from_matrix, matrix_from_rpy),
        (rot6d_from_matrix, matrix_from_rot6d),
    ],
)
@given(rotvec=rotvecs)
def test_each_way_of_writing_keeps_the_rotation(write, read, rotvec):
    matrix = matrix_from_rotvec(rotvec)
    np.testing.assert_allclose(read(write(matrix)), matrix, atol=1e-7)


def test_roll_pitch_yaw_turn_about_fixed_axes_as_ros_defines_them():
    roll, pitch, yaw = 0.3, -0.4, 1.1
    about_x = np.array([[1, 0, 0], [0, np.cos(roll), -np.sin(roll)], [0, np.sin(roll), np.cos(roll)]])
    about_y = np.array([[np.cos(pitch), 0, np.sin(pitch)], [0, 1, 0], [-np.sin(pitch), 0, np.cos(pitch)]])
    about_z = np.array([[np.cos(yaw), -np.sin(yaw), 0], [np.sin(yaw), np.cos(yaw), 0], [0, 0, 1]])
    np.testing.assert_allclose(matrix_from_rpy([roll, pitch, yaw]), about_z @ about_y @ about_x, atol=1e-15)


def test_a_quaternion_is_written_x_y_z_w():
    quarter_turn_about_z = matrix_from_quaternion([0.0, 0.0, np.sqrt(0.5), np.sqrt(0.5)])
    np.testing.assert_allclose(quarter_turn_about_z @ [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], atol=1e-15)


def test_rot6d_holds_rows_and_not_columns():
    matrix = matrix_from_rpy([0.1, 0.2, 0.3])
    np.testing.assert_array_equal(rot6d_from_matrix(matrix), np.concatenate([matrix[0], matrix[1]]))


@given(rows=arrays(np.float64, (6,), elements=component))
def test_rot6d_of_any_two_independent_rows_becomes_a_rotation(rows):
    if np.linalg.norm(np.cross(rows[:3], rows[3:])) < 1e-3:
        return
    matrix = matrix_from_rot6d(rows)
    np.testing.assert_allclose(matrix @ matrix.T, np.eye(3), atol=1e-9)
    assert np.linalg.det(matrix) == pytest.approx(1.0)
    assert np.dot(matrix[0], rows[:3]) == pytest.approx(np.linalg.norm(rows[:3]))


@pytest.mark.parametrize(
    "rows", [[0, 0, 0, 0, 1, 0], [1, 0, 0, 2, 0, 0], [1, 0, 0, 0, 0, 0], [0.3, 0.1, 0.7, 0.9, 0.3, 2.1]]
)
def test_rows_that_name_no_rotation_are_refused(rows):
    with pytest.raises(ValueError, match="zero row, or with two parallel rows"):
        matrix_from_rot6d(rows)


def test_leading_axes_are_kept_even_when_they_are_empty():
    assert matrix_from_rotvec(np.zeros((2, 5, 3))).shape == (2, 5, 3, 3)
    assert rotvec_from_matrix(np.zeros((2, 0, 3, 3))).shape == (2, 0, 3)
    assert matrix_from_rot6d(np.zeros((0, 6))).shape == (0, 3, 3)


def test_a_wrong_width_is_said():
    with pytest.raises(ValueError, match=r"needs 3 numbers in its last axis, but the shape is \(4,\)"):
        matrix_from_rotvec([0.0, 0.0, 0.0, 1.0])
    with pytest.raises(ValueError, match=r"rot6d needs 6 numbers"):
        matrix_from_rot6d([0.0] * 9)


@given(start=rotvecs, end=rotvecs, fraction=st.floats(0.0, 1.0))
def test_slerp_divides_the_angle_in_proportion(start, end, fraction):
    between = slerp_rotvec(start, end, fraction)
    whole = np.linalg.norm(rotvec_from_matrix(matrix_from_rotvec(start).T @ matrix_from_rotvec(end)))
    part = np.linalg.norm(rotvec_from_matrix(matrix_from_rotvec(start).T @ matrix_from_rotvec(between)))
    assert part == pytest.approx(fraction * whole, abs=1e-7)


@given(start=rotvecs, end=rotvecs)
def test_slerp_begins_and_ends_where_it_should(start, end):
    np.testing.assert_allclose(slerp_rotvec(start, end, 0.0), start, atol=1e-7)
    np.testing.assert_allclose(matrix_from_rotvec(slerp_rotvec(start, end, 1.0)), matrix_from_rotvec(end), atol=1e-7)


def test_slerp_of_a_quaternion_and_its_negative_does_not_turn():
    quaternion = quaternion_from_matrix(matrix_from_rpy([0.3, 0.2, 0.1]))
    np.testing.assert_allclose(slerp_quaternion(quaternion, -quaternion, 0.5), quaternion, atol=1e-12)


def test_slerp_takes_one_fraction_a_row():
    start, end = np.zeros((3, 3)), np.tile([0.0, 0.0, 1.0], (3, 1))
    between = slerp_rotvec(start, end, [0.0, 0.5, 1.0])
    np.testing.assert_allclose(between[:, 2], [0.0, 0.5, 1.0], atol=1e-12)
