"""Node ``demo_recorder``: hears the robot and the policy of the demo, and gives them one target after the other."""

from __future__ import annotations

import time

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from trajectory_msgs.msg import JointTrajectory

from groot_ros.demo.arm import Vector
from groot_ros.demo.episode import draw_episode
from groot_ros.demo.record import DemoRecord
from groot_ros.demo.trials import ReachJudge
from groot_ros.nodes.demo_episodes import SETTLING_S, EpisodeNode
from groot_ros.nodes.demo_policy import POLICY, PolicyHandle

CONTROLLER = "arm_controller"
SHOWN_FOR_S = 1.0
"""How long the arm stays at a target that it has reached."""


class DemoRecorder(EpisodeNode):
    """Keeps a ``DemoRecord`` of what it hears."""

    def __init__(self) -> None:
        super().__init__("demo_recorder")
        self.record = DemoRecord(self.arm.names, self.now_ns())
        self.policy = PolicyHandle(self)
        self._judge: ReachJudge | None = None
        self.create_subscription(JointTrajectory, f"{POLICY}/action_chunk", self._on_chunk, 10)
        self.create_subscription(JointTrajectory, f"{CONTROLLER}/joint_trajectory", self._on_trajectory, 10)
        self.create_subscription(DiagnosticStatus, f"{POLICY}/status", self._on_status, 10)
        self.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, 10)

    def on_joints(self, stamp_ns: int, positions: Vector) -> None:
        """Keep a measurement."""
        self.record.measured.append((stamp_ns, positions))
        if self._judge is not None:
            self._judge.hear(stamp_ns, positions)

    def on_target(self, begin_ns: int, target: Vector) -> None:
        """Keep a target."""
        self.record.targets.append((begin_ns, target))

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

    def reach(self, seed: int, until_s: float, longest_s: float) -> None:
        """Put arm and target where the episode of ``seed`` begins, and let the policy move the arm.

        Args:
            seed: Of the episode.
            until_s: When to end at the latest, by the monotonic clock.
            longest_s: The longest time for this target.

        """
        self.begin_episode(seed)
        self.listen(SETTLING_S)
        self.policy.enable(True)
        self._judge = judge = ReachJudge(self.arm, draw_episode(self.arm, seed).target, self.now_ns())
        try:
            left_s = until_s - time.monotonic()
            if self.wait_until(lambda: judge.reached_after_s is not None, min(longest_s, left_s)):
                self.listen(min(SHOWN_FOR_S, until_s - time.monotonic()))
        finally:
            self._judge = None
            self.policy.enable(False)
        self.record.trials.append(judge.trial(seed))
