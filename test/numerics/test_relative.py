"""Relative actions: there and back is the same place, and the way means what the field means by it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from groot_ros.numerics.relative import RelativeKind, to_absolute, to_relative
from groot_ros.numerics.rotations import matrix_from_rotvec, rot6d_from_matrix

positions = arrays(np.float64, (3,), elements=st.floats(-2.0, 2.0))
rotvecs = arrays(np.float64, (3,), elements=st.floats(-1.5, 1.5))


def pose(position, rotvec, kind):
    rotation = rot6d_from_matrix(matrix_from_rotvec(rotvec)) if kind is RelativeKind.XYZ_ROT6D else rotvec
    return np.concatenate([position, rotation])


@pytest.mark.parametrize("kind", [RelativeKind.XYZ_ROT6D, RelativeKind.XYZ_ROTVEC])
@given(target=st.tuples(positions, rotvecs), reference=st.tuples(positions, rotvecs))
def test_a_pose_comes_back_from_its_relative_form(kind, target, reference):
    absolute, start = pose(*target, kind), pose(*reference, kind)
    again = to_absolute(to_relative(absolute, start, kind), start, kind)
    np.testing.assert_allclose(again, absolute, atol=1e-7)


@given(
    target=arrays(np.float64, (4, 5), elements=st.floats(-3, 3)),
    reference=arrays(np.float64, (5,), elements=st.floats(-3, 3)),
)
def test_joints_are_differences(target, reference):
    relative = to_relative(target, reference, RelativeKind.JOINTS)
    np.testing.assert_array_equal(relative, target - reference)
    np.testing.assert_allclose(to_absolute(relative, reference, RelativeKind.JOINTS), target, atol=1e-14)


def test_a_relative_position_is_seen_from_the_reference_frame():
    facing_left = np.array([1.0, 0.0, 0.0, 0.0, 0.0, np.pi / 2])
    one_metre_ahead_of_it = np.array([1.0, 1.0, 0.0, 0.0, 0.0, np.pi / 2])
    relative = to_relative(one_metre_ahead_of_it, facing_left, RelativeKind.XYZ_ROTVEC)
    np.testing.assert_allclose(relative, [1.0, 0.0, 0.0, 0.0, 0.0, 0.0], atol=1e-15)


def test_the_reference_against_itself_is_no_motion():
    start = pose([0.1, 0.2, 0.3], [0.3, -0.2, 0.9], RelativeKind.XYZ_ROT6D)
    np.testing.assert_allclose(
        to_relative(start, start, RelativeKind.XYZ_ROT6D), [0, 0, 0, 1, 0, 0, 0, 1, 0], atol=1e-15
    )


def test_a_reference_whose_rows_are_not_orthonormal_means_the_rotation_that_gram_schmidt_makes_of_it():
    clean = pose([0.1, 0.2, 0.3], [0.3, -0.2, 0.9], RelativeKind.XYZ_ROT6D)
    skewed = np.concatenate([clean[:3], 2.0 * clean[3:6], 0.5 * clean[6:9] + 0.7 * clean[3:6]])
    motion = pose([0.01, 0.0, 0.0], [0.0, 0.1, 0.0], RelativeKind.XYZ_ROT6D)
    np.testing.assert_allclose(
        to_absolute(motion, skewed, RelativeKind.XYZ_ROT6D),
        to_absolute(motion, clean, RelativeKind.XYZ_ROT6D),
        atol=1e-15,
    )


def test_a_chunk_of_a_batch_takes_one_reference_a_sample():
    random = np.random.default_rng(0)
    chunk, references = random.uniform(-1, 1, (2, 7, 6)), random.uniform(-1, 1, (2, 1, 6))
    together = to_absolute(chunk, references, RelativeKind.XYZ_ROTVEC)
    alone = to_absolute(chunk[1, 3], references[1, 0], RelativeKind.XYZ_ROTVEC)
    np.testing.assert_allclose(together[1, 3], alone, atol=1e-15)


def test_a_pose_of_another_width_is_said():
    with pytest.raises(
        ValueError, match=r"written as xyz\+rot6d has 9 numbers in its last axis, but the shape is \(6,\)"
    ):
        to_relative(np.zeros(6), np.zeros(6), RelativeKind.XYZ_ROT6D)
