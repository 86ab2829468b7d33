"""Decoded actions and encoded training targets equal the original's; what means nothing is refused in words."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from support.golden import TINY_SINGLE, case_names, load_case
from support.golden_embodiment import embodiment_of, samples, stored

from groot_ros.errors import CheckpointError, ObservationError, ProcessingError
from groot_ros.numerics.rotations import matrix_from_rotvec

NEAR_PI = "d05_rotvec_near_zero_and_pi"
NON_FINITE = "d22_nan_inf_prediction"
DECODE_CASES = [name for name in case_names("decode", "d*") if "error" not in name and "default_format" not in name]
FULL_CHAIN = [name for name in case_names("model") if not name.startswith("model_")]
XDOF, DROID, ARM = "xdof_relative_eef_relative_joint", "oxe_droid_relative_eef_relative_joint", "new_embodiment"


def assert_decoded(found, wanted, name):
    assert set(found) == set(wanted)
    for key, values in wanted.items():
        assert found[key].dtype == np.float64
        # The original computes mean and standard deviation in float32; the rest holds to float64 arithmetic.
        exact = values.dtype == np.float64
        tolerance = {"rtol": 0, "atol": 1e-7} if exact else {"rtol": 1e-5, "atol": 1e-5}
        if name == NEAR_PI and values.shape[-1] == 6:  # the axis of half a turn has two signs: compare the rotation
            np.testing.assert_allclose(found[key][..., :3], values[..., :3], **tolerance)
            rotations = [matrix_from_rotvec(pose[..., 3:]) for pose in (found[key], values)]
            np.testing.assert_allclose(*rotations, **tolerance)
        else:
            np.testing.assert_allclose(found[key], values, equal_nan=True, **tolerance)


@pytest.mark.parametrize("name", [name for name in DECODE_CASES if name != NON_FINITE])
def test_decoded_actions_equal_the_original(name):
    case = load_case("decode", name)
    found = embodiment_of(case.meta).action_codec().decode(case["in.action_norm"], samples(case.raw("state")))
    assert_decoded(found, stored(case, "decoded"), name)


@pytest.mark.parametrize("name", FULL_CHAIN)
def test_decoded_predictions_of_the_full_chain_equal_the_original(name):
    case = load_case("model", name)
    found = embodiment_of(case.meta).action_codec().decode(case["action_pred"], samples(case.raw("state")))
    assert_decoded(found, stored(case, "decoded"), name)


@pytest.mark.parametrize("name", DECODE_CASES)
def test_encoded_actions_equal_the_original(name):
    case = load_case("decode", name)
    codec = embodiment_of(case.meta).action_codec()
    pairs = zip(samples(case.raw("action")), samples(case.raw("state")), strict=True)
    for index, (actions, state) in enumerate(pairs):
        encoded = codec.encode(actions, state)
        assert encoded.values.dtype == np.float32
        np.testing.assert_allclose(encoded.values, case["encoded.action"][index], rtol=0, atol=2e-6)
        np.testing.assert_array_equal(encoded.mask, case["encoded.action_mask"][index])
        rows, width = encoded.exact.shape
        np.testing.assert_array_equal(encoded.exact.astype(np.float32), encoded.values[:rows, :width])


@pytest.mark.parametrize("name", case_names("preprocess", "t0[1-6]*"))
def test_training_targets_equal_the_original(name):
    case = load_case("preprocess", name)
    encoded = (
        embodiment_of(case.meta).action_codec().encode(samples(case.raw("action"))[0], samples(case.raw("state"))[0])
    )
    np.testing.assert_allclose(encoded.values, case["in.action"], rtol=0, atol=2e-6)
    np.testing.assert_array_equal(encoded.mask, case["in.action_mask"])


def test_a_prediction_that_is_not_finite_is_refused_by_group_dimension_and_value():
    case = load_case("decode", NON_FINITE)
    codec = embodiment_of(case.meta).action_codec()
    with pytest.raises(
        ProcessingError, match=r"group '\w+', dimension \d, row \d+ of sample \d is (nan|inf|-inf); the chunk is"
    ):
        codec.decode(case["in.action_norm"], samples(case.raw("state")))


def test_the_finite_rest_of_that_prediction_still_equals_the_original():
    case = load_case("decode", NON_FINITE)
    wanted = stored(case, "decoded")
    assert any(np.isnan(values).any() for values in wanted.values())
    found = embodiment_of(case.meta).action_codec().decode_unchecked(case["in.action_norm"], samples(case.raw("state")))
    assert_decoded(found, wanted, NON_FINITE)


def test_padding_that_is_not_finite_is_nobodys_business():
    case = load_case("decode", "d15_batch1")
    codec = embodiment_of(case.meta).action_codec()
    prediction = case["in.action_norm"].copy()
    prediction[:, :, codec.width :] = np.nan
    assert_decoded(codec.decode(prediction, samples(case.raw("state"))), stored(case, "decoded"), "d15_batch1")


def test_a_relative_action_without_its_state_is_refused():
    case = load_case("decode", "d17_missing_state_error")
    message = r"group 'single_arm' is relative to state group 'single_arm', which the observation has not; found \[\]"
    with pytest.raises(ObservationError, match=message):
        embodiment_of(case.meta).action_codec().decode(case["in.action_norm"], [{}, {}])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("d18_stale_relative_statistics_error", r"group 'single_arm' have 15 rows, but the action horizon is 16"),
        (
            "d19_missing_relative_statistics_error",
            r"'single_arm' is relative, but statistics.json has no relative_action",
        ),
        (
            "d21_eef_default_format",
            r"'eef_9d' is a relative end-effector pose with format DEFAULT.*XYZ_ROT6D and XYZ_ROTVEC",
        ),
    ],
)
def test_actions_without_meaning_are_refused_when_the_checkpoint_is_opened(name, message):
    golden = embodiment_of(load_case("decode", name).meta)
    with pytest.raises(CheckpointError, match=message):
        golden.action_codec()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"max_action_dim": 5}, r"16 rows of 6 dimensions do not fit max_action_horizon 20 and max_action_dim 5"),
        ({"max_action_horizon": 15}, r"16 rows of 6 dimensions do not fit max_action_horizon 15"),
    ],
)
def test_actions_that_do_not_fit_the_network_are_refused_when_the_checkpoint_is_opened(change, message):
    with pytest.raises(CheckpointError, match=message):
        embodiment_of({"tag": ARM, "processor_kwargs_overrides": change}).action_codec()


def test_a_reference_that_the_embodiment_has_not_is_refused():
    configs = [
        {"rep": "RELATIVE", "type": "EEF", "format": "XYZ_ROTVEC", "state_key": "right_pose"},
        {"rep": "ABSOLUTE", "type": "NON_EEF", "format": "DEFAULT", "state_key": None},
    ]
    golden = embodiment_of({"tag": XDOF, "modality_overrides": {"action": {"action_configs": configs}}})
    with pytest.raises(
        CheckpointError, match=r"'left_target' is relative to state group 'right_pose', which the embod"
    ):
        golden.action_codec()


def test_a_pose_layout_that_does_not_fit_its_width_is_refused():
    configs = [
        {"rep": "RELATIVE", "type": "EEF", "format": "XYZ_ROT6D", "state_key": "left_pose"},
        {"rep": "ABSOLUTE", "type": "NON_EEF", "format": "DEFAULT", "state_key": None},
    ]
    golden = embodiment_of({"tag": XDOF, "modality_overrides": {"action": {"action_configs": configs}}})
    with pytest.raises(CheckpointError, match=r"'left_target' has 9 dimensions, but state group 'left_pose'.* has 6"):
        golden.action_codec()


def test_a_prediction_of_another_shape_is_refused():
    codec = embodiment_of({"tag": ARM}).action_codec()
    with pytest.raises(ProcessingError, match=r"found shape \(1, 15, 18\).* at least 16 rows, at least 6 dimensions"):
        codec.decode(np.zeros((1, 15, 18)), [{}])


def test_a_reference_that_names_no_rotation_is_refused():
    codec = embodiment_of({"tag": DROID}).action_codec()
    state = {"eef_9d": np.zeros((1, 9)), "gripper_position": np.zeros((1, 1)), "joint_position": np.zeros((1, 7))}
    with pytest.raises(
        ProcessingError, match=r"'eef_9d' or its reference, state group 'eef_9d': a rot6d with a zero row"
    ):
        codec.decode(np.zeros((1, 20, 18)), [state])


def arm_chunk(rows=16, value=0.0):
    return {"single_arm": np.full((rows, 5), value), "gripper": np.full((rows, 1), value)}


ARM_STATE = {"single_arm": np.zeros((1, 5)), "gripper": np.zeros((1, 1))}


def test_a_nan_in_the_reference_state_is_refused():
    state = {"single_arm": np.array([[0.0, np.nan, 0.0, 0.0, 0.0]])}
    with pytest.raises(ObservationError, match=r"reference of action group 'single_arm'.*dimension 1, row 0 is nan"):
        embodiment_of({"tag": ARM}).action_codec().decode(np.zeros((1, 20, 18)), [state])


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ({"single_arm": np.zeros((16, 5))}, r"'gripper' missing"),
        ({**arm_chunk(), "waist": np.zeros((16, 1))}, r"'waist' unknown"),
        (arm_chunk(rows=17), r"found 17 rows, but they must be 1 to 16, the action horizon"),
        (arm_chunk(rows=0), r"found 0 rows"),
        ({**arm_chunk(), "gripper": np.zeros((15, 1))}, r"'gripper': found shape \(15, 1\).* must be \(16, 1\)"),
        ({**arm_chunk(), "gripper": np.full((16, 1), np.inf)}, r"'gripper', dimension 0, row 0 is inf.*16 such values"),
    ],
)
def test_actions_that_cannot_be_encoded_are_refused(groups, message):
    with pytest.raises(ProcessingError, match=message):
        embodiment_of({"tag": ARM}).action_codec().encode(groups, ARM_STATE)


def test_what_is_clipped_is_reported_entry_by_entry():
    codec = embodiment_of({"tag": ARM}).action_codec()
    middle = codec.decode(np.zeros((1, 20, 18)), [ARM_STATE])
    chunk = {key: values[0].copy() for key, values in middle.items()}
    chunk["single_arm"][3, 2] = 1e6
    chunk["gripper"][3, 0] = -1e6
    chunk["gripper"][7, 0] = 1e6
    encoded = codec.encode(chunk, ARM_STATE)
    assert [tuple(place) for place in np.argwhere(encoded.clipped)] == [(3, 2), (3, 5), (7, 5)]
    assert encoded.clipped_by_row.tolist() == [0, 0, 0, 2, 0, 0, 0, 1, *[0] * 8]
    assert encoded.values[3, 2] == 1.0
    assert encoded.values[3, 5] == -1.0


def test_nothing_is_clipped_where_the_checkpoint_does_not_clip():
    meta = {"tag": ARM, "processor_kwargs_overrides": {"clip_outliers": False}}
    encoded = embodiment_of(meta).action_codec().encode(arm_chunk(value=1e3), ARM_STATE)
    assert not encoded.clipped.any()
    assert np.abs(encoded.exact).max() > 1.0


def test_a_prefix_row_is_normalised_with_the_statistics_of_its_new_place():
    golden = embodiment_of({"tag": ARM})
    low, high = golden.statistics.relative_action["single_arm"].min, golden.statistics.relative_action["single_arm"].max
    rows = 4
    targets = (low + 0.25 * (high - low))[:rows]  # a quarter of the way up in each row's own range
    prefix = {"single_arm": targets, "gripper": np.zeros((rows, 1))}
    encoded = golden.action_codec().encode(prefix, ARM_STATE)
    np.testing.assert_allclose(encoded.exact[:, :5], -0.5, atol=1e-12)
    assert encoded.exact.shape == (rows, 6)
    assert encoded.mask[:rows, :6].all()
    assert encoded.mask.sum() == rows * 6


def roomy(tag):
    """The tag, with room for every rotation matrix, and no turn in the middle, where invented statistics leave none."""
    statistics = json.loads((TINY_SINGLE / "statistics.json").read_text())[tag]
    for key in {"eef_9d"} & statistics["relative_action"].keys():
        entry = statistics["relative_action"][key]
        no_motion = np.tile([0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0], (len(entry["min"]), 1))
        entry["min"], entry["max"] = (no_motion - 2.1).tolist(), (no_motion + 2.1).tolist()
    return embodiment_of({"tag": tag, "statistics": statistics})


@pytest.mark.parametrize("tag", [ARM, DROID, XDOF, "libero_sim"])
@settings(max_examples=25)
@given(seed=st.integers(0, 2**32 - 1), data=st.data())
def test_a_chunk_re_anchored_to_a_new_state_comes_back_exactly(tag, seed, data):
    golden = roomy(tag)
    codec = golden.action_codec()
    random = np.random.default_rng(seed)
    old, new = {}, {}
    for key, width in golden.state_encoder().dimensions.items():
        old[key] = random.uniform(-1.0, 1.0, (1, width))
        new[key] = old[key] + random.uniform(-0.01, 0.01, (1, width))  # near, so that nothing leaves its range
    elements = st.floats(-0.2, 0.2)
    prediction = data.draw(arrays(np.float64, (1, codec.horizon, codec.width), elements=elements))
    chunk = {key: values[0] for key, values in codec.decode(prediction, [old]).items()}
    encoded = codec.encode(chunk, new)
    assert not encoded.clipped.any()
    again = codec.decode(encoded.exact[None], [new])
    for key, values in chunk.items():
        np.testing.assert_allclose(again[key][0], values, rtol=0, atol=1e-12)
