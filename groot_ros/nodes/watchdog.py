"""Node ``groot_watchdog``: a process of its own that holds the robot when the policy's heartbeat ends."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rcl_interfaces.msg import ParameterDescriptor
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from std_msgs.msg import Header

from groot_ros.contract import load_contract
from groot_ros.errors import ContractError
from groot_ros.nodes.latched_text import receive_text
from groot_ros.nodes.robot_description import robot_description
from groot_ros.nodes.watchdog_hands import WatchdogHands
from groot_ros.observation import NANOSECONDS_PER_SECOND

CHECK_PERIOD_S = 0.02
SHORTEST_PATIENCE_S = 0.25
"""Heartbeats come every 0.1 s: one may be lost."""
AWAY_S = 0.1
HEAD_START_NS = NANOSECONDS_PER_SECOND // 5
"""The first command may come this much before the first heartbeat."""
DIAGNOSTICS_PERIOD_S = 0.5


class Watchdog(Node):
    """Arms itself with the first heartbeat; when none comes for the contract's ``hold_s``, sends the hold, once.

    The policy ends its heartbeat also when it is disabled as asked. Then the robot is told twice to stay where it is.
    """

    def __init__(self, name: str = "groot_watchdog", **options: Any) -> None:  # noqa: ANN401 - rclpy's own
        super().__init__(name, **options)
        self._hands: WatchdogHands | None = None
        path = self._declare("contract", "", "the robot contract, a YAML file: the one that the policy was given")
        heartbeat = self._declare("heartbeat", "groot_policy/heartbeat", "topic of the policy's heartbeat")
        if not path:
            msg = "parameter contract: found nothing; give the robot contract, a YAML file"
            raise ContractError(msg)
        contract = load_contract(Path(path).expanduser())
        urdf = robot_description(contract, lambda topic: receive_text(self, topic))
        self._hands = WatchdogHands(self, contract, urdf, self.get_logger().warning)
        self._robot = contract.robot
        self._patience_s = max(contract.motion.hold_s, SHORTEST_PATIENCE_S)
        self._armed = False
        self._armed_ns = 0
        self._heard_s = self._checked_s = time.monotonic()
        self._was_away = False
        self._losses = 0
        self._level, self._message = DiagnosticStatus.OK, "waiting for the first heartbeat"
        self._diagnostics = self.create_publisher(DiagnosticArray, "/diagnostics", 10)
        self.create_subscription(Header, heartbeat, self._hear, 10)
        # By a steady clock: a policy may die while simulated time stands still.
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self.create_timer(CHECK_PERIOD_S, self._check, clock=steady)
        self.create_timer(DIAGNOSTICS_PERIOD_S, self._publish_diagnostics, clock=steady)
        self._topic = self.resolve_topic_name(heartbeat)
        self.get_logger().info(f"waiting for {self._topic}; a silence of {self._patience_s:g} s is its end")

    def destroy_node(self) -> None:
        """See `Node.destroy_node`."""
        if self._hands is not None:
            self._hands.destroy()
        super().destroy_node()

    def _declare(self, name: str, default: str, description: str) -> str:
        return str(
            self.declare_parameter(name, default, ParameterDescriptor(description=description, read_only=True)).value
        )

    def _hear(self, _message: Header) -> None:
        self._heard_s = time.monotonic()
        if not self._armed:
            self._armed, self._armed_ns = True, self._now_ns()
            self._say(DiagnosticStatus.OK, "the heartbeat is well")
            self.get_logger().info(f"armed: {self._topic} is heard")

    def _check(self) -> None:
        now_s = time.monotonic()
        away_s, self._checked_s = now_s - self._checked_s, now_s
        if away_s > AWAY_S and not self._was_away:
            # This process itself was kept from running: heartbeats may lie unread, and are read before the next turn.
            self._was_away = True
            return
        self._was_away = False
        silence_s = now_s - self._heard_s
        if not self._armed or silence_s < self._patience_s:
            return
        self._armed = False
        self._losses += 1
        assert self._hands is not None  # made before the timer
        held, faults = self._hands.hold(self._now_ns(), self._armed_ns - HEAD_START_NS)
        sent = f"a hold was sent on {', '.join(held)}" if held else "no hold was sent"
        sentence = "; ".join([f"{self._topic} ended {silence_s:.2f} s ago: {sent}", *faults])
        self._say(DiagnosticStatus.ERROR if faults else DiagnosticStatus.STALE, sentence)
        self.get_logger().error(sentence)
        self._publish_diagnostics()

    def _now_ns(self) -> int:
        return int(self.get_clock().now().nanoseconds)

    def _say(self, level: bytes, message: str) -> None:
        self._level, self._message = level, message

    def _publish_diagnostics(self) -> None:
        values = {"armed": str(self._armed).lower(), "losses": str(self._losses)}
        status = DiagnosticStatus(
            level=self._level,
            name=f"{self.get_fully_qualified_name().lstrip('/')}: heartbeat",
            message=self._message,
            hardware_id=self._robot,
            values=[KeyValue(key=key, value=value) for key, value in values.items()],
        )
        message = DiagnosticArray(status=[status])
        message.header.stamp = self.get_clock().now().to_msg()
        self._diagnostics.publish(message)
