"""The commands of each kind of output."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation
from support.motion import FEW, JOINTS, PERIOD_NS, PERIOD_S, SECOND, arm_contract, array, deliver, observe, trajectory
from support.trajectories import command_message

from groot_ros.demo.trajectory_rules import JointTrajectoryRules
from groot_ros.execution.executor import Executor
from groot_ros.execution.outputs import BinaryLevels
from groot_ros.observation import ActionChunk

RULES = JointTrajectoryRules(joints=JOINTS)


def executor_for(output, **changes) -> Executor:
    motion = {"strategy": "replace", "start_tolerance": 10.0, **changes.pop("motion", {})}
    return Executor(arm_contract(outputs={"arm": output}, motion=motion, **changes), horizon=16)


@FEW
@given(
    ticks=st.lists(st.integers(1, 150_000_000), min_size=3, max_size=25),
    seed=st.integers(0, 1000),
    strategy=st.sampled_from(["replace", "blend", "ensemble", "rtc"]),
)
def test_the_controller_takes_every_trajectory_that_is_sent(ticks, seed, strategy):
    random, now = np.random.default_rng(seed), 10 * SECOND
    executor = executor_for(trajectory(), motion={"strategy": strategy, "max_ahead_s": 0.3})
    sent = 0
    for tick in ticks:
        now += tick
        observe(executor, random.normal(size=2), now)
        if random.random() < 0.5:
            deliver(
                executor, random.normal(size=(16, 2)), stamp_ns=now - int(random.integers(0, SECOND // 2)), now_ns=now
            )
        commands = executor.hold(now) if random.random() < 0.1 else executor.commands(now)
        for command in commands:
            sent += 1
            assert RULES.check(command_message(command), now) is None
            assert command.offsets_ns[-1] <= 300_000_000
    executor.hold(now)


def test_a_long_chunk_is_sent_again_before_the_controller_runs_dry():
    executor = executor_for(trajectory(), motion={"hold_s": 2.0, "max_ahead_s": 0.2})
    observe(executor, [0, 0], 0)
    rows = np.linspace(0, 1, 16)[:, None] * np.ones(2)
    deliver(executor, rows, stamp_ns=0, now_ns=0)
    reach, times = 0, np.arange(0, 15 * PERIOD_NS, 10_000_000)
    for now in times:
        for command in executor.commands(int(now)):
            reach = command.stamp_ns + int(command.offsets_ns[-1])
            assert command.velocities[-1] == pytest.approx([0.0, 0.0])
        assert reach >= min(now + 90_000_000, round(15 * PERIOD_S * SECOND)), "never less than half of max_ahead_s left"


def test_velocities_are_the_slopes_of_the_rows():
    executor = executor_for(trajectory(final_velocity=True), motion={"max_ahead_s": 0.2, "hold_s": 2.0})
    observe(executor, [0, 0], 0)
    deliver(executor, np.arange(16.0)[:, None] * [0.03, -0.03], stamp_ns=0, now_ns=0)
    (command,) = executor.commands(0)
    np.testing.assert_allclose(command.velocities, np.tile([0.9, -0.9], (len(command.velocities), 1)), rtol=1e-6)
    assert executor.hold(1000)[0].velocities == pytest.approx(np.zeros((1, 2))), "a hold always ends at rest"


def test_several_groups_go_into_one_message_in_the_order_of_the_controller():
    contract = arm_contract(
        state={
            "left": {"topic": "joint_states", "joints": ["a", "b"], "policy_unit": "deg"},
            "right": {"topic": "joint_states", "joints": ["c"]},
        },
        actions={"left": {"meaning": "position"}, "right": {"meaning": "position"}},
        outputs={"all": {"type": "joint_trajectory", "topic": "t", "from": {"right": ["c"], "left": ["b", "a"]}}},
        motion={"start_tolerance": 10.0},
    )
    executor = Executor(contract, horizon=16)
    state = {"left": np.zeros((1, 2), np.float32), "right": np.zeros((1, 1), np.float32)}
    executor.observe(state, 0, 0)
    groups = {"left": np.tile([90.0, 180.0], (16, 1)), "right": np.full((16, 1), 0.5)}
    inference = executor.begin_inference(0, 0)
    assert executor.accept(ActionChunk(0, PERIOD_S, groups, {}), inference, 0).accepted
    (command,) = executor.commands(0)
    assert command.joints == ("c", "b", "a")
    assert command.positions[0] == pytest.approx([0.5, np.pi, np.pi / 2])


def gripper_contract(output, **action):
    return arm_contract(
        state={"gripper": {"topic": "joint_states", "joints": ["finger"]}},
        actions={"gripper": {"meaning": "position", **action}},
        outputs={"hand": {"from": {"gripper": "all"}, **output}},
        motion={"strategy": "blend", "start_tolerance": 10.0, "hold_s": 5.0},
    )


BINARY = {"kind": "binary", "open": {"policy": 1.0, "robot": 0.04}, "closed": {"policy": 0.0, "robot": 0.0}}
GRIPPERS = [
    {"type": "joint_trajectory", "topic": "t"},
    {"type": "position_command", "topic": "t", "names": ["finger"]},
    {"type": "float64", "topic": "t"},
    {"type": "gripper_command", "action": "a"},
    {"type": "parallel_gripper_command", "action": "a"},
]


def gripper_values(commands):
    for command in commands:
        for name in ("positions", "values", "value"):
            if hasattr(command, name):
                yield from np.ravel(getattr(command, name))


@pytest.mark.parametrize("output", GRIPPERS, ids=lambda output: output["type"])
@FEW
@given(seed=st.integers(0, 1000))
def test_a_binary_gripper_is_always_sent_one_of_its_two_levels(output, seed):
    random, now = np.random.default_rng(seed), 0
    executor = Executor(gripper_contract(output, **BINARY), horizon=16)
    for _ in range(6):
        observe(executor, [0.04], now, key="gripper")
        rows = random.uniform(-0.2, 1.2, (16, 1))
        assert deliver(executor, rows, stamp_ns=now, now_ns=now, key="gripper").accepted
        for _ in range(4):
            now += int(random.integers(1, PERIOD_NS))
            assert set(gripper_values(executor.commands(now))) <= {0.0, 0.04}


def test_a_value_near_the_middle_does_not_change_a_grippers_mind():
    levels = BinaryLevels(open_policy=0.0, closed_policy=1.0, open_robot=0.0, closed_robot=0.8, hysteresis=0.1)
    assert levels.decide(0.55, None) == 0.8
    assert levels.decide(0.55, 0.0) == 0.0
    assert levels.decide(0.61, 0.0) == 0.8
    assert levels.decide(0.45, 0.8) == 0.8
    assert levels.decide(0.39, 0.8) == 0.0


def test_a_gripper_action_gets_a_goal_only_on_a_change():
    executor = Executor(gripper_contract(GRIPPERS[3], **BINARY), horizon=16)
    observe(executor, [0.04], 0, key="gripper")
    rows = np.array([[1.0]] * 4 + [[0.0]] * 12)
    deliver(executor, rows, stamp_ns=0, now_ns=0, key="gripper")
    goals = [command for tick in range(12) for command in executor.commands(tick * PERIOD_NS)]
    assert [float(goal.positions[0]) for goal in goals] == [0.04, 0.0]
    assert goals[0].joints == ("finger",)


def test_after_a_hold_a_gripper_gets_its_goal_again_since_somebody_may_have_opened_it():
    executor = Executor(gripper_contract(GRIPPERS[3], **BINARY), horizon=16)
    for now in (0, SECOND):
        observe(executor, [0.04], now, key="gripper")
        deliver(executor, np.zeros((16, 1)), stamp_ns=now, now_ns=now, key="gripper")
        goals = [command for tick in range(3) for command in executor.commands(now + tick * PERIOD_NS)]
        assert [float(goal.positions[0]) for goal in goals] == [0.0]
        assert executor.hold(now + SECOND // 2) == []


def pose_executor(output, rotation: str = "axis_angle", hold_s: float = 1.0) -> Executor:
    contract = arm_contract(
        state={"ee": {"topic": "pose", "rotation": rotation}},
        actions={"ee": {"meaning": "pose"}},
        outputs={"ee": {"topic": "out", "frame": "base", "from": {"ee": "all"}, **output}},
        limits={"poses": {"ee": {"workspace": "none", "linear": 0.25, "angular": 0.5}}},
        motion={"strategy": "replace", "start_tolerance": 10.0, "hold_s": hold_s},
    )
    return Executor(contract, horizon=16)


def test_a_twist_follows_the_pose_and_is_zero_when_the_plan_runs_out():
    executor = pose_executor({"type": "twist", "gain_per_s": 2.0})
    observe(executor, np.zeros(6), 0, key="ee")
    rows = np.zeros((16, 6))
    rows[:, 0] = 0.1 * np.arange(16) * PERIOD_S
    rows[:, 5] = 0.2 * np.arange(16) * PERIOD_S
    deliver(executor, rows, stamp_ns=0, now_ns=0, key="ee")
    (twist,) = executor.commands(0)
    assert twist.frame == "base"
    np.testing.assert_allclose(twist.linear, [0.1, 0, 0], atol=1e-6)
    np.testing.assert_allclose(twist.angular, [0, 0, 0.2], atol=1e-6)
    observe(executor, [-0.05, 0, 0, 0, 0, 0], PERIOD_NS, key="ee")
    (twist,) = executor.commands(PERIOD_NS)
    assert twist.linear[0] == pytest.approx(0.1 + 2.0 * (0.05 + 0.1 * PERIOD_S), abs=1e-3)
    observe(executor, [-5.0, 0, 0, 0, 0, 0], 2 * PERIOD_NS, key="ee")
    (twist,) = executor.commands(2 * PERIOD_NS)
    assert np.linalg.norm(twist.linear) == pytest.approx(0.25), "clipped"
    assert np.linalg.norm(twist.angular) <= 0.5 + 1e-9
    (twist,) = executor.commands(16 * PERIOD_NS)
    assert not np.any(twist.linear)
    assert not np.any(twist.angular)
    assert executor.commanded("ee", 16 * PERIOD_NS) is None, "a twist towards a pose is no place"


def test_a_twist_without_a_fresh_pose_of_the_robot_is_zero():
    executor = pose_executor({"type": "twist"}, hold_s=0.3)
    observe(executor, np.zeros(6), 0, key="ee")
    deliver(executor, np.tile([0.2, 0, 0, 0, 0, 0], (16, 1)), stamp_ns=0, now_ns=0, key="ee")
    assert np.any(executor.commands(0)[0].linear)
    late = SECOND // 5
    # New frames with a pose of long ago: the robot may move on, but where it is nobody knows.
    executor.observe({"ee": np.zeros((1, 6), np.float32)}, 1, late)
    assert np.any(executor.commands(late)[0].linear)
    assert not np.any(executor.commands(late + SECOND // 4)[0].linear)
    assert executor.holding is None


@pytest.mark.parametrize("rotation", ["axis_angle", "rpy", "quaternion", "rot6d_rows"])
def test_a_pose_goes_out_as_position_and_quaternion_whatever_the_policy_writes(rotation):
    executor = pose_executor({"type": "pose"}, rotation)
    turn = Rotation.from_rotvec([0.1, -0.2, 0.3])
    row = executor.map.contract.action_map("ee").to_policy(np.concatenate([[0.1, 0.2, 0.3], turn.as_quat()]))
    observe(executor, row, 0, key="ee")
    deliver(executor, np.tile(row, (16, 1)), stamp_ns=0, now_ns=0, key="ee")
    (pose,) = executor.commands(PERIOD_NS)
    np.testing.assert_allclose(pose.position, [0.1, 0.2, 0.3], atol=1e-6)
    assert (Rotation.from_quat(pose.orientation) * turn.inv()).magnitude() < 1e-6


def test_an_array_is_sent_on_every_call_and_interpolated():
    executor = executor_for(array())
    observe(executor, [0, 0], 0)
    deliver(executor, np.arange(16.0)[:, None] * np.ones(2), stamp_ns=0, now_ns=0)
    for time in range(PERIOD_NS, 3 * PERIOD_NS, 10_000_000):
        (command,) = executor.commands(time, outputs={"arm"})
        assert command.names == JOINTS
        assert command.values[0] == pytest.approx(time / PERIOD_NS, abs=1e-6)
    assert executor.commands(time, outputs={"another"}) == []
