"""Demonstrations of the demo robot: its leader arm moves it to fresh targets, and the recorder writes each way down."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import rclpy
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.client import Client
from rclpy.qos import qos_profile_sensor_data
from rclpy.signals import SignalHandlerOptions
from rclpy.time import Time
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from groot_ros.errors import GrootError
from groot_ros.nodes.demo_episodes import UNHURRIED_ARM, EpisodeNode
from groot_ros.nodes.demo_processes import Companion, companions, isolate, ros_arguments

RECORDER = "groot_recorder"
START_DEADLINE_S = 60.0
LOG_FOLDER = "logs"
EPISODE_DEADLINE_S = 10.0


@dataclass(frozen=True)
class DemonstrationOptions:
    """What to record.

    Attributes:
        contract: The demo robot's contract.
        output: Where the bags go, and in ``logs`` what the processes say.
        count: Number of demonstrations.
        first_seed: Seed of the first one's episode; those after it follow.
        seconds: Length of each.
        start_spread_rad: Largest distance a joint begins from home.

    """

    contract: Path
    output: Path
    count: int
    first_seed: int
    seconds: float
    start_spread_rad: float


class DemonstrationNode(EpisodeNode):
    """Begins episodes and starts and stops the recorder."""

    def __init__(self) -> None:
        super().__init__("demo_demonstrations")
        self.leader_ns = 0
        self.create_subscription(JointState, "leader/joint_states", self._on_leader, qos_profile_sensor_data)
        self._obstacle = "it says nothing"
        self.create_subscription(DiagnosticStatus, f"{RECORDER}/status", self._on_status, 10)
        self._start = self.create_client(Trigger, f"{RECORDER}/start")
        self._stop = self.create_client(Trigger, f"{RECORDER}/stop")

    def _on_leader(self, message: JointState) -> None:
        self.leader_ns = Time.from_msg(message.header.stamp).nanoseconds

    def _on_status(self, message: DiagnosticStatus) -> None:
        self._obstacle = message.message

    def wait_for_recorder(self) -> None:
        """Wait until the recorder hears every topic.

        Raises:
            GrootError: It never does; its own sentence says what is missing.

        """
        if not self.wait_until(lambda: self._obstacle == "ready", START_DEADLINE_S):
            msg = f"after {START_DEADLINE_S:.0f} s {RECORDER} still cannot record: {self._obstacle}"
            raise GrootError(msg)

    def record(self, seed: int, seconds: float) -> str:
        """Record the episode of ``seed`` from its first moment on; what the recorder says of it.

        Raises:
            GrootError: Somebody refuses, with a sentence, or does not answer.

        """
        self.begin_episode(seed)
        if not self.wait_until(lambda: self.leader_ns > self.target_ns, EPISODE_DEADLINE_S):
            msg = f"the leader arm does not begin the episode {seed}"
            raise GrootError(msg)
        self._tell(self._start)
        self.rest(seconds)
        return self._tell(self._stop)

    def _tell(self, client: Client[Any, Any]) -> str:
        answer = self.ask(client, Trigger.Request(), RECORDER)
        if not answer.success:
            msg = f"{RECORDER}: {answer.message}"
            raise GrootError(msg)
        return str(answer.message)


def record_demonstrations(options: DemonstrationOptions, tell: Callable[[int, str], None]) -> None:
    """Start robot and recorder, record, and stop both.

    Args:
        options: What to record.
        tell: Is told the number of each demonstration that is finished, and what the recorder says of it.

    Raises:
        GrootError: A process ended, or something that was waited for did not come.

    """
    logs = options.output / LOG_FOLDER
    logs.mkdir(parents=True, exist_ok=True)
    isolate(logs)
    rclpy.init(args=[], signal_handler_options=SignalHandlerOptions.NO)
    node = DemonstrationNode()
    commands = {
        "demo_robot": [
            "demo_robot",
            *ros_arguments({"drive": "true", "start_spread_rad": options.start_spread_rad, **UNHURRIED_ARM}),
        ],
        "record": ["record", "--contract", str(options.contract), "--output", str(options.output), "--no-view"],
    }
    try:
        with companions(commands, logs) as processes:
            node.alive = lambda: _check(processes)
            node.wait_for_recorder()
            for number in range(options.count):
                tell(number, node.record(options.first_seed + number, options.seconds))
    finally:
        node.close()
        rclpy.try_shutdown()


def _check(processes: Mapping[str, Companion]) -> None:
    for process in processes.values():
        process.check()
