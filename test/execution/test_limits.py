"""Nothing beyond a limit leaves, and what is senseless is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.spatial.transform import Rotation
from support.motion import FEW, PERIOD_NS, SECOND, arm_contract, array, deliver, observe, trajectory

from groot_ros.errors import ContractError
from groot_ros.execution.executor import Executor
from groot_ros.execution.status import HoldReason, Refusal
from groot_ros.execution.urdf import parse_urdf, read_urdf

LIMITS = {
    "joints": {
        "shoulder": {"position": [-1.0, 1.0], "velocity": 2.0},
        "elbow": {"position": [-0.5, 0.5], "velocity": 3.0, "step_per_s": 1.0},
    }
}
LOWER, UPPER, RATE = np.array([-1.0, -0.5]), np.array([1.0, 0.5]), np.array([2.0, 1.0])


def limited(output, **motion) -> Executor:
    motion = {"strategy": "replace", "start_tolerance": 10.0, "hold_s": 5.0, "far_beyond": 100.0, **motion}
    return Executor(arm_contract(outputs={"arm": output}, limits=LIMITS, motion=motion), horizon=16)


@FEW
@given(
    rows=arrays.arrays(float, (16, 2), elements=st.floats(-3, 3)),
    ticks=st.lists(st.integers(1, 2 * PERIOD_NS), min_size=1, max_size=30),
)
def test_no_sampled_command_is_beyond_a_position_velocity_or_step_limit(rows, ticks):
    executor, now, before, before_ns = limited(array()), 0, np.zeros(2), 0
    observe(executor, [0, 0], 0)
    deliver(executor, rows, stamp_ns=0, now_ns=0)
    for tick in ticks:
        now += tick
        for command in executor.commands(now):
            assert np.all((command.values >= LOWER) & (command.values <= UPPER))
            assert np.all(np.abs(command.values - before) <= RATE * (now - before_ns) / SECOND + 1e-9)
            before, before_ns = command.values, now


@FEW
@given(
    chunks=st.lists(arrays.arrays(float, (16, 2), elements=st.floats(-3, 3)), min_size=1, max_size=4),
    wait=st.integers(1, 6 * PERIOD_NS),
)
def test_no_trajectory_is_beyond_a_limit_from_the_one_before_it_on(chunks, wait):
    executor, now = limited(trajectory()), 0
    observe(executor, [0, 0], 0)
    for rows in chunks:
        deliver(executor, rows, stamp_ns=now, now_ns=now)
        for tick in range(3):
            now += wait // 3 + tick
            start = executor.commanded("arm", now)
            for command in executor.commands(now):
                assert np.all((command.positions >= LOWER) & (command.positions <= UPPER))
                values = np.vstack([np.zeros(2) if start is None else start, command.positions])
                steps = np.diff(np.concatenate([[0], command.offsets_ns]))[:, None] / SECOND
                assert np.all(np.abs(np.diff(values, axis=0)) <= RATE * steps + 1e-9)
                assert np.all(np.abs(command.velocities) <= RATE + 1e-9)


def test_what_limits_change_is_counted_by_joint():
    executor = limited(array())
    observe(executor, [0.9, 0.0], 0)
    deliver(executor, np.tile([1.2, 0.4], (16, 1)), stamp_ns=0, now_ns=0)
    executor.commands(PERIOD_NS)
    executor.commands(2 * PERIOD_NS)
    status = executor.status(2 * PERIOD_NS)
    assert status.clips == {"shoulder": 2}
    assert status.slowed["elbow"] == 2


def test_a_chunk_far_beyond_a_limit_is_refused_and_the_robot_held():
    executor = limited(array(), far_beyond=0.25)
    observe(executor, [0, 0], 0)
    deliver(executor, np.zeros((16, 2)), stamp_ns=0, now_ns=0)
    executor.commands(1)
    observe(executor, [0, 0], PERIOD_NS)
    result = deliver(executor, np.tile([57.3, 0.0], (16, 1)), stamp_ns=PERIOD_NS, now_ns=PERIOD_NS)
    assert result.refusal is Refusal.BEYOND_LIMIT
    assert "wants shoulder at 57.300, but its limits are -1.000 to 1.000" in result.sentence
    assert executor.holding is HoldReason.CLIPPED
    assert np.all(executor.commands(2 * PERIOD_NS)[0].values == 0.0)


def test_clipped_for_long_the_robot_is_held_until_a_chunk_is_within_its_limits():
    executor = limited(array(), clip_hold_s=0.2)
    observe(executor, [1.0, 0.0], 0)
    deliver(executor, np.tile([1.1, 0.0], (16, 1)), stamp_ns=0, now_ns=0)
    for tick in range(1, 9):
        executor.commands(tick * PERIOD_NS)
    assert executor.holding is HoldReason.CLIPPED
    now = 9 * PERIOD_NS
    observe(executor, [1.0, 0.0], now)
    assert deliver(executor, np.tile([1.1, 0.0], (16, 1)), stamp_ns=now, now_ns=now).refusal is Refusal.BEYOND_LIMIT
    assert deliver(executor, np.tile([0.9, 0.0], (16, 1)), stamp_ns=now, now_ns=now).accepted


def test_what_rounding_puts_beyond_a_limit_is_clamped_but_holds_nothing():
    executor = limited(array(), clip_hold_s=0.2, far_beyond=1e-9)
    for tick in range(30):
        now = tick * PERIOD_NS
        observe(executor, [1.0, 0.0], now)
        if tick % 8 == 0:
            rows = np.tile(np.array([1.0, 0.5]) * (1.0 + np.finfo(np.float32).eps), (16, 1))
            assert deliver(executor, rows, stamp_ns=now, now_ns=now).accepted
        for command in executor.commands(now):
            assert np.all(command.values <= UPPER)
    assert executor.holding is None
    assert executor.status(now).clips == {}


def test_slow_limits_slow_the_robot_down_and_do_not_hold_it():
    executor = limited(array(), clip_hold_s=0.2)
    observe(executor, [0.0, 0.0], 0)
    deliver(executor, np.tile([0.9, 0.4], (16, 1)), stamp_ns=0, now_ns=0)
    for tick in range(1, 13):
        executor.commands(tick * PERIOD_NS)
    assert executor.holding is None
    assert executor.status(13 * PERIOD_NS).slowed["elbow"] > 5


def test_a_long_rest_gives_no_credit_for_a_jump():
    executor = limited(array(), hold_s=0.3)
    observe(executor, [0.0, 0.0], 0)
    deliver(executor, np.zeros((16, 2)), stamp_ns=0, now_ns=0)
    executor.commands(PERIOD_NS)
    executor.hold(2 * PERIOD_NS)
    now = 20 * SECOND
    observe(executor, [0.0, 0.0], now)
    deliver(executor, np.tile([0.9, 0.4], (16, 1)), stamp_ns=now, now_ns=now)
    for tick in range(5):
        (command,) = executor.commands(now + tick * PERIOD_NS)
        assert np.all(np.abs(command.values) <= RATE * tick * PERIOD_NS / SECOND + 1e-9)


@FEW
@given(seed=st.integers(0, 10_000), tick=st.integers(1_000_000, PERIOD_NS))
def test_a_pose_stays_in_its_workspace_and_below_its_speeds(seed, tick):
    random = np.random.default_rng(seed)
    contract = arm_contract(
        state={"arm": {"topic": "pose", "rotation": "quaternion"}},
        actions={"arm": {"meaning": "pose", "rotation": "quaternion"}},
        outputs={"arm": {"type": "pose", "topic": "target", "frame": "base", "from": {"arm": "all"}}},
        limits={"poses": {"arm": {"workspace": {"min": [0, -1, 0], "max": [1, 1, 1]}, "linear": 0.5, "angular": 1.0}}},
        motion={"strategy": "replace", "start_tolerance": 100.0, "hold_s": 5.0, "far_beyond": 100.0},
    )
    executor = Executor(contract, horizon=16)
    start = np.array([0.5, 0, 0.5, 0, 0, 0, 1.0])
    observe(executor, start, 0)
    rows = np.hstack([random.normal(0.5, 1.0, (16, 3)), Rotation.random(16, random_state=seed).as_quat()])
    deliver(executor, rows, stamp_ns=0, now_ns=0)
    position, turn = start[:3], Rotation.from_quat(start[3:])
    for step in range(1, 20):
        (command,) = executor.commands(step * tick)
        seconds = tick / SECOND
        assert np.all(command.position >= [0, -1, 0])
        assert np.all(command.position <= [1, 1, 1])
        assert np.linalg.norm(command.position - position) <= 0.5 * seconds + 1e-9
        assert (Rotation.from_quat(command.orientation) * turn.inv()).magnitude() <= 1.0 * seconds + 1e-6
        position, turn = command.position, Rotation.from_quat(command.orientation)


URDF = """<?xml version="1.0" encoding="utf-8"?>
<robot name="arm">
  <joint name="shoulder" type="revolute"><limit lower="-0.3" upper="0.3" velocity="4.0" effort="1"/></joint>
  <joint name="elbow" type="continuous"><limit velocity="0.5" effort="1"/></joint>
  <joint name="mount" type="fixed"/>
