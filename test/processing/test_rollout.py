"""What LIBERO's simulator is sent for the gripper, and that no other robot is sent it."""

import numpy as np
import pytest
from support.golden import load_case

from groot_ros.errors import ProcessingError
from groot_ros.processing.rollout import libero_gripper, rollout_transform


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_the_libero_gripper_equals_the_original_but_for_exactly_one_half(precision):
    case = load_case("decode", "e01_libero_gripper_rollout")
    gripper, wanted = case[f"{precision}.gripper"], case[f"{precision}.nvidia_env_action"]
    found = libero_gripper(gripper)
    half = gripper == 0.5
    assert half.any()
    np.testing.assert_array_equal(found[~half], wanted[~half])
    np.testing.assert_array_equal(wanted[half], 0.0)
    assert set(found[half]) <= {-1.0, 1.0}


@pytest.mark.parametrize(
    ("gripper", "before", "wanted"),
    [
        ([0.5, 0.5, 0.2, 0.5, 0.9, 0.5], None, [-1, -1, 1, 1, -1, -1]),
        ([0.5, 0.9], 1.0, [1, -1]),
    ],
)
def test_one_half_keeps_the_row_before_and_opens_where_there_is_none(gripper, before, wanted):
    groups = {"gripper": np.array(gripper)[:, None], "x": np.ones((len(gripper), 1))}
    row_before = None if before is None else {"gripper": np.array([before])}
    found = rollout_transform("libero", "libero_sim")(groups, row_before)
    np.testing.assert_array_equal(found["gripper"][:, 0], wanted)
    assert found["gripper"].shape == (len(gripper), 1)
    np.testing.assert_array_equal(found["x"], groups["x"])


def test_the_decoded_chunk_itself_stays_as_it_was():
    groups = {"gripper": np.array([[0.2]])}
    rollout_transform("libero", "libero_sim")(groups)
    assert groups["gripper"][0, 0] == 0.2


@pytest.mark.parametrize(
    ("name", "tag", "chosen"),
    [
        ("auto", "libero_sim", "libero"),
        ("auto", "new_embodiment", "none"),
        ("none", "libero_sim", "none"),
        ("libero", "new_embodiment", "libero"),
    ],
)
def test_the_transform_belongs_to_the_tag_unless_it_is_named(name, tag, chosen):
    assert rollout_transform(name, tag).name == chosen


def test_without_a_transform_everything_passes():
    groups = {"gripper": np.array([[0.2], [np.pi]])}
    np.testing.assert_array_equal(rollout_transform("none", "libero_sim")(groups)["gripper"], groups["gripper"])


def test_an_unknown_transform_is_refused_with_the_list():
    with pytest.raises(
        ProcessingError, match=r"action_decode_transform: found 'calvin'; allowed are auto, none, libero"
    ):
        rollout_transform("calvin", "libero_sim")


@pytest.mark.parametrize("groups", [{"hand": np.zeros((4, 1))}, {"gripper": np.zeros((4, 2))}])
def test_libero_without_a_gripper_of_one_dimension_is_refused(groups):
    with pytest.raises(
        ProcessingError, match=r"libero needs an action group 'gripper' of one dimension, found .*shape"
    ):
        rollout_transform("libero", "new_embodiment")(groups)


def test_a_gripper_that_is_not_finite_is_refused():
    with pytest.raises(ProcessingError, match=r"action group 'gripper', dimension 0, row 1 is nan"):
        rollout_transform("libero", "libero_sim")({"gripper": np.array([[0.1], [np.nan]])})
