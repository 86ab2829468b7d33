"""Node ``demo_leader``: the scripted expert as a leader arm whose joint states are the commands of a demonstration."""

from __future__ import annotations

import numpy as np
from builtin_interfaces.msg import Duration
from geometry_msgs.msg import PointStamped
from rcl_interfaces.msg import FloatingPointRange, ParameterDescriptor
from rclpy.node import Node
from rclpy.qos import qos_profile_sensor_data
from rclpy.subscription import Subscription
from rclpy.time import Time
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from groot_ros.demo.arm import Vector
from groot_ros.demo.expert import ScriptedExpert
from groot_ros.nodes.demo_robot_parts import LATCHED, TARGET_TOPIC, declare_arm, joint_state, positions_by_name
from groot_ros.observation import NANOSECONDS_PER_SECOND


class DemoLeader(Node):
    """Publishes ``leader/joint_states``; with the parameter ``drive`` the robot follows, as in teleoperation."""

    def __init__(self) -> None:
        super().__init__("demo_leader", start_parameter_services=False, enable_rosout=False)
        self.arm = declare_arm(self)
        rates = [FloatingPointRange(from_value=1.0, to_value=200.0)]
        rate_hz = self.declare_parameter(
            "rate_hz",
            60.0,
            ParameterDescriptor(description="commands a second", floating_point_range=rates, read_only=True),
        ).value
        drive = ParameterDescriptor(description="send the commands to the arm too", read_only=True)
        self._drives = self.declare_parameter("drive", False, drive).value
        self._period_ns = round(NANOSECONDS_PER_SECOND / rate_hz)
        self._target: Vector | None = None
        self._episode_ns = 0
        self._expert: ScriptedExpert | None = None
        self._joints: Subscription | None = None
        self._last_ns = 0
        self._states = self.create_publisher(JointState, "leader/joint_states", 10)
        self._trajectory = self.create_publisher(JointTrajectory, "arm_controller/joint_trajectory", 10)
        self.create_subscription(PointStamped, TARGET_TOPIC, self._on_target, LATCHED)
        self.create_timer(1.0 / rate_hz, self._tick)

    def _on_target(self, message: PointStamped) -> None:
        self._target = np.array([message.point.x, message.point.y])
        self._episode_ns = Time.from_msg(message.header.stamp).nanoseconds
        self._expert = None
        if self._joints is None:
            self._joints = self.create_subscription(
                JointState, "joint_states", self._on_joints, qos_profile_sensor_data
            )

    def _on_joints(self, message: JointState) -> None:
        # A new episode moves the arm: the leader begins where the arm is after that, and listens no longer.
        stamp_ns = Time.from_msg(message.header.stamp).nanoseconds
        if self._target is None or self._joints is None or stamp_ns < self._episode_ns:
            return
        self._expert = ScriptedExpert(self.arm, self._target, positions_by_name(message, self.arm.names))
        self._last_ns = stamp_ns
        self.destroy_subscription(self._joints)
        self._joints = None

    def _tick(self) -> None:
        if self._expert is None:
            return
        now = self.get_clock().now()
        elapsed_s = max(0, now.nanoseconds - self._last_ns) / NANOSECONDS_PER_SECOND
        self._last_ns = now.nanoseconds
        command = self._expert.step(elapsed_s)
        self._states.publish(joint_state(self.arm.names, command, None, now))
        if self._drives:
            self._drive(command)

    def _drive(self, command: Vector) -> None:
        # Two periods ahead, so that the arm is still moving when the next command replaces this one.
        point = JointTrajectoryPoint(positions=command.tolist())
        point.time_from_start = Duration(nanosec=2 * self._period_ns)
        self._trajectory.publish(JointTrajectory(joint_names=list(self.arm.names), points=[point]))
