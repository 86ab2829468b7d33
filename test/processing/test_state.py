"""The state as the network reads it equals the original's, and what does not fit is refused in words."""

import numpy as np
import pytest
from support.golden import case_names, load_case
from support.golden_embodiment import embodiment_of, samples

from groot_ros.errors import CheckpointError, ObservationError

STATE_CASES = case_names("preprocess", "[abc]*")
NON_FINITE = "b07_nan_inf_state"


def finite_cases():
    """Every case with a state, but the one that holds NaN and infinities, and those the original refuses."""
    return [name for name in STATE_CASES if name != NON_FINITE and "error" not in name]


@pytest.mark.parametrize("name", finite_cases())
def test_the_normalised_state_equals_the_original(name):
    case = load_case("preprocess", name)
    encoded = embodiment_of(case.meta).state_encoder().encode(samples(case.raw("state")))
    assert encoded.dtype == np.float32
    assert encoded.shape == case["in.state"].shape
    np.testing.assert_allclose(encoded, case["in.state"], rtol=0, atol=2e-6)


@pytest.mark.parametrize("name", [name for name in case_names("model") if not name.startswith("model_")])
def test_the_state_of_the_full_chain_equals_the_original(name):
    case = load_case("model", name)
    encoded = embodiment_of(case.meta).state_encoder().encode(samples(case.raw("state")))
    np.testing.assert_allclose(encoded, case["in.state"], rtol=0, atol=2e-6)


def test_a_state_that_is_not_finite_is_refused_by_group_dimension_and_value():
    case = load_case("preprocess", NON_FINITE)
    with pytest.raises(
        ObservationError, match=r"state of 'new_embodiment': group 'single_arm', dimension \d, row 0 is"
    ):
        embodiment_of(case.meta).state_encoder().encode(samples(case.raw("state")))


def test_the_finite_rest_of_that_state_still_equals_the_original():
    case = load_case("preprocess", NON_FINITE)
    encoded = embodiment_of(case.meta).state_encoder().encode_unchecked(samples(case.raw("state")))
    assert np.isnan(case["in.state"]).any()
    np.testing.assert_allclose(encoded, case["in.state"], rtol=0, atol=2e-6, equal_nan=True)


@pytest.fixture
def arm():
    return embodiment_of({"tag": "new_embodiment"})


def arm_state(**changes):
    state = {"single_arm": np.zeros((1, 5), np.float32), "gripper": np.zeros((1, 1), np.float32)}
    return {**state, **changes}


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_the_value_that_is_not_finite_stands_in_the_message(arm, value):
    state = arm_state()
    state["single_arm"][0, 3] = value
    with pytest.raises(ObservationError, match=rf"'single_arm', dimension 3, row 0 is {value}; look at the source"):
        arm.state_encoder().encode([state])


def test_a_missing_group_is_named(arm):
    with pytest.raises(ObservationError, match=r"'gripper' missing; the groups are 'single_arm', 'gripper'"):
        arm.state_encoder().encode([{"single_arm": np.zeros((1, 5), np.float32)}])


def test_an_unknown_group_is_named(arm):
    with pytest.raises(ObservationError, match=r"'waist' unknown"):
        arm.state_encoder().encode([arm_state(waist=np.zeros((1, 3), np.float32))])


@pytest.mark.parametrize("shape", [(1, 4), (2, 5), (5,), (0, 5)])
def test_another_shape_is_named_with_what_is_wanted(arm, shape):
    message = rf"group 'single_arm': found shape \({shape[0]}.*rows by dimensions must be \(1, 5\)"
    with pytest.raises(ObservationError, match=message):
        arm.state_encoder().encode([arm_state(single_arm=np.zeros(shape, np.float32))])


def test_the_order_in_which_groups_come_does_not_matter(arm):
    state = arm_state(single_arm=np.array([[1, 2, 3, 4, 5]], np.float32), gripper=np.array([[6]], np.float32))
    encoder = arm.state_encoder()
    np.testing.assert_array_equal(encoder.encode([state]), encoder.encode([dict(reversed(state.items()))]))


def test_a_history_keeps_its_rows_apart():
    history = embodiment_of(
        {"tag": "new_embodiment", "modality_overrides": {"state": {"delta_indices": [-1, 0]}}}
    ).state_encoder()
    rows = {"single_arm": np.array([[0.1] * 5, [0.2] * 5], np.float32), "gripper": np.array([[1], [2]], np.float32)}
    encoded = history.encode([rows])
    single = embodiment_of({"tag": "new_embodiment"}).state_encoder()
    for row in range(2):
        alone = single.encode([{key: values[row : row + 1] for key, values in rows.items()}])
        np.testing.assert_array_equal(encoded[0, row], alone[0, 0])


def test_an_excluded_state_need_not_be_there():
    meta = {"tag": "new_embodiment", "processor_kwargs_overrides": {"exclude_state": True}}
    encoded = embodiment_of(meta).state_encoder().encode([{}, {}])
    np.testing.assert_array_equal(encoded, np.zeros((2, 1, 20), np.float32))


def test_a_checkpoint_without_percentiles_that_asks_for_them_is_refused():
    golden = embodiment_of({"tag": "new_embodiment", "processor_kwargs_overrides": {"use_percentiles": True}})
    for statistics in golden.statistics.state.values():
        object.__setattr__(statistics, "q01", None)
    with pytest.raises(CheckpointError, match=r"key 'single_arm' has no q01 and q99, which use_percentiles needs"):
        golden.state_encoder()


def test_missing_state_statistics_are_named():
    golden = embodiment_of({"tag": "new_embodiment"})
    golden.statistics.state.pop("gripper")
    with pytest.raises(CheckpointError, match=r"state statistics of 'new_embodiment': 'gripper' missing"):
        golden.state_encoder()


def test_a_state_wider_than_the_network_is_refused():
    golden = embodiment_of({"tag": "new_embodiment", "processor_kwargs_overrides": {"max_state_dim": 5}})
    with pytest.raises(CheckpointError, match=r"6 values wide .* max_state_dim is 5"):
        golden.state_encoder()
