"""Chunks in, commands out: what a robot sees over time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.motion import FEW, PERIOD_NS, PERIOD_S, SECOND, arm_contract, array, chunk, deliver, observe

from groot_ros.errors import ContractError
from groot_ros.execution.executor import Executor
from groot_ros.execution.status import HoldReason, Refusal

HORIZON = 16


def arm(strategy: str = "replace", **changes) -> Executor:
    motion = {"strategy": strategy, "start_tolerance": 10.0, **changes.pop("motion", {})}
    outputs = changes.pop("outputs", {"arm": array()})
    return Executor(arm_contract(motion=motion, outputs=outputs, **changes), horizon=HORIZON)


def motion_at(time_ns) -> np.ndarray:
    time = np.atleast_1d(np.asarray(time_ns, dtype=np.float64)) / SECOND
    return np.stack([np.sin(2.0 * time), 0.5 * np.cos(3.0 * time)], axis=1)


def row_stamps(stamp_ns: int) -> np.ndarray:
    return np.array([stamp_ns + round(row * PERIOD_S * SECOND) for row in range(HORIZON)])


@pytest.mark.parametrize(("strategy", "bound"), [("replace", 0), ("rtc", 0), ("blend", 2e-3), ("ensemble", 2e-3)])
@FEW
@given(latency=st.integers(0, 11 * PERIOD_NS), seed=st.integers(0, 1000))
def test_a_known_motion_is_executed_as_it_is_whatever_the_latency(strategy, bound, latency, seed):
    """Exactly at the row times for replace and rtc; the others are linear between rows of two grids."""
    random = np.random.default_rng(seed)
    executor, running, now, worst = arm(strategy, motion={"hold_s": 5.0}), None, 0, 0.0
    for _ in range(60):
        now += int(random.integers(1, 2 * PERIOD_NS))
        if running and now >= running.started_ns + latency:
            stamp = running.observation_stamp_ns
            prefix = running.prefix
            rows = motion_at(row_stamps(stamp))
            if prefix is not None:  # a perfect policy continues what it is given, which is the same motion
                assert np.max(np.abs(prefix.groups["arm"] - rows[: prefix.horizon])) < 2e-3
            assert executor.accept(chunk(rows, stamp), running, now).accepted
            running = None
            due = row_stamps(stamp)
            for time in due[due > now][:3]:
                (command,) = executor.commands(int(time))
                worst = max(worst, float(np.max(np.abs(command.values - motion_at(time)[0]))))
                now = int(time)
        observe(executor, motion_at(now)[0], now)
        if running is None and executor.inference_due(now):
            running = executor.begin_inference(now, now)
    assert worst <= bound


@FEW
@given(latency=st.integers(0, 13 * PERIOD_NS), wait=st.integers(0, 3 * PERIOD_NS))
def test_no_row_older_than_now_is_ever_sent(latency, wait):
    executor = arm(outputs={"arm": {"type": "joint_trajectory", "topic": "t", "from": {"arm": "all"}}})
    observe(executor, [0, 0], latency)
    rows = np.arange(HORIZON, dtype=float)[:, None] * np.ones(2) / 100
    assert deliver(executor, rows, stamp_ns=0, now_ns=latency).accepted
    now = latency + wait
    for command in executor.commands(now):
        assert command.stamp_ns == now
        assert command.offsets_ns[0] > 0
        sent = (command.stamp_ns + command.offsets_ns) / SECOND
        np.testing.assert_allclose(command.positions[:, 0], sent / PERIOD_S / 100, atol=1e-6)


def test_a_chunk_that_arrives_after_it_has_run_out_is_refused_with_both_figures():
    executor = arm()
    observe(executor, [0, 0], 800_000_000)
    result = deliver(executor, np.zeros((16, 2)), stamp_ns=0, now_ns=800_000_000)
    assert result.refusal is Refusal.EXPIRED
    assert "latency 0.80 s, chunk covers 0.53 s" in result.sentence
    assert executor.status(800_000_000).refusals == {Refusal.EXPIRED: 1}
    assert executor.commands(800_000_000) == []


def test_the_same_is_said_at_the_start():
    assert "latency 0.80 s, chunk covers 0.53 s" in arm().start_up_fault(800_000_000)
    assert arm().start_up_fault(200_000_000) is None
    assert arm(motion={"mode": "synchronous"}).start_up_fault(800_000_000) is None


@pytest.mark.parametrize("interrupt", ["reset", "hold", "change_task"])
def test_an_inference_begun_before_an_interruption_never_moves_the_robot(interrupt):
    executor = arm()
    observe(executor, [0, 0], 0)
    inference = executor.begin_inference(0, 0)
    getattr(executor, interrupt)(PERIOD_NS)
    observe(executor, [0, 0], 2 * PERIOD_NS)
    result = executor.accept(chunk(np.ones((16, 2))), inference, 2 * PERIOD_NS)
    assert result.refusal is Refusal.RESET
    assert "before a reset" in result.sentence
    assert all(np.all(command.values == 0.0) for command in executor.commands(2 * PERIOD_NS))
    assert executor.inference_due(2 * PERIOD_NS), "the next inference may begin at once"


@pytest.mark.parametrize("interrupt", ["reset", "change_task"])
def test_after_an_interruption_the_next_inference_is_due_though_the_one_in_flight_never_comes(interrupt):
    executor = arm()
    observe(executor, [0, 0], 0)
    executor.begin_inference(0, 0)
    assert not executor.inference_due(PERIOD_NS), "one at a time"
    getattr(executor, interrupt)(PERIOD_NS)
    observe(executor, [0, 0], 2 * PERIOD_NS)
    assert executor.inference_due(2 * PERIOD_NS)


@FEW
@given(
    jumps=st.lists(st.integers(-3 * SECOND, SECOND // 5), min_size=5, max_size=30),
    strategy=st.sampled_from(["replace", "blend", "ensemble", "rtc"]),
)
def test_a_clock_that_jumps_never_crashes_and_never_brings_back_an_old_plan(jumps, strategy):
    executor, now = arm(strategy), 10 * SECOND
    for jump in jumps:
        now += jump
        observe(executor, [0, 0], now)
        inference = executor.begin_inference(now, now)
        executor.accept(chunk(np.full((16, 2), 0.1), now), inference, now)
        executor.commands(now)
        executor.status(now)
    executor.observe({"arm": np.zeros((1, 2), np.float32)}, now - 2 * SECOND, now - 2 * SECOND)
    assert executor.status(now - 2 * SECOND).holding is HoldReason.CLOCK_JUMPED_BACK
    assert executor.status(now - 2 * SECOND).rows_ahead == 0


def test_two_threads_that_swap_their_times_do_not_count_as_a_jump():
    executor = arm()
    observe(executor, [0, 0], 0)
    deliver(executor, np.zeros((16, 2)), stamp_ns=0, now_ns=PERIOD_NS)
    executor.commands(PERIOD_NS - 1_000_000)
    assert executor.holding is None


def test_inference_starts_early_enough_for_the_next_chunk_to_meet_the_plan():
    executor = arm(motion={"execution_horizon": 8})
    latency = 2 * PERIOD_NS
    for turn in range(3):  # the first latency is warm-up
        stamp = turn * 4 * PERIOD_NS
        observe(executor, [0, 0], stamp)
        deliver(executor, np.zeros((16, 2)), stamp_ns=stamp, now_ns=stamp + latency)
    due = stamp + 8 * PERIOD_NS - latency
    assert not executor.inference_due(due - PERIOD_NS // 2)
    assert executor.inference_due(due + PERIOD_NS // 2)
    executor.begin_inference(due, due + PERIOD_NS // 2)
    assert not executor.inference_due(due + PERIOD_NS), "one at a time"


def test_the_prefix_is_what_is_still_to_come_on_the_grid_of_the_new_observation():
    executor = arm("rtc", motion={"hold_s": 2.0})
    rows = motion_at(row_stamps(0))
    for turn in range(2):
        observe(executor, [0, 0], 6 * PERIOD_NS + 10 + turn)
        assert executor.begin_inference(0, 6 * PERIOD_NS + 10 + turn).prefix is None, "no latency is known yet"
        assert deliver(executor, rows, stamp_ns=0, now_ns=6 * PERIOD_NS + 10 + turn).accepted
    stamp = row_stamps(0)[7]
    observe(executor, [0, 0], int(stamp))
    inference = executor.begin_inference(int(stamp), int(stamp))
    assert inference.prefix.stamp_ns == stamp
    assert inference.prefix.horizon == 9
    np.testing.assert_allclose(inference.prefix.groups["arm"], rows[7:], rtol=0, atol=1e-6)
    assert inference.frozen_rows == 8, "6 rows pass, and the robot is on its way to the next"


def test_no_prefix_after_a_change_of_task_and_the_plan_goes_on_meanwhile():
    executor = arm("rtc")
    for turn in range(2):
        observe(executor, [0, 0], PERIOD_NS * (turn + 1))
        deliver(executor, np.full((16, 2), 0.1), stamp_ns=PERIOD_NS * turn, now_ns=PERIOD_NS * (turn + 1))
    executor.change_task(3 * PERIOD_NS)
    assert executor.begin_inference(3 * PERIOD_NS, 3 * PERIOD_NS).prefix is None
    assert executor.commands(3 * PERIOD_NS)[0].values == pytest.approx([0.1, 0.1])


def test_a_synchronous_robot_executes_n_rows_from_the_first_and_then_asks():
    executor = arm(motion={"mode": "synchronous", "execution_horizon": 4, "hold_s": 2.0})
    observe(executor, [0, 0], 0)
    rows = np.arange(16.0)[:, None] * np.ones(2)
    now = SECOND
    observe(executor, [0, 0], now)
    assert deliver(executor, rows, stamp_ns=0, now_ns=now).accepted, "its age does not matter"
    sent = []
    for tick in range(6):
        assert executor.inference_due(now + tick * PERIOD_NS) == (tick >= 4)
        sent.append(float(executor.commands(now + tick * PERIOD_NS)[0].values[0]))
    assert sent == pytest.approx([0.0, 0.0, 1.0, 2.0, 3.0, 3.0], abs=1e-6)


def delta_contract(**motion):
    return arm_contract(
        actions={"arm": {"meaning": "delta", **motion.pop("action", {})}}, outputs={"arm": array()}, motion=motion
    )


@FEW
@given(jitter=st.lists(st.integers(0, 3_000_000), min_size=12, max_size=12))
def test_each_delta_of_a_synchronous_chunk_is_sent_once_and_in_order(jitter):
    executor = Executor(delta_contract(mode="synchronous", execution_horizon=8, hold_s=2.0), horizon=16)
    observe(executor, [0, 0], 0)
    rows = np.arange(1.0, 17.0)[:, None] * np.ones(2)
    deliver(executor, rows, stamp_ns=0, now_ns=1)
    sent = [
        float(command.values[0])
        for tick, late in enumerate(jitter)
        for command in executor.commands(1 + tick * PERIOD_NS + late)
    ]
    assert sent == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]


def test_integrated_deltas_begin_at_the_pose_of_the_observation():
    executor = Executor(delta_contract(action={"integrate": True}, strategy="replace"), horizon=16)
    observe(executor, [0.3, -0.2], 0)
    inference = executor.begin_inference(0, 0)
    observe(executor, [0.35, -0.2], PERIOD_NS)
    assert executor.accept(chunk(np.full((16, 2), 0.01)), inference, PERIOD_NS).accepted
    values = executor.commands(2 * PERIOD_NS)[0].values
    np.testing.assert_allclose(values, [0.33, -0.17], atol=1e-6)


def test_rtc_with_deltas_is_refused_in_words():
    with pytest.raises(ContractError, match="rtc continues absolute targets, but arm holds deltas"):
        Executor(delta_contract(action={"integrate": True}, strategy="rtc"), horizon=16)


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ({"arm": np.full((16, 2), np.nan)}, "arm/shoulder is nan in row 0"),
        ({"arm": np.zeros((16, 3))}, "shape (16, 3), but (16, 2)"),
        ({"leg": np.zeros((16, 2))}, "group 'arm' is missing; it has leg"),
    ],
)
def test_a_chunk_that_is_not_what_it_should_be_is_refused(groups, words):
    executor = arm()
    observe(executor, [0, 0], 0)
    inference = executor.begin_inference(0, 0)
    given_chunk = chunk(np.zeros((16, 2)))
    result = executor.accept(type(given_chunk)(0, PERIOD_S, groups, {}), inference, 0)
    assert result.refusal is Refusal.INVALID
    assert words in result.sentence


def test_the_status_says_it_all():
    executor = arm()
    observe(executor, [0, 0], 0)
    deliver(executor, np.zeros((16, 2)), stamp_ns=0, now_ns=2 * PERIOD_NS)
    observe(executor, [0, 0], 3 * PERIOD_NS)
    deliver(executor, np.full((16, 2), 0.2), stamp_ns=2 * PERIOD_NS, now_ns=5 * PERIOD_NS)
    status = executor.status(6 * PERIOD_NS + 10)
    assert status.holding is None
    assert status.chunks == 2
    assert status.chunk_age_s == pytest.approx(4 * PERIOD_S)
    assert status.rows_ahead == 11
    assert status.seam_jump == pytest.approx(0.2)
    assert status.latency_s == pytest.approx(3 * PERIOD_S)
