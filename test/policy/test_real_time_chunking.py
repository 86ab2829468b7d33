"""The previous chunk as the start of the next one: anchored anew, cut in time, refused where it cannot be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.golden import TINY_SINGLE, load_case

from groot_ros.errors import ObservationError
from groot_ros.observation import ActionChunk, Observation
from groot_ros.policy import GrootPolicy

PERIOD_NS = 50_000_000
CASE = load_case("model", "new_embodiment_b2")


@pytest.fixture(scope="module")
def policy() -> GrootPolicy:
    return GrootPolicy.from_checkpoint(TINY_SINGLE, "new_embodiment", device="cpu", rate_hz=20.0)


def observation(stamp_ns: int = 0, moved: float = 0.0) -> Observation:
    return Observation(
        images={key: frames[0] for key, frames in CASE.raw("video").items()},
        state={key: values[0] + np.float32(moved) for key, values in CASE.raw("state").items()},
        instruction=str(CASE["raw.language"][0]),
        stamp_ns=stamp_ns,
    )


def gentle(policy: GrootPolicy) -> ActionChunk:
    """A previous chunk with every row different, near enough to the state that any row can be said by any other."""
    predicted = policy.predict(observation(), seed=1)
    arm = policy.embodiment.statistics.relative_action["single_arm"]
    reach = 0.5 * np.minimum(-arm.min, arm.max).min(axis=0)
    assert (reach > 0).all(), "the trained range must lie around the state"
    wave = np.sin(np.arange(predicted.horizon) + 1.0)[:, None]
    start = CASE.raw("state")["single_arm"][0].astype(np.float64)
    return replace(predicted, groups={**predicted.groups, "single_arm": start + reach * wave})


def test_frozen_rows_are_those_of_the_previous_chunk_at_their_own_times(policy):
    first = gentle(policy)
    rows = 4
    second = policy.predict(observation(rows * PERIOD_NS), first, seed=2, frozen_rows=5)
    assert policy.last_prefix.rows == first.horizon - rows
    for key, values in second.groups.items():
        np.testing.assert_allclose(values[:5], first.groups[key][rows : rows + 5], atol=1e-5, err_msg=key)
        assert not np.allclose(values[10:], first.groups[key][rows:][-6:], atol=1e-3)


def test_a_relative_prefix_is_anchored_to_the_state_of_the_new_observation(policy):
    first = gentle(policy)
    arm = policy.embodiment.statistics.relative_action["single_arm"]
    moved = float(0.2 * np.minimum(-arm.min, arm.max).min())
    second = policy.predict(observation(2 * PERIOD_NS, moved=moved), first, seed=2, frozen_rows=4)
    assert not policy.last_prefix.dropped
    for key, values in second.groups.items():
        np.testing.assert_allclose(values[:4], first.groups[key][2:6], atol=1e-5, err_msg=key)


def test_a_prefix_whose_frozen_rows_cannot_be_said_is_left_out_and_counted(policy):
    first = policy.predict(observation(), seed=1)
    far = replace(first, groups={key: values + 1e6 for key, values in first.groups.items()})
    with_far = policy.predict(observation(PERIOD_NS), far, seed=3, frozen_rows=2)
    assert policy.last_prefix.dropped
    assert policy.last_prefix.clipped_entries > 0
    without = policy.predict(observation(PERIOD_NS), seed=3)
    np.testing.assert_array_equal(with_far.groups["single_arm"], without.groups["single_arm"])


def test_a_chunk_that_has_run_out_is_no_prefix(policy):
    first = policy.predict(observation(), seed=1)
    late = observation(first.horizon * PERIOD_NS)
    second = policy.predict(late, first, seed=4, frozen_rows=3)
    assert policy.last_prefix.rows == 0
    np.testing.assert_array_equal(second.groups["gripper"], policy.predict(late, seed=4).groups["gripper"])


def test_a_prefix_from_the_future_is_refused_with_both_times(policy):
    first = policy.predict(observation(stamp_ns=10 * PERIOD_NS), seed=1)
    with pytest.raises(ObservationError, match=r"its stamp is 0\.500 s after the observation's.*clock jumps back"):
        policy.predict(observation(), first)


def test_a_prefix_of_another_rate_is_refused_with_both_rates(policy):
    first = policy.predict(observation(), seed=1)
    other = replace(first, period_s=1 / 30)
    with pytest.raises(ObservationError, match=r"0\.03333 s apart, but those of this policy 0\.05 s.*20 Hz"):
        policy.predict(observation(), other)


def test_a_stamp_between_two_rows_takes_the_nearest_row(policy):
    first = gentle(policy)
    second = policy.predict(observation(round(2.3 * PERIOD_NS)), first, seed=2, frozen_rows=3)
    for key, values in second.groups.items():
        np.testing.assert_allclose(values[:3], first.groups[key][2:5], atol=1e-5, err_msg=key)


def test_more_frozen_rows_than_the_prefix_has_freeze_the_prefix_alone(policy):
    first = gentle(policy)
    second = policy.predict(observation(14 * PERIOD_NS), first, seed=2, frozen_rows=99)
    assert policy.last_prefix.rows == 2
    for key, values in second.groups.items():
        np.testing.assert_allclose(values[:2], first.groups[key][14:], atol=1e-5, err_msg=key)