</robot>"""


def test_the_robot_description_limits_each_joint(tmp_path: Path):
    (tmp_path / "arm.urdf").write_text(URDF)
    urdf = read_urdf(tmp_path / "arm.urdf")
    assert set(urdf.joints) == {"shoulder", "elbow"}
    contract = arm_contract(
        outputs={"arm": array()},
        limits={"urdf": "/robot_description", "joints": {"shoulder": {"position": "none", "velocity": 1.0}}},
        motion={"start_tolerance": 10.0, "far_beyond": 100.0},
    )
    executor = Executor(contract, horizon=16, urdf=urdf)
    observe(executor, [0.29, 9.0], 0)
    deliver(executor, np.tile([1.0, 12.0], (16, 1)), stamp_ns=0, now_ns=0)
    executor.commands(PERIOD_NS)
    (command,) = executor.commands(2 * PERIOD_NS)
    assert command.values[0] == pytest.approx(0.3)
    assert command.values[1] == pytest.approx(9.0 + 0.5 * 2 * PERIOD_NS / SECOND, abs=0.02)


def test_a_joint_that_the_description_lacks_is_named():
    contract = arm_contract(limits={"urdf": "/robot_description"})
    with pytest.raises(ContractError, match="sends 'shoulder', which the robot description does not have"):
        Executor(contract, horizon=16, urdf=parse_urdf("<robot/>", "here"))
    with pytest.raises(ContractError, match="no robot description was handed over"):
        Executor(contract, horizon=16)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<robot", "not XML"),
        ("<xacro/>", "found <xacro> at the top, wanted <robot>"),
        ('<!DOCTYPE r [<!ENTITY a "b">]><robot/>', "document type or an entity"),
        ('<robot><joint name="a" type="revolute"/></robot>', "joint 'a': has no <limit>"),
        ('<robot><joint name="a" type="revolute"><limit velocity="1"/></joint></robot>', "wanted lower below upper"),
        (
            '<robot><joint name="a" type="prismatic"><limit lower="${low}" upper="1" velocity="1"/></joint></robot>',
            "lower is '${low}', wanted a number",
        ),
        (
            '<robot><joint name="a" type="revolute"><limit lower="0" upper="1" velocity="0"/></joint></robot>',
            "velocity limit is 0.0, wanted a number above 0",
        ),
    ],
)
def test_a_description_that_cannot_be_used_is_refused_in_words(text, words):
    with pytest.raises(ContractError) as error:
        parse_urdf(text, "/robot_description")
    assert words in str(error.value)
    assert "/robot_description" in str(error.value)


def test_a_description_that_is_not_there_is_refused(tmp_path: Path):
    with pytest.raises(ContractError, match="cannot be read"):
        read_urdf(tmp_path / "missing.urdf")
