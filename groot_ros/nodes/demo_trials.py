"""Trials of a policy on the demo robot, over ROS: fresh targets one by one, and in how many the arm reaches them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import rclpy
from geometry_msgs.msg import PointStamped
from rclpy.qos import qos_profile_sensor_data
from rclpy.signals import SignalHandlerOptions
from rclpy.time import Time
from sensor_msgs.msg import Image

from groot_ros.demo.arm import Vector
from groot_ros.demo.episode import draw_episode
from groot_ros.demo.film import Film
from groot_ros.demo.scene import VIEWS
from groot_ros.demo.trials import ReachJudge, Trial, TrialsReport
from groot_ros.errors import GrootError
from groot_ros.nodes.demo_episodes import SETTLING_S, UNHURRIED_ARM, EpisodeNode
from groot_ros.nodes.demo_policy import POLICY, PolicyHandle, watch
from groot_ros.nodes.demo_processes import companions, isolate, policy_command, ros_arguments
from groot_ros.nodes.demo_robot_parts import LATCHED, TARGET_TOPIC

START_DEADLINE_S = 150.0
SHOWN_TARGET_TOPIC = "shown_target"
OTHER_SCENE = 500_000
"""How far the seed of the shown target lies from that of the real one."""
REPORT_FILE, FILM_FILE = "trials.json", "trials.gif"


@dataclass(frozen=True)
class TrialsOptions:
    """What to run.

    Attributes:
        checkpoint: Folder of the checkpoint.
        contract: The demo robot's contract.
        output: Where ``trials.json`` and the processes' logs go.
        count: Number of trials.
        first_seed: Seed of the first trial's episode; those after it follow.
        limit_s: How long a trial may take.
        other_scene: Whether the cameras show another target than the one to reach.
        film: So many trials are filmed, into ``trials.gif``.
        device: Where the policy computes.
        embodiment_tag: The checkpoint's tag for the robot.

    """

    checkpoint: Path
    contract: Path
    output: Path
    count: int
    first_seed: int
    limit_s: float
    other_scene: bool
    film: int
    device: str
    embodiment_tag: str


class TrialsNode(EpisodeNode):
    """Begins episodes, lets the policy move, and judges by the joints that the robot measures."""

    def __init__(self) -> None:
        super().__init__("demo_trials")
        self.policy = PolicyHandle(self)
        self._judge: ReachJudge | None = None
        self._film: Film | None = None
        self._shown = self.create_publisher(PointStamped, SHOWN_TARGET_TOPIC, LATCHED)

    def on_joints(self, stamp_ns: int, positions: Vector) -> None:
        """Judge a measurement."""
        if self._judge is not None:
            self._judge.hear(stamp_ns, positions)

    def watch_cameras(self) -> None:
        """Hear what the cameras show, for a film."""
        for camera in VIEWS:
            hear = partial(self._on_image, camera)
            self.create_subscription(Image, f"{camera}/image_raw", hear, qos_profile_sensor_data)

    def _on_image(self, camera: str, message: Image) -> None:
        if self._film is not None:
            frame = np.frombuffer(message.data, np.uint8).reshape(message.height, message.width, 3)
            self._film.add(camera, Time.from_msg(message.header.stamp).nanoseconds, frame)

    def run(self, seed: int, limit_s: float, *, other_scene: bool, film: Film | None) -> Trial:
        """One trial; the policy is disabled before and after it."""
        episode = draw_episode(self.arm, seed)
        self.begin_episode(seed)
        self.show(seed + OTHER_SCENE if other_scene else seed)
        self.listen(SETTLING_S)
        if film is not None:
            film.begin_scene()
        self._film = film
        self.policy.enable(True)
        self._judge = judge = ReachJudge(self.arm, episode.target, self.now_ns())
        try:
            self.wait_until(lambda: judge.reached_after_s is not None, limit_s)
        finally:
            self._judge = self._film = None
            self.policy.enable(False)
        return judge.trial(seed)

    def show(self, seed: int) -> None:
        """Let the cameras show the target of that episode."""
        message = PointStamped()
        message.header.stamp = self.get_clock().now().to_msg()
        message.header.frame_id = "base_link"
        message.point.x, message.point.y = (float(value) for value in draw_episode(self.arm, seed).target)
        self._shown.publish(message)


def run_trials(options: TrialsOptions, tell: Callable[[Trial], None]) -> TrialsReport:
    """Start robot and policy, run the trials, stop both, and write the report.

    Args:
        options: What to run.
        tell: Is told of every trial.

    Raises:
        GrootError: A process ended, or something that was waited for did not come.

    """
    options.output.mkdir(parents=True, exist_ok=True)
    isolate(options.output)
    rclpy.init(args=[], signal_handler_options=SignalHandlerOptions.NO)
    node = TrialsNode()
    film = Film(tuple(VIEWS)) if options.film else None
    trials = []
    try:
        with companions(_commands(options), options.output) as processes:
            node.alive = partial(watch, node.policy, processes)
            node.show(options.first_seed)  # the policy's first chunk needs frames
            if not node.wait_until(lambda: node.policy.chunks > 0, START_DEADLINE_S):
                said = processes["policy"].last_words()
                msg = f"after {START_DEADLINE_S:.0f} s there is still no chunk of {POLICY}; {said}"
                raise GrootError(msg)
            if film is not None:
                node.watch_cameras()
            for number in range(options.count):
                trial = node.run(
                    options.first_seed + number,
                    options.limit_s,
                    other_scene=options.other_scene,
                    film=film if number < options.film else None,
                )
                tell(trial)
                trials.append(trial)
    finally:
        node.close()
        rclpy.try_shutdown()
    scene = "other" if options.other_scene else "own"
    report = TrialsReport(str(options.checkpoint), scene, options.limit_s, tuple(trials))
    (options.output / REPORT_FILE).write_text(json.dumps(report.as_json(), indent=2) + "\n")
    if film is not None:
        film.write(options.output / FILM_FILE)
    return report


def _commands(options: TrialsOptions) -> dict[str, list[str]]:
    # What the cameras draw is told by this process; the arm's own target is only for the judge.
    shown = [*ros_arguments({}), "-r", f"{TARGET_TOPIC}:={SHOWN_TARGET_TOPIC}"]
    return {
        "arm": ["demo_robot", "arm", *ros_arguments(UNHURRIED_ARM)],
        "cameras": ["demo_robot", "cameras", *shown],
        "policy": policy_command(
            options.checkpoint,
            options.contract,
            embodiment_tag=options.embodiment_tag,
            device=options.device,
            seed=options.first_seed,
        ),
    }
