"""How motion begins and ends: the start gate, holds that are sent, and a robot at rest."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.motion import FEW, JOINTS, PERIOD_NS, SECOND, arm_contract, array, deliver, observe, trajectory
from support.trajectories import command_message

from groot_ros.demo.trajectory_rules import JointTrajectoryRules
from groot_ros.execution.commands import ArrayCommand
from groot_ros.execution.executor import Executor
from groot_ros.execution.status import HoldReason, Refusal

SPEED_LIMITS = {"joints": {name: {"position": [-4.0, 4.0], "velocity": 1.0} for name in JOINTS}}
RAMP = np.arange(16.0)[:, None] * np.array([0.02, -0.01])


def moving(output, limits="none", **motion) -> Executor:
    motion = {"strategy": "replace", "hold_s": 0.3, "hold_ramp_s": 0.2, **motion}
    contract = arm_contract(outputs={"arm": output}, limits=limits, motion=motion)
    executor = Executor(contract, horizon=16)
    observe(executor, [0, 0], 0)
    assert deliver(executor, RAMP, stamp_ns=0, now_ns=0).accepted
    return executor


def run(executor: Executor, start_ns: int, end_ns: int, *, seen: bool) -> list:
    sent = []
    for now in range(start_ns, end_ns, 10_000_000):
        if seen:
            observe(executor, [0, 0], now)
        sent += [(now, command) for command in executor.commands(now)]
    return sent


@pytest.mark.parametrize(
    ("seen", "reason", "latest_s"), [(True, HoldReason.NO_PLAN, 0.5 + 0.3), (False, HoldReason.NO_OBSERVATION, 0.3)]
)
def test_without_plan_or_observation_the_robot_is_at_rest_in_time_and_told_so_once(seen, reason, latest_s):
    executor = moving(array())
    sent = run(executor, 0, 2 * SECOND, seen=seen)
    assert executor.holding is reason
    assert executor.status(2 * SECOND).holds == {reason: 1}
    values = np.array([command.values for _, command in sent])
    times = np.array([time for time, _ in sent]) / SECOND
    assert times[-1] <= latest_s + 0.2 + 0.02, "nothing is sent after the ramp"
    speeds = np.abs(np.diff(values[:, 0])) / 0.01
    assert speeds[-1] < 0.05
    assert np.all(speeds <= 0.6 + 1e-6), "no step on the way to rest"


def test_a_hold_trajectory_comes_to_rest_within_its_ramp_and_replaces_what_was_sent():
    executor = moving(trajectory())
    sent = run(executor, 0, SECOND, seen=False)
    time, last = sent[-1]
    assert 0.3 * SECOND <= time <= 0.33 * SECOND
    assert last.offsets_ns.tolist() == [200_000_000]
    assert not np.any(last.velocities)
    assert last.positions[0] == pytest.approx(RAMP[9] + RAMP[1] * 30 * 0.1, abs=0.02), "an even deceleration"


def test_a_hold_counts_from_its_arrival_however_late_that_is():
    executor = moving(trajectory())
    executor.commands(0)
    hold = command_message(executor.hold(100_000_000)[0])
    rules = JointTrajectoryRules(JOINTS)
    assert rules.check(hold, 100_000_000) is None
    assert rules.check(hold, 10 * SECOND) is None


def test_what_would_end_before_a_busy_machine_has_delivered_it_is_not_sent():
    executor = moving(trajectory())
    end_ns = 15 * PERIOD_NS
    for now in range(0, end_ns, 1_000_000):
        observe(executor, [0, 0], now)
        for command in executor.commands(now):
            assert command.stamp_ns + command.offsets_ns[-1] >= now + 50_000_000
    late = moving(trajectory())
    observe(late, [0, 0], end_ns - 20_000_000)
    assert late.commands(end_ns - 20_000_000) == []


def test_a_hold_starts_from_what_another_process_has_sent():
    policy, watchdog = moving(trajectory()), Executor(arm_contract(outputs={"arm": trajectory()}), horizon=1)
    assert watchdog.hold(0) == [], "nothing is known of the robot"
    (command,) = policy.commands(0)
    watchdog.overhear(command, 0)
    (own,), (other,) = policy.hold(150_000_000), watchdog.hold(150_000_000)
    np.testing.assert_allclose(other.positions, own.positions)
    assert other.offsets_ns.tolist() == own.offsets_ns.tolist()
    sampled = Executor(arm_contract(outputs={"arm": array()}), horizon=1)
    sampled.overhear(ArrayCommand("arm", JOINTS, np.array([0.3, -0.1])), 0)
    assert sampled.hold(0)[0].values.tolist() == [0.3, -0.1]


@pytest.mark.parametrize("output", [array(), trajectory()], ids=["array", "trajectory"])
def test_a_stop_is_a_command_and_nothing_follows_it(output):
    executor = moving(output)
    executor.commands(PERIOD_NS * 3)
    (stop,) = executor.hold(PERIOD_NS * 4)
    values = np.ravel(stop.values if hasattr(stop, "values") else stop.positions)
    assert np.all(np.isfinite(values))
    assert executor.holding is HoldReason.REQUESTED
    assert run(executor, PERIOD_NS * 5, SECOND, seen=True) == []


def test_a_stop_before_anything_was_sent_holds_where_the_robot_stands():
    executor = Executor(arm_contract(outputs={"arm": trajectory()}), horizon=16)
    assert executor.hold(0) == [], "nothing is known and nothing was sent"
    observe(executor, [0.4, 0.2], 1)
    assert executor.hold(2)[0].positions[0] == pytest.approx([0.4, 0.2])


def test_velocities_are_held_at_zero():
    contract = arm_contract(
        actions={"arm": {"meaning": "velocity"}}, outputs={"arm": array()}, motion={"strategy": "replace"}
    )
    executor = Executor(contract, horizon=16)
    observe(executor, [0, 0], 0)
    deliver(executor, np.ones((16, 2)), stamp_ns=0, now_ns=0)
    assert executor.commands(PERIOD_NS)[0].values == pytest.approx([1.0, 1.0])
    assert executor.commands(16 * PERIOD_NS)[0].values == pytest.approx([0.0, 0.0]), "run out"
    observe(executor, [0, 0], 17 * PERIOD_NS)
    deliver(executor, np.ones((16, 2)), stamp_ns=17 * PERIOD_NS, now_ns=17 * PERIOD_NS)
    assert executor.commands(18 * PERIOD_NS)[0].values == pytest.approx([1.0, 1.0])
    assert executor.hold(19 * PERIOD_NS)[0].values == pytest.approx([0.0, 0.0])


def test_a_stalled_policy_is_noticed_while_rows_are_left():
    executor = Executor(
        arm_contract(outputs={"arm": array()}, motion={"strategy": "replace", "start_tolerance": 9.0}), horizon=40
    )
    for turn in range(3):
        now = turn * 8 * PERIOD_NS + PERIOD_NS
        observe(executor, [0, 0], now)
        deliver(executor, np.zeros((40, 2)), stamp_ns=now - PERIOD_NS, now_ns=now)
    executor.begin_inference(now, now)
    sent = run(executor, now, now + SECOND, seen=True)
    assert executor.holding is HoldReason.INFERENCE_OVERDUE
    assert sent[-1][0] <= now + PERIOD_NS + 0.3 * SECOND + 0.2 * SECOND + 0.02 * SECOND


def test_an_observation_that_is_seen_again_is_not_fresh():
    executor = moving(array())
    for now in range(0, SECOND, 20_000_000):
        executor.observe({"arm": np.zeros((1, 2), np.float32)}, 5, now)
        executor.commands(now)
    assert executor.holding is HoldReason.NO_OBSERVATION


def test_joint_states_alone_do_not_keep_the_robot_moving():
    executor = moving(array())
    for now in range(0, SECOND, 20_000_000):
        executor.observe({"arm": np.zeros((1, 2), np.float32)}, now, now, complete=False)
        executor.commands(now)
    assert executor.holding is HoldReason.NO_OBSERVATION


@FEW
@given(away=st.floats(0.06, 1.0), signs=st.sampled_from([1.0, -1.0]), output=st.sampled_from([array(), trajectory()]))
def test_a_first_command_far_from_the_robot_is_approached_by_a_ramp(away, signs, output):
    motion = {"strategy": "replace", "start_tolerance": 0.05, "start_ramp_s": 0.5, "hold_s": 2.0}
    executor = Executor(arm_contract(outputs={"arm": output}, motion=motion), horizon=16)
    observe(executor, [0, 0], 0)
    assert deliver(executor, np.tile([signs * away, 0.0], (16, 1)), stamp_ns=0, now_ns=0).accepted
    steepest = 1.5 * away / 0.5  # of a smooth step over the ramp
    for now in range(0, 15 * PERIOD_NS, 10_000_000):
        before = executor.commanded("arm", now)
        start = 0.0 if before is None else before[0]
        for command in executor.commands(now):
            if hasattr(command, "values"):
                assert abs(command.values[0] - start) <= steepest * 0.01 + 1e-9
            else:
                steps = np.diff(np.concatenate([[start], command.positions[:, 0]]))
                spans = np.diff(np.concatenate([[0], command.offsets_ns])) / SECOND
                assert np.all(np.abs(steps) <= steepest * spans + 1e-9)


def test_a_robot_that_may_not_ramp_refuses_with_the_joint_and_both_figures():
    motion = {"start_ramp_s": "none", "start_tolerance": 0.05}
    executor = Executor(arm_contract(outputs={"arm": array()}, motion=motion), horizon=16)
    observe(executor, [0, 0], 0)
    result = deliver(executor, np.tile([0.0, 0.7], (16, 1)), stamp_ns=0, now_ns=0)
    assert result.refusal is Refusal.START_JUMP
    assert "move elbow by 0.700, but start_tolerance is 0.050" in result.sentence


def test_motion_does_not_begin_where_the_robot_is_not_measured():
    contract = arm_contract(
        state={"other": {"topic": "joint_states", "joints": ["x"]}},
        actions={"arm": {"meaning": "position", "names": ["shoulder", "elbow"]}},
        outputs={"arm": array()},
    )
    executor = Executor(contract, horizon=16)
    observe(executor, [0], 0, key="other")
    result = deliver(executor, np.zeros((16, 2)), stamp_ns=0, now_ns=0)
    assert result.refusal is Refusal.NOT_MEASURED
    assert "where shoulder, elbow stand is not measured" in result.sentence


def test_after_a_hold_motion_begins_where_the_robot_was_held():
    executor = moving(array(), start_tolerance=0.05)
    sent = run(executor, 0, SECOND, seen=False)
    held = sent[-1][1].values
    observe(executor, held + 0.01, SECOND)
    assert deliver(executor, np.tile(held + 0.03, (16, 1)), stamp_ns=SECOND, now_ns=SECOND).accepted
    (command,) = executor.commands(SECOND + 1)
    assert command.values == pytest.approx(held + 0.03, abs=1e-6), "near enough to need no ramp"


def values_of(command) -> np.ndarray:
    return np.atleast_2d(command.values if hasattr(command, "values") else command.positions)


def held_and_moved(output, place, **motion) -> Executor:
    """Held, at rest for a second, and then put elsewhere by a hand or another controller."""
    executor = moving(output, SPEED_LIMITS, start_tolerance=0.05, **motion)
    run(executor, 0, 2 * SECOND, seen=False)
    observe(executor, place, 2 * SECOND)
    return executor


BOTH = pytest.mark.parametrize("output", [array(), trajectory()], ids=["array", "trajectory"])
AWAY = st.sampled_from([1.0, -1.0]).flatmap(lambda sign: st.floats(0.5, 2.0).map(lambda way: sign * way))


@BOTH
@FEW
@given(place=st.tuples(AWAY, AWAY))
def test_a_robot_that_was_moved_while_held_goes_on_from_where_it_stands_and_is_not_pulled_back(output, place):
    executor = held_and_moved(output, place)
    assert deliver(executor, np.tile(place, (16, 1)), stamp_ns=2 * SECOND, now_ns=2 * SECOND).accepted
    sent = [command for tick in range(10) for command in executor.commands(2 * SECOND + tick * 10_000_000)]
    assert sent
    for command in sent:
        np.testing.assert_allclose(values_of(command), np.tile(place, (len(values_of(command)), 1)), atol=1e-6)


@BOTH
def test_the_ramp_of_a_robot_that_was_moved_begins_where_it_stands(output):
    place = np.array([1.0, -1.0])
    executor = held_and_moved(output, place, start_ramp_s=0.5)
    assert deliver(executor, np.tile(place + 0.2, (16, 1)), stamp_ns=2 * SECOND, now_ns=2 * SECOND).accepted
    for tick in range(1, 10):
        for command in executor.commands(2 * SECOND + tick * 10_000_000):
            assert np.all(values_of(command) >= place - 1e-6)
            assert np.all(values_of(command) <= place + 0.2 + 1e-6)


@BOTH
def test_a_second_stop_leaves_a_robot_alone_that_was_moved_or_is_not_seen_any_more(output):
    assert held_and_moved(output, [1.0, -1.0]).hold(2 * SECOND) == [], "its controller holds it where it stands"
    unseen = moving(output, start_tolerance=0.05)
    run(unseen, 0, 2 * SECOND, seen=False)
    assert unseen.hold(10 * SECOND) == [], "it may have been moved"


@BOTH
def test_a_second_stop_says_again_what_a_robot_does_that_sags_a_little(output):
    executor = moving(output, start_tolerance=0.05)
    held = values_of(run(executor, 0, 2 * SECOND, seen=False)[-1][1])[-1]
    for now in (2 * SECOND, 3 * SECOND):
        observe(executor, held - 0.04, now)
        assert values_of(executor.hold(now)[0])[-1] == pytest.approx(held, abs=1e-6), "and it does not sink further"


@BOTH
def test_a_second_stop_does_not_let_go_of_what_a_joint_presses_against(output):
    executor = moving(output, start_tolerance=0.05)
    held = values_of(run(executor, 0, 2 * SECOND, seen=False)[-1][1])[-1]
    observe(executor, held + np.array([0.0, 0.4]), 2 * SECOND)
    assert executor.hold(2 * SECOND) == []


@BOTH
def test_of_a_robot_that_was_moved_only_the_joint_that_was_moved_sets_out_from_elsewhere(output):
    executor = moving(output, start_tolerance=0.05)
    held = values_of(run(executor, 0, 2 * SECOND, seen=False)[-1][1])[-1]
    observe(executor, held + np.array([0.03, 0.4]), 2 * SECOND)
    assert deliver(
        executor, np.tile(held + np.array([0.0, 0.4]), (16, 1)), stamp_ns=2 * SECOND, now_ns=2 * SECOND
    ).accepted
    first = values_of(executor.commands(2 * SECOND + 10_000_000)[0])[0]
    assert first == pytest.approx(held + np.array([0.0, 0.4]), abs=1e-6)


@BOTH
def test_a_stop_of_a_robot_that_was_never_moved_needs_to_know_where_it_is_now(output):
    executor = Executor(arm_contract(outputs={"arm": output}), horizon=16)
    observe(executor, [0.4, 0.2], 0)
    assert executor.hold(10 * SECOND) == []


@BOTH
def test_a_chunk_that_comes_while_the_robot_still_slows_down_goes_on_without_a_step_back(output):
    executor = moving(output, SPEED_LIMITS, start_tolerance=0.05, hold_s=0.2)
    for now in range(0, 340_000_000, 10_000_000):
        if now < 100_000_000:
            observe(executor, [0, 0], now)
        executor.commands(now)
    assert executor.holding is HoldReason.NO_OBSERVATION
    before = executor.commanded("arm", 340_000_000)
    observe(executor, before - 0.12, 340_000_000)  # as far behind as a robot lags that moves
    rows = np.tile(before + 0.02, (16, 1))
    assert deliver(executor, rows, stamp_ns=340_000_000, now_ns=340_000_000).accepted
    for now in range(350_000_000, 600_000_000, 10_000_000):
        for command in executor.commands(now):
            assert np.all(values_of(command) >= before - 0.011), "no further back than the limit lets it"


def test_the_first_velocity_is_not_the_joints_position():
    contract = arm_contract(
        actions={"arm": {"meaning": "velocity"}},
        outputs={"arm": array()},
        limits={"joints": {name: {"position": "none", "velocity": 2.0, "step_per_s": 1.0} for name in JOINTS}},
        motion={"strategy": "replace"},
    )
    executor = Executor(contract, horizon=16)
    observe(executor, [1.5, 0], 0)
    assert deliver(executor, np.ones((16, 2)), stamp_ns=0, now_ns=0).accepted
    assert np.all(np.abs(executor.commands(PERIOD_NS)[0].values) <= 0.05)


def test_a_watchdog_that_heard_nothing_for_long_moves_nothing_that_stands_elsewhere():
    watchdog = Executor(arm_contract(outputs={"arm": trajectory()}), horizon=1)
    (command,) = moving(trajectory()).commands(0)
    watchdog.overhear(command, 0)
    observe(watchdog, [1.0, 1.0], 10 * SECOND)
    assert watchdog.hold(10 * SECOND) == []


@BOTH
def test_a_stop_in_motion_does_not_jump_back_to_a_robot_that_lags_behind(output):
    executor = moving(output, start_tolerance=0.05)
    for now in range(0, 300_000_000, 10_000_000):
        observe(executor, [0, 0], now)
        executor.commands(now)
    before = executor.commanded("arm", 300_000_000)
    assert before[0] > 0.1
    (stop,) = executor.hold(300_000_000)
    (again,) = executor.hold(310_000_000)
    for command in (stop, again):
        assert values_of(command)[-1][0] >= before[0] - 1e-6
