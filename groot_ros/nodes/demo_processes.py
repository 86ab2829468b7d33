"""Processes that the demo's tools start beside themselves, each with a log of its own, on a domain of their own."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from groot_ros.errors import GrootError

STOP_DEADLINE_S = 10.0
LAST_LINES = 15


class Companion:
    """A process of the demo with a log of its own."""

    def __init__(self, name: str, command: Sequence[str], log: Path, environment: Mapping[str, str]) -> None:
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


def isolate(output: Path) -> None:
    """Nothing leaves the machine, and nobody else's robot on it is heard: by this process and those it starts."""
    os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    os.environ.setdefault("ROS_LOCALHOST_ONLY", "1" if os.environ.get("ROS_DISTRO") == "humble" else "0")
    os.environ.setdefault("ROS_DOMAIN_ID", str(random.SystemRandom().randint(1, 100)))
    os.environ.setdefault("ROS_LOG_DIR", str(output / "ros_log"))


@contextmanager
def companions(commands: Mapping[str, Sequence[str]], output: Path) -> Iterator[dict[str, Companion]]:
    """Run tools of this package until the block ends, which SIGTERM does as Ctrl-C does.

    Args:
        commands: Name of the process to the tool and its arguments, in the order of their start.
        output: Where the logs go.

    """
    started: dict[str, Companion] = {}
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        for name, arguments in commands.items():
            command = [sys.executable, "-m", "groot_ros", *arguments]
            started[name] = Companion(name, command, output / f"{name}.log", os.environ)
        yield started
    finally:
        signal.signal(signal.SIGTERM, before)
        for companion in reversed(started.values()):
            companion.stop()


def ros_arguments(parameters: Mapping[str, object]) -> list[str]:
    """The words that set parameters of a node on its command line."""
    return ["--ros-args", *(word for name, value in parameters.items() for word in ("-p", f"{name}:={value}"))]


def policy_command(checkpoint: Path, contract: Path, *, embodiment_tag: str, device: str, seed: int) -> list[str]:
    """The policy that may move the robot, once it is enabled."""
    return [
        "policy",
        *ros_arguments(
            {
                "checkpoint": checkpoint,
                "contract": contract,
                "embodiment_tag": embodiment_tag,
                "device": device,
                "seed": seed,
                "dry_run": "false",
                "autostart": "true",
            }
        ),
    ]
