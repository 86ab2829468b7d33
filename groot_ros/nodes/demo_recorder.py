"""Node ``demo_recorder``: hears the robot and the policy of the demo, and enables the policy."""

from __future__ import annotations

import time
from collections.abc import Callable

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import qos_profile_sensor_data
from rclpy.time import Time
from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool
from trajectory_msgs.msg import JointTrajectory

from groot_ros.demo.record import DemoRecord
from groot_ros.errors import GrootError

POLICY = "groot_policy"
CONTROLLER = "arm_controller"
LONGEST_WAIT_S = 0.05


class DemoRecorder(Node):
    """Keeps a ``DemoRecord`` of what it hears; time passes only in ``wait_until`` and ``listen``."""

    def __init__(self, joints: tuple[str, ...]) -> None:
        super().__init__("demo_recorder", start_parameter_services=False, enable_rosout=False)
        self.record = DemoRecord(joints, self._now_ns())
        self._fault = ""
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(self)
        self.create_subscription(JointState, "joint_states", self._on_joints, qos_profile_sensor_data)
        self.create_subscription(JointTrajectory, f"{POLICY}/action_chunk", self._on_chunk, 10)
        self.create_subscription(JointTrajectory, f"{CONTROLLER}/joint_trajectory", self._on_trajectory, 10)
        self.create_subscription(DiagnosticStatus, f"{POLICY}/status", self._on_status, 10)
        self.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, 10)
        self._enable = self.create_client(SetBool, f"{POLICY}/enable")

    def _now_ns(self) -> int:
        return int(self.get_clock().now().nanoseconds)

    def _on_joints(self, message: JointState) -> None:
        self.record.hear_joints(Time.from_msg(message.header.stamp).nanoseconds, message.name, message.position)

    def _on_chunk(self, message: JointTrajectory) -> None:
        self.record.hear_chunk(message, self._now_ns())

    def _on_trajectory(self, _message: JointTrajectory) -> None:
        self.record.trajectories += 1

    def _on_status(self, message: DiagnosticStatus) -> None:
        self.record.hear_status({value.key: value.value for value in message.values}, self._now_ns())

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            figures = {value.key: value.value for value in status.values}
            if CONTROLLER in status.name:
                self.record.controller.update(figures)
            elif status.name.endswith(f"{POLICY}: node"):
                self._fault = status.message if status.level == DiagnosticStatus.ERROR else ""

    def check(self) -> None:
        """Raise GrootError where the policy says that it cannot work at all."""
        if self._fault:
            msg = f"{POLICY} cannot work: {self._fault}"
            raise GrootError(msg)

    def listen(self, duration_s: float, alive: Callable[[], None]) -> None:
        """Hear what comes for a while; ``alive`` raises when it is no longer worth it."""
        end = time.monotonic() + duration_s
        while time.monotonic() < end:
            self._executor.spin_once(timeout_sec=LONGEST_WAIT_S)
            alive()

    def wait_until(self, condition: Callable[[], bool], deadline_s: float, alive: Callable[[], None]) -> bool:
        """Hear what comes until ``condition()``; False where it is not so within ``deadline_s``."""
        end = time.monotonic() + deadline_s
        while not condition():
            if time.monotonic() > end:
                return False
            self._executor.spin_once(timeout_sec=LONGEST_WAIT_S)
            alive()
        return True

    def enable(self, on: bool, deadline_s: float, alive: Callable[[], None]) -> None:
        """Open or close the policy's motion gate.

        Raises:
            GrootError: The policy refuses, with its own sentence, or does not answer.

        """
        ready = self.wait_until(self._enable.service_is_ready, deadline_s, alive)
        future = self._enable.call_async(SetBool.Request(data=on))
        if not ready or not self.wait_until(future.done, deadline_s, alive):
            msg = f"{POLICY}/enable does not answer within {deadline_s:.0f} s"
            raise GrootError(msg)
        if not future.result().success:
            msg = f"{POLICY} does not {'enable' if on else 'disable'}: {future.result().message}"
            raise GrootError(msg)

    def begin(self) -> None:
        """Forget what was heard so far: the record begins now, and counters count from here."""
        record = DemoRecord(self.record.joints, self._now_ns())
        record.policy, record.controller = self.record.policy, self.record.controller
        record.policy_before = dict(record.policy)
        self.record = record

    def close(self) -> None:
        """Take the node down."""
        self._executor.shutdown()
        self.destroy_node()
