"""Goals for gripper action servers: sent on a change, never waited for, and sent again where the server refuses one."""

from __future__ import annotations

from array import array
from functools import partial
from typing import Any

from rclpy.action import ActionClient
from rclpy.node import Node

from groot_ros.contract.outputs import GripperCommandOutput
from groot_ros.execution.commands import GripperCommand
from groot_ros.nodes.message_types import message_class

ACTIONS = {
    "gripper_command": "control_msgs/action/GripperCommand",
    "parallel_gripper_command": "control_msgs/action/ParallelGripperCommand",
}


class GripperGoals:
    """The client of one gripper output.

    Args:
        node: The node whose client it is.
        target: The output in the contract.

    Raises:
        ContractError: control_msgs is not installed, or too old for the action.

    """

    def __init__(self, node: Node, target: GripperCommandOutput) -> None:
        self._node = node
        self._is_parallel = target.type == "parallel_gripper_command"
        self._action = message_class(ACTIONS[target.type])
        self._client = ActionClient(node, self._action, target.action)
        self._name = target.action
        self._wanted: GripperCommand | None = None
        self._unsent: str | None = None

    @property
    def fault(self) -> str | None:
        """Why the gripper does not move; None where nothing is wrong."""
        return self._unsent

    def send(self, command: GripperCommand) -> None:
        """Send a goal; where the server is not there or refuses it, the newest one is kept."""
        self._wanted = command
        if not self._client.server_is_ready():
            self._unsent = f"no action server answers on {self._name}: the gripper's goal waits; start its controller"
            return
        self._unsent = None
        self._client.send_goal_async(self.goal(command)).add_done_callback(partial(self._answered, command))

    def retry(self) -> None:
        """Send what the server was not there for, or has refused."""
        if self._unsent is not None and self._wanted is not None:
            self.send(self._wanted)

    def _answered(self, command: GripperCommand, answer: Any) -> None:  # noqa: ANN401 - rclpy's future is generic
        """Whether the server has taken the goal; what becomes of it, it says itself: one that grips may well abort."""
        if command is not self._wanted:
            return
        if answer.exception() is not None:
            self._unsent = f"the goal for {self._name} was lost ({answer.exception()}); it is sent again"
        elif not answer.result().accepted:
            self._unsent = f"{self._name} refuses the gripper's goal {command.positions.tolist()}; it is sent again"

    def goal(self, command: GripperCommand) -> Any:  # noqa: ANN401 - control_msgs is imported where it is used
        """The goal of a command."""
        goal = self._action.Goal()
        if self._is_parallel:
            goal.command.name = list(command.joints)
            goal.command.position = array("d", command.positions.tolist())
            goal.command.effort = array("d", [command.max_effort] * len(command.joints))
        else:
            goal.command.position = float(command.positions[0])
            goal.command.max_effort = float(command.max_effort)
        return goal

    def drop(self) -> None:
        """Forget a goal that waits: motion is off."""
        self._wanted = self._unsent = None

    def destroy(self) -> None:
        """Close the client."""
        self._client.destroy()
