"""Node ``demo_recorder``: hears the robot and the policy of the demo, and enables the policy."""

from __future__ import annotations

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.qos import qos_profile_sensor_data
from rclpy.time import Time
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from groot_ros.demo.record import DemoRecord
from groot_ros.nodes.demo_policy import POLICY, PolicyHandle
from groot_ros.nodes.demo_waiting import WaitingNode

CONTROLLER = "arm_controller"


class DemoRecorder(WaitingNode):
    """Keeps a ``DemoRecord`` of what it hears."""

    def __init__(self, joints: tuple[str, ...]) -> None:
        super().__init__("demo_recorder")
        self.record = DemoRecord(joints, self.now_ns())
        self.policy = PolicyHandle(self)
        self.create_subscription(JointState, "joint_states", self._on_joints, qos_profile_sensor_data)
        self.create_subscription(JointTrajectory, f"{POLICY}/action_chunk", self._on_chunk, 10)
        self.create_subscription(JointTrajectory, f"{CONTROLLER}/joint_trajectory", self._on_trajectory, 10)
        self.create_subscription(DiagnosticStatus, f"{POLICY}/status", self._on_status, 10)
        self.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, 10)

    def _on_joints(self, message: JointState) -> None:
        self.record.hear_joints(Time.from_msg(message.header.stamp).nanoseconds, message.name, message.position)

    def _on_chunk(self, message: JointTrajectory) -> None:
        self.record.hear_chunk(message, self.now_ns())

    def _on_trajectory(self, _message: JointTrajectory) -> None:
        self.record.trajectories += 1

    def _on_status(self, message: DiagnosticStatus) -> None:
        self.record.hear_status({value.key: value.value for value in message.values}, self.now_ns())

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            figures = {value.key: value.value for value in status.values}
            if CONTROLLER in status.name:
                self.record.controller.update(figures)

    def begin(self) -> None:
        """Forget what was heard so far: the record begins now, and counters count from here."""
        record = DemoRecord(self.record.joints, self.now_ns())
        record.policy, record.controller = self.record.policy, self.record.controller
        record.policy_before = dict(record.policy)
        self.record = record
