"""Beginning episodes on the demo robot from another process: its arm and target are put elsewhere, by a seed."""

from __future__ import annotations

import numpy as np
from geometry_msgs.msg import PointStamped
from rcl_interfaces.srv import SetParameters
from rclpy.parameter import Parameter
from rclpy.qos import qos_profile_sensor_data
from rclpy.time import Time
from sensor_msgs.msg import JointState

from groot_ros.demo.arm import Vector, demo_arm
from groot_ros.errors import GrootError
from groot_ros.nodes.demo_robot_parts import LATCHED, TARGET_TOPIC, positions_by_name
from groot_ros.nodes.demo_waiting import WaitingNode

ARM = "demo_arm"
EPISODE_DEADLINE_S = 10.0
SETTLING_S = 0.7
"""After a new episode, until the cameras show it, and until a policy that was disabled just before takes the arm for at
rest: only then does it see that the arm was put elsewhere."""
UNHURRIED_ARM = {"demo_arm:rate_hz": 100.0}
"""Fewer joint states than the robot's usual: they are the most of the work, and rows come ten times a second."""


class EpisodeNode(WaitingNode):
    """Hears the arm's joints and its target, and begins episodes.

    Attributes:
        arm: The demo robot's arm.
        joints_ns: Stamp of the newest joint state; 0 before the first.
        target_ns: When the episode under way began; 0 before the first.

    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.arm = demo_arm()
        self.joints_ns = self.target_ns = 0
        self.create_subscription(JointState, "joint_states", self._on_joints, qos_profile_sensor_data)
        self.create_subscription(PointStamped, TARGET_TOPIC, self._on_target, LATCHED)
        self._parameters = self.create_client(SetParameters, f"{ARM}/set_parameters")

    def on_joints(self, stamp_ns: int, positions: Vector) -> None:
        """Hear a measurement ``(joints + 1,)`` rad; for subclasses."""

    def on_target(self, begin_ns: int, target: Vector) -> None:
        """Hear where the target ``(2,)`` m of the episode that began then lies; for subclasses."""

    def _on_joints(self, message: JointState) -> None:
        self.joints_ns = Time.from_msg(message.header.stamp).nanoseconds
        self.on_joints(self.joints_ns, positions_by_name(message, self.arm.names))

    def _on_target(self, message: PointStamped) -> None:
        self.target_ns = Time.from_msg(message.header.stamp).nanoseconds
        self.on_target(self.target_ns, np.array([message.point.x, message.point.y]))

    def begin_episode(self, seed: int) -> None:
        """Put arm and target where the episode of ``seed`` begins, and wait until that is measured.

        Raises:
            GrootError: The arm refuses or does not answer.

        """
        before_ns = self.target_ns
        request = SetParameters.Request(parameters=[Parameter("seed", value=seed).to_parameter_msg()])
        result = self.ask(self._parameters, request, f"{ARM}/set_parameters").results[0]
        if not result.successful:
            msg = f"{ARM} begins no episode {seed}: {result.reason}"
            raise GrootError(msg)
        if not self.wait_until(lambda: self.joints_ns > self.target_ns > before_ns, EPISODE_DEADLINE_S):
            msg = f"{ARM} took the seed {seed}, but after {EPISODE_DEADLINE_S:.0f} s there is no new target"
            raise GrootError(msg)
