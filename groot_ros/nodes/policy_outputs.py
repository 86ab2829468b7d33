"""The node's hands: one publisher or action client for each output of the contract."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from geometry_msgs.msg import PoseStamped, TwistStamped
from rclpy.duration import Duration
from rclpy.lifecycle import LifecycleNode
from std_msgs.msg import Float64, Float64MultiArray
from trajectory_msgs.msg import JointTrajectory

from groot_ros.contract import Contract
from groot_ros.contract.outputs import (
    FloatOutput,
    GripperCommandOutput,
    JointTrajectoryOutput,
    PoseOutput,
    PositionCommandOutput,
    TwistOutput,
)
from groot_ros.execution.commands import Command, GripperCommand
from groot_ros.nodes.command_messages import CONVERSIONS
from groot_ros.nodes.controller_order import ControllerOrder
from groot_ros.nodes.gripper_goals import GripperGoals
from groot_ros.nodes.quiet import QUIET

DEPTH = 10
LAST_WORD_S = 0.2
"""How long the last command may take to be acknowledged before the node goes away."""

MESSAGES: dict[type[Any], Any] = {
    JointTrajectoryOutput: JointTrajectory,
    PositionCommandOutput: Float64MultiArray,
    TwistOutput: TwistStamped,
    PoseOutput: PoseStamped,
    FloatOutput: Float64,
}


class Outputs:
    """Publishes commands. Lifecycle publishers, so that nothing is said unless the node is active.

    Args:
        node: The node.
        contract: Its outputs.

    Raises:
        ContractError: A gripper's action type is not installed.

    """

    def __init__(self, node: LifecycleNode, contract: Contract) -> None:
        self._node = node
        self._publishers: dict[str, Any] = {}
        self._grippers: dict[str, GripperGoals] = {}
        self._orders = [
            ControllerOrder(node, name, target)
            for name, target in contract.outputs.items()
            if isinstance(target, PositionCommandOutput)
        ]
        for name, target in contract.outputs.items():
            if isinstance(target, GripperCommandOutput):
                self._grippers[name] = GripperGoals(node, target)
            else:
                self._publishers[name] = node.create_lifecycle_publisher(
                    MESSAGES[type(target)], target.topic, DEPTH, event_callbacks=QUIET
                )

    def send(self, commands: Iterable[Command]) -> None:
        """Send commands now; may be called from any one thread at a time."""
        for command in commands:
            if isinstance(command, GripperCommand):
                self._grippers[command.output].send(command)
            else:
                self._publishers[command.output].publish(CONVERSIONS[type(command)](command))

    def retry(self) -> None:
        """Send gripper goals whose server was not there."""
        for gripper in self._grippers.values():
            gripper.retry()

    def drop(self) -> None:
        """Forget gripper goals that wait."""
        for gripper in self._grippers.values():
            gripper.drop()

    def refusal(self) -> str | None:
        """Why motion must not be enabled, as far as the controllers have answered; asks those that have not."""
        for order in self._orders:
            order.ask()
        return next((order.fault for order in self._orders if order.fault is not None), None)

    def faults(self) -> list[str]:
        """What keeps commands from arriving, as sentences."""
        faults = [gripper.fault for gripper in self._grippers.values()]
        return [fault for fault in faults if fault is not None]

    def flush(self) -> None:
        """Wait until the last commands have been acknowledged, or a moment has passed."""
        for publisher in self._publishers.values():
            publisher.wait_for_all_acked(Duration(seconds=LAST_WORD_S))

    def destroy(self) -> None:
        """Close everything."""
        for publisher in self._publishers.values():
            self._node.destroy_lifecycle_publisher(publisher)
        for gripper in self._grippers.values():
            gripper.destroy()
        for order in self._orders:
            order.destroy()
        self._publishers.clear()
        self._grippers.clear()
