"""The demo: a robot and a policy as processes of their own, 20 seconds of motion, and an honest account of it."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import rclpy
from rclpy.signals import SignalHandlerOptions

from groot_ros.demo.arm import demo_arm
from groot_ros.demo.following import follow
from groot_ros.demo.picture import draw_following
from groot_ros.demo.summary import DemoSummary, summarise
from groot_ros.errors import GrootError
from groot_ros.nodes.demo_recorder import POLICY, DemoRecorder

START_DEADLINE_S = 150.0
SERVICE_DEADLINE_S = 10.0
STOP_DEADLINE_S = 10.0
LAST_FIGURES_S = 1.5
LAST_LINES = 15


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


class Companion:
    """A process of the demo with a log of its own."""

    def __init__(self, name: str, command: list[str], log: Path, environment: Mapping[str, str]) -> None:
        self.name = name
        self.log = log
        with log.open("w") as file:
            self._process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, env=environment)

    def check(self) -> None:
        """Raise GrootError with the end of the log where the process has ended."""
        code = self._process.poll()
        if code is not None:
            msg = f"the {self.name} process ended with code {code}; {self.last_words()}"
            raise GrootError(msg)

    def last_words(self) -> str:
        """The end of its log."""
        lines = self.log.read_text(errors="replace").splitlines()[-LAST_LINES:]
        return "\n".join([f"the end of {self.log}:", *lines])

    def stop(self) -> None:
        """Stop it as Ctrl-C would, and after a while by force."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(STOP_DEADLINE_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()


def run_demo(options: DemoOptions) -> DemoSummary:
    """Start robot and policy, let the policy move the robot, stop both and write the account of it.

    Raises:
        GrootError: A process ended, or something that was waited for did not come.

    """
    options.output.mkdir(parents=True, exist_ok=True)
    environment = _isolated_environment(options.output)
    os.environ.update(environment)
    arm = demo_arm()
    rclpy.init(args=[], signal_handler_options=SignalHandlerOptions.NO)
    recorder = DemoRecorder(arm.names)
    try:
        with _companions(options, environment) as companions:

            def alive() -> None:
                recorder.check()
                for companion in companions:
                    companion.check()

            def wait_for(heard: Sequence[object], what: str, source: Companion) -> None:
                if not recorder.wait_until(lambda: bool(heard), START_DEADLINE_S, alive):
                    msg = f"after {START_DEADLINE_S:.0f} s there is still no {what}; {source.last_words()}"
                    raise GrootError(msg)

            robot, policy = companions
            wait_for(recorder.record.measured, "joint state of the robot", robot)
            wait_for(recorder.record.chunks, f"chunk of {POLICY}", policy)
            recorder.begin()
            recorder.enable(True, SERVICE_DEADLINE_S, alive)
            began = time.monotonic()
            recorder.listen(options.duration_s, alive)
            duration_s = time.monotonic() - began
            following = follow(recorder.record, arm)
            recorder.enable(False, SERVICE_DEADLINE_S, alive)
            recorder.listen(LAST_FIGURES_S, alive)
    finally:
        recorder.close()
        rclpy.try_shutdown()
    summary = summarise(recorder.record, following, duration_s)
    (options.output / "summary.json").write_text(json.dumps(summary.as_json(), indent=2) + "\n")
    draw_following(following, arm.names, options.output / "trajectory.png")
    return summary


def _isolated_environment(output: Path) -> dict[str, str]:
    """Nothing leaves the machine, and nobody else's robot on it is heard."""
    environment = dict(os.environ)
    environment.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    environment.setdefault("ROS_LOCALHOST_ONLY", "1" if environment.get("ROS_DISTRO") == "humble" else "0")
    environment.setdefault("ROS_DOMAIN_ID", str(random.SystemRandom().randint(1, 100)))
    environment.setdefault("ROS_LOG_DIR", str(output / "ros_log"))
    return environment


@contextmanager
def _companions(options: DemoOptions, environment: Mapping[str, str]) -> Iterator[list[Companion]]:
    tool = [sys.executable, "-m", "groot_ros"]
    parameters = {
        "checkpoint": options.checkpoint,
        "contract": options.contract,
        "embodiment_tag": options.embodiment_tag,
        "device": options.device,
        "seed": options.seed,
        "dry_run": "false",
        "autostart": "true",
    }
    assignments = [word for name, value in parameters.items() for word in ("-p", f"{name}:={value}")]
    commands = {
        "demo_robot": [*tool, "demo_robot", "--ros-args", "-p", f"seed:={options.seed}"],
        "policy": [*tool, "policy", "--ros-args", *assignments],
    }
    started: list[Companion] = []
    try:
        for name, command in commands.items():
            started.append(Companion(name, command, options.output / f"{name}.log", environment))
        yield started
    finally:
        for companion in reversed(started):
            companion.stop()
