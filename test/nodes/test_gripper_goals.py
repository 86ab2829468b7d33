"""Goals of gripper actions, with pretended control_msgs where they are not installed."""

from __future__ import annotations

import sys
from concurrent.futures import Future
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy")

from groot_ros.contract.outputs import GripperCommandOutput
from groot_ros.errors import ContractError
from groot_ros.execution.commands import GripperCommand
from groot_ros.nodes import gripper_goals
from groot_ros.nodes.gripper_goals import GripperGoals


class PretendedClient:
    """An action client whose server comes when the test says so."""

    def __init__(self, node, action, name) -> None:
        self.is_ready = True
        self.goals: list = []
        self.answers: list[Future] = []

    def server_is_ready(self) -> bool:
        return self.is_ready

    def send_goal_async(self, goal) -> Future:
        self.goals.append(goal)
        self.answers.append(Future())
        return self.answers[-1]


def pretended_action() -> type:
    class Action:
        class Goal:
            def __init__(self) -> None:
                self.command = SimpleNamespace()

    return Action


@pytest.fixture
def goals(monkeypatch):
    package, actions = ModuleType("control_msgs"), ModuleType("control_msgs.action")
    actions.GripperCommand, actions.ParallelGripperCommand = pretended_action(), pretended_action()
    monkeypatch.setitem(sys.modules, "control_msgs", package)
    monkeypatch.setitem(sys.modules, "control_msgs.action", actions)
    monkeypatch.setattr(gripper_goals, "ActionClient", PretendedClient)

    def make(kind: str) -> GripperGoals:
        target = {"type": kind, "action": "gripper/cmd", "from": {"gripper": ["finger"]}, "max_effort": 5.0}
        return GripperGoals(SimpleNamespace(), GripperCommandOutput.model_validate(target))

    return make


COMMAND = GripperCommand("hand", ("finger",), np.array([0.03]), 5.0)


def test_a_gripper_command_has_position_and_effort(goals):
    hand = goals("gripper_command")
    hand.send(COMMAND)
    (goal,) = hand._client.goals
    assert (goal.command.position, goal.command.max_effort) == (0.03, 5.0)


def test_a_parallel_gripper_command_is_a_joint_state(goals):
    hand = goals("parallel_gripper_command")
    hand.send(COMMAND)
    (goal,) = hand._client.goals
    assert goal.command.name == ["finger"]
    assert (list(goal.command.position), list(goal.command.effort)) == ([0.03], [5.0])


def test_a_goal_waits_for_its_server_and_is_said(goals):
    hand = goals("gripper_command")
    hand._client.is_ready = False
    hand.send(COMMAND)
    assert hand.fault == "no action server answers on gripper/cmd: the gripper's goal waits; start its controller"
    hand.retry()
    assert hand._client.goals == []
    hand._client.is_ready = True
    hand.retry()
    assert len(hand._client.goals) == 1
    assert hand.fault is None


def test_a_goal_that_the_server_refuses_or_loses_is_said_and_sent_again(goals):
    hand = goals("gripper_command")
    hand.send(COMMAND)
    hand._client.answers[0].set_result(SimpleNamespace(accepted=False))
    assert hand.fault == "gripper/cmd refuses the gripper's goal [0.03]; it is sent again"
    hand.retry()
    hand._client.answers[1].set_exception(RuntimeError("the server is gone"))
    assert hand.fault == "the goal for gripper/cmd was lost (the server is gone); it is sent again"
    hand.retry()
    hand._client.answers[2].set_result(SimpleNamespace(accepted=True))
    assert hand.fault is None
    hand.retry()
    assert len(hand._client.goals) == 3


def test_an_answer_to_a_goal_that_is_no_longer_wanted_changes_nothing(goals):
    hand = goals("gripper_command")
    hand.send(COMMAND)
    hand.drop()
    hand._client.answers[0].set_result(SimpleNamespace(accepted=False))
    hand.retry()
    assert hand.fault is None
    assert len(hand._client.goals) == 1


def test_a_goal_that_waits_is_dropped_when_motion_is_switched_off(goals):
    hand = goals("gripper_command")
    hand._client.is_ready = False
    hand.send(COMMAND)
    hand.drop()
    hand._client.is_ready = True
    hand.retry()
    assert hand._client.goals == []


def test_without_control_msgs_the_sentence_names_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "control_msgs", None)
    target = {"type": "gripper_command", "action": "gripper/cmd", "from": {"gripper": ["finger"]}}
    with pytest.raises(ContractError, match="the ROS package control_msgs is not installed"):
        GripperGoals(SimpleNamespace(), GripperCommandOutput.model_validate(target))
