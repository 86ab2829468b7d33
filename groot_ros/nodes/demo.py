"""The demo: a robot and a policy as processes of their own, 20 seconds of motion, and an honest account of it."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import rclpy
from rclpy.signals import SignalHandlerOptions

from groot_ros.demo.following import follow
from groot_ros.demo.picture import draw_following
from groot_ros.demo.summary import DemoSummary, summarise
from groot_ros.errors import GrootError
from groot_ros.nodes.demo_policy import POLICY, watch
from groot_ros.nodes.demo_processes import Companion, companions, isolate, policy_command, ros_arguments
from groot_ros.nodes.demo_recorder import DemoRecorder

START_DEADLINE_S = 150.0
LAST_FIGURES_S = 1.5
LONGEST_TRY_S = 6.0
SHORTEST_TRY_S = 4.0
"""With less time left, no further target is begun."""


@dataclass(frozen=True)
class DemoOptions:
    """What to run.

    Attributes:
        checkpoint: Folder of the checkpoint.
        contract: The demo robot's contract.
        output: Where ``summary.json``, ``trajectory.png`` and the processes' logs go.
        duration_s: How long the policy may move the robot.
        device: Where the policy computes.
        embodiment_tag: The checkpoint's tag for the robot.
        seed: Of the target and of the policy's noise.

    """

    checkpoint: Path
    contract: Path
    output: Path
    duration_s: float
    device: str
    embodiment_tag: str
    seed: int


def run_demo(options: DemoOptions) -> DemoSummary:
    """Start robot and policy, let the policy move the robot, stop both and write the account of it.

    Raises:
        GrootError: A process ended, or something that was waited for did not come.

    """
    options.output.mkdir(parents=True, exist_ok=True)
    isolate(options.output)
    rclpy.init(args=[], signal_handler_options=SignalHandlerOptions.NO)
    recorder = DemoRecorder()
    try:
        with companions(_commands(options), options.output) as processes:
            recorder.alive = partial(watch, recorder.policy, processes)

            def wait_for(heard: Sequence[object], what: str, source: Companion) -> None:
                if not recorder.wait_until(lambda: bool(heard), START_DEADLINE_S):
                    msg = f"after {START_DEADLINE_S:.0f} s there is still no {what}; {source.last_words()}"
                    raise GrootError(msg)

            wait_for(recorder.record.measured, "joint state of the robot", processes["demo_robot"])
            wait_for(recorder.record.chunks, f"chunk of {POLICY}", processes["policy"])
            recorder.begin()
            began = time.monotonic()
            end = began + options.duration_s
            seed = options.seed
            while time.monotonic() < end - SHORTEST_TRY_S:
                recorder.reach(seed, end, LONGEST_TRY_S)
                seed += 1
            duration_s = time.monotonic() - began
            following = follow(recorder.record, recorder.arm)
            recorder.listen(LAST_FIGURES_S)
    finally:
        recorder.close()
        rclpy.try_shutdown()
    summary = summarise(recorder.record, following, duration_s)
    (options.output / "summary.json").write_text(json.dumps(summary.as_json(), indent=2) + "\n")
    draw_following(following, recorder.record.joints, options.output / "trajectory.png")
    return summary


def _commands(options: DemoOptions) -> dict[str, list[str]]:
    return {
        "demo_robot": ["demo_robot", *ros_arguments({"seed": options.seed})],
        "policy": policy_command(
            options.checkpoint,
            options.contract,
            embodiment_tag=options.embodiment_tag,
            device=options.device,
            seed=options.seed,
        ),
    }
