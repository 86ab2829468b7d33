"""The policy as the demo's tools see it: whether it can work, and the service that lets it move the robot."""

from __future__ import annotations

from collections.abc import Mapping

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from std_srvs.srv import SetBool
from trajectory_msgs.msg import JointTrajectory

from groot_ros.errors import GrootError
from groot_ros.nodes.demo_processes import Companion
from groot_ros.nodes.demo_waiting import WaitingNode

POLICY = "groot_policy"


class PolicyHandle:
    """Hears the policy and enables it.

    Args:
        node: Through which.

    """

    def __init__(self, node: WaitingNode) -> None:
        self._node = node
        self._fault = ""
        self.chunks = 0
        node.create_subscription(JointTrajectory, f"{POLICY}/action_chunk", self._on_chunk, 10)
        node.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, 10)
        self._enable = node.create_client(SetBool, f"{POLICY}/enable")

    def _on_chunk(self, _message: JointTrajectory) -> None:
        self.chunks += 1

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            if status.name.endswith(f"{POLICY}: node"):
                self._fault = status.message if status.level == DiagnosticStatus.ERROR else ""

    def check(self) -> None:
        """Raise GrootError where the policy says that it cannot work at all."""
        if self._fault:
            msg = f"{POLICY} cannot work: {self._fault}"
            raise GrootError(msg)

    def enable(self, on: bool) -> None:
        """Open or close the policy's motion gate.

        Raises:
            GrootError: The policy refuses, with its own sentence, or does not answer.

        """
        response = self._node.ask(self._enable, SetBool.Request(data=on), f"{POLICY}/enable")
        if not response.success:
            msg = f"{POLICY} does not {'enable' if on else 'disable'}: {response.message}"
            raise GrootError(msg)


def watch(policy: PolicyHandle, processes: Mapping[str, Companion]) -> None:
    """Raise GrootError where the policy cannot work, or a process of the demo has ended."""
    policy.check()
    for process in processes.values():
        process.check()
