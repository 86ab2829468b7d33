"""Deltas of a tool become absolute poses."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation
from support.motion import FEW, PERIOD_NS, arm_contract, chunk, observe

from groot_ros.execution.deltas import integrate_pose
from groot_ros.execution.executor import Executor
from groot_ros.execution.status import Refusal

SIX = ["x", "y", "z", "rx", "ry", "rz"]


def pose_contract(**action):
    return arm_contract(
        state={"ee": {"topic": "pose", "rotation": "axis_angle"}},
        actions={"move": {"meaning": "delta", "integrate": True, "names": SIX, **action}},
        outputs={"tool": {"type": "pose", "topic": "target", "frame": "base", "from": {"move": "all"}}},
        motion={"strategy": "replace"},
    )


@FEW
@given(seed=st.integers(0, 1000))
def test_the_last_pose_is_the_start_moved_by_all_deltas_in_turn(seed):
    random = np.random.default_rng(seed)
    start = np.concatenate([random.normal(size=3), Rotation.random(random_state=seed).as_quat()])
    deltas = random.normal(0.0, 0.3, (5, 6))
    poses = integrate_pose(start, deltas)
    turn = Rotation.from_quat(start[3:])
    for delta in deltas:
        turn = Rotation.from_rotvec(delta[3:]) * turn
    np.testing.assert_allclose(poses[-1, :3], start[:3] + deltas[:, :3].sum(axis=0), atol=1e-12)
    assert (Rotation.from_quat(poses[-1, 3:]) * turn.inv()).magnitude() < 1e-9


def test_a_tool_that_is_moved_by_deltas_is_sent_absolute_poses():
    executor = Executor(pose_contract(state="ee"), horizon=16)
    observe(executor, [0.1, 0.2, 0.3, 0.0, 0.0, 0.4], 0, key="ee")
    inference = executor.begin_inference(0, 0)
    rows = np.tile([0.01, 0.0, 0.0, 0.0, 0.0, 0.02], (16, 1))
    assert executor.accept(chunk(rows, key="move"), inference, PERIOD_NS).accepted
    (pose,) = executor.commands(2 * PERIOD_NS)
    assert pose.position == pytest.approx([0.13, 0.2, 0.3], abs=1e-6)
    assert Rotation.from_quat(pose.orientation).as_rotvec() == pytest.approx([0, 0, 0.46], abs=1e-6)


def test_deltas_without_a_measured_start_are_refused_with_the_way_out():
    executor = Executor(pose_contract(), horizon=16)
    observe(executor, np.zeros(6), 0, key="ee")
    inference = executor.begin_inference(0, 0)
    result = executor.accept(chunk(np.zeros((16, 6)), key="move"), inference, PERIOD_NS)
    assert result.refusal is Refusal.INVALID
    assert "name the state group in the action's key state" in result.sentence
