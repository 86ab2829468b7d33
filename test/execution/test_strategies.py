"""What must hold however two chunks are joined."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation, Slerp
from support.motion import FEW, PERIOD_NS

from groot_ros.contract.actions import DimensionKind
from groot_ros.execution.columns import Columns
from groot_ros.execution.plan import Plan
from groot_ros.execution.strategies import Blend, Ensemble, RealTimeChunking, Replace

STRATEGIES = [Replace(), Blend(200_000_000), Ensemble(0.01), RealTimeChunking()]
ALL = pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda strategy: type(strategy).__name__)


def columns(*kinds: DimensionKind) -> Columns:
    periods = tuple(2 * np.pi if kind is DimensionKind.WRAPPED else np.inf for kind in kinds)
    return Columns(tuple(str(index) for index in range(len(kinds))), kinds, periods)


NUMBER = columns(DimensionKind.CONTINUOUS)


def plan(rows, start_ns: int = 0, of: Columns = NUMBER) -> Plan:
    rows = np.asarray(rows, dtype=np.float64).reshape(len(rows), -1)
    times = start_ns + PERIOD_NS * np.arange(len(rows), dtype=np.int64)
    return Plan(of, times, rows, np.ones(len(rows), dtype=np.int64))


@ALL
@FEW
@given(
    value=st.floats(-10, 10),
    starts=st.lists(st.integers(1, 12 * PERIOD_NS), min_size=1, max_size=5),
    late=st.integers(0, 12 * PERIOD_NS),
)
def test_a_constant_plan_stays_constant(strategy, value, starts, late):
    joined, start = plan([value] * 16), 0
    for step in starts:
        start += step
        joined = strategy.merge(joined, plan([value] * 16, start), start + late)
    times = np.arange(start + late, start + 15 * PERIOD_NS, PERIOD_NS // 3)
    np.testing.assert_allclose(joined.at(times), value, rtol=0, atol=1e-12)


@ALL
@FEW
@given(shift=st.integers(1, 10), late=st.integers(0, 14))
def test_chunks_that_agree_are_executed_as_they_are(strategy, shift, late):
    motion = np.sin(np.arange(40) / 5.0)
    joined = strategy.merge(plan(motion[:16]), plan(motion[shift : shift + 16], shift * PERIOD_NS), late * PERIOD_NS)
    due = np.arange(max(shift, late), shift + 16)
    np.testing.assert_allclose(joined.at(due * PERIOD_NS)[:, 0], motion[due], rtol=0, atol=1e-12)


@ALL
def test_times_increase_and_old_rows_end_at_the_switch(strategy):
    joined = strategy.merge(plan(np.zeros(16)), plan(np.ones(16), 100), 5 * PERIOD_NS + 7)
    assert np.all(np.diff(joined.times_ns) > 0)
    assert joined.end_ns == 15 * PERIOD_NS + 100
    assert joined.at(5 * PERIOD_NS)[0, 0] == 0.0


@FEW
@given(new=st.floats(-5, 5), old=st.floats(-5, 5))
def test_replace_takes_the_new_chunk_at_once_and_blend_begins_at_the_old(new, old):
    switch = 4 * PERIOD_NS
    first, second = plan([old] * 16), plan([new] * 16, 2 * PERIOD_NS)
    assert Replace().merge(first, second, switch).at(switch)[0, 0] == new
    faded = Blend(6 * PERIOD_NS).merge(first, second, switch)
    assert faded.at(switch)[0, 0] == pytest.approx(old)
    assert faded.at(switch + 6 * PERIOD_NS)[0, 0] == pytest.approx(new)
    between = faded.at(np.arange(switch, switch + 6 * PERIOD_NS, PERIOD_NS))[:, 0]
    assert np.all((between >= min(old, new) - 1e-9) & (between <= max(old, new) + 1e-9))


@pytest.mark.parametrize("decay", [0.0, 0.01, 0.5, -0.3])
def test_the_ensemble_is_the_weighted_mean_of_all_predictions(decay):
    values = [1.0, 4.0, -2.0, 0.5]
    joined = None
    for value in values:
        joined = Ensemble(decay).merge(joined, plan([value] * 16), PERIOD_NS)
    weights = np.exp(-decay * np.arange(len(values)))
    assert joined.at(5 * PERIOD_NS)[0, 0] == pytest.approx(np.dot(weights, values) / weights.sum(), abs=1e-12)


def test_the_ensemble_takes_the_new_chunk_alone_where_the_old_one_has_ended():
    joined = Ensemble(0.01).merge(plan(np.zeros(4)), plan(np.ones(10), 2 * PERIOD_NS), 2 * PERIOD_NS)
    assert joined.at(3 * PERIOD_NS)[0, 0] == pytest.approx(0.5, abs=0.01)
    assert joined.at(9 * PERIOD_NS)[0, 0] == 1.0


@ALL
@FEW
@given(
    old=st.lists(st.sampled_from([0.0, 1.0]), min_size=16, max_size=16),
    new=st.lists(st.sampled_from([0.0, 1.0]), min_size=16, max_size=16),
    late=st.integers(0, 10 * PERIOD_NS),
    step=st.integers(1, PERIOD_NS),
)
def test_a_binary_gripper_is_open_or_closed_and_never_between(strategy, old, new, late, step):
    binary = columns(DimensionKind.BINARY)
    joined = strategy.merge(plan(old, of=binary), plan(new, 3 * PERIOD_NS, of=binary), late)
    values = joined.at(step * np.arange(500))
    assert set(np.unique(values)) <= {0.0, 1.0}


@ALL
def test_a_wrapping_angle_goes_the_short_way(strategy):
    wrapped = columns(DimensionKind.WRAPPED)
    joined = strategy.merge(plan([3.1] * 16, of=wrapped), plan([-3.1] * 16, of=wrapped), 2 * PERIOD_NS)
    values = joined.at(np.arange(2 * PERIOD_NS, 15 * PERIOD_NS, PERIOD_NS // 4))[:, 0]
    assert np.all(np.cos(values) < np.cos(3.09))


@FEW
@given(seed=st.integers(0, 1000), weight=st.floats(0, 1))
def test_rotations_turn_by_slerp(seed, weight):
    ends = Rotation.random(2, random_state=seed)
    quaternion = columns(*[DimensionKind.ROTATION] * 4)
    signs = np.where(np.arange(2) % 2, 1.0, -1.0)[:, None]
    mixed = quaternion.mix(*(signs * ends.as_quat())[:, None], np.array([weight]))
    expected = Slerp([0, 1], ends)(weight)
    assert (Rotation.from_quat(mixed[0]) * expected.inv()).magnitude() < 1e-6
    assert np.linalg.norm(mixed) == pytest.approx(1.0)


def test_between_two_rows_a_plan_is_interpolated_and_beyond_its_ends_it_stands():
    ramp = plan(np.arange(4.0), 1000)
    assert ramp.at(1000 + PERIOD_NS // 2)[0, 0] == pytest.approx(0.5, abs=1e-6)
    assert ramp.at(0)[0, 0] == 0.0
    assert ramp.at(10**12)[0, 0] == 3.0
