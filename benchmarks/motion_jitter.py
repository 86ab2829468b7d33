"""How evenly a position_command output ticks while the policy node takes full-size images and infers.

Demo robot (two cameras, 640x480, 30 Hz, 200 Hz of joint states) and policy are processes of their own. The intervals
between commands are taken from the stamps that the middleware gives them in the policy's process. Beside them stand
those of a thread that only sleeps, in this process: what the machine itself does to timers.

    python -m benchmarks.motion_jitter [--seconds 20] [--checkpoint DIR]
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
import yaml
from numpy.typing import NDArray
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from std_msgs.msg import Float64MultiArray

from groot_ros.checkpoint import write_tiny_checkpoint

ROOT = Path(__file__).parents[1]
RATE_HZ = 100.0
TOPIC = "joint_commands"
START_DEADLINE_S = 120.0


def contract(folder: Path) -> Path:
    """The demo robot's contract, with an array of positions at ``RATE_HZ`` as its output."""
    written = yaml.safe_load((ROOT / "config" / "robots" / "demo.yaml").read_text())
    written["outputs"] = {
        "arm": {
            "type": "position_command",
            "topic": TOPIC,
            "from": {"single_arm": "all", "gripper": "all"},
            "names": ["shoulder", "elbow", "gripper"],
            "rate_hz": RATE_HZ,
        }
    }
    path = folder / "contract.yaml"
    path.write_text(yaml.safe_dump(written, sort_keys=False))
    return path


@contextmanager
def process(*arguments: str) -> Iterator[None]:
    """A tool of the package while the block runs."""
    command = [sys.executable, "-m", "groot_ros", *arguments]
    running = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        running.terminate()
        try:
            running.wait(15)
        except subprocess.TimeoutExpired:
            running.kill()


class Stamps:
    """Hears the commands and keeps when each was sent, by the middleware's own stamp."""

    def __init__(self) -> None:
        rclpy.init(args=[], signal_handler_options=SignalHandlerOptions.NO)
        self.node = Node("motion_jitter")
        self.sent_ns: list[int] = []
        self.node.create_subscription(Float64MultiArray, TOPIC, self._hear, 100)
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(self.node)

    def _hear(self, _message: Float64MultiArray, info: Any) -> None:
        stamp = info["source_timestamp"] if isinstance(info, dict) else info.source_timestamp
        self.sent_ns.append(int(stamp))

    def spin(self, seconds: float) -> None:
        """Listen for a while."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._executor.spin_once(timeout_sec=0.05)

    def close(self) -> None:
        """Take the node down."""
        self._executor.shutdown()
        self.node.destroy_node()
        rclpy.try_shutdown()


def sleeper(stop: threading.Event, woken_ns: list[int]) -> None:
    """Wake at ``RATE_HZ`` and do nothing."""
    period_s = 1.0 / RATE_HZ
    next_s = time.monotonic()
    while not stop.is_set():
        next_s += period_s
        time.sleep(max(next_s - time.monotonic(), 0.0))
        woken_ns.append(time.monotonic_ns())


def jitter_ms(times_ns: list[int]) -> NDArray[np.float64]:
    """How far each interval is from the period, milliseconds; pauses of motion (ten periods) are left out."""
    intervals = np.diff(np.array(times_ns)) / 1e6
    period = 1e3 / RATE_HZ
    return np.abs(intervals[intervals < 10 * period] - period)


def row(name: str, times_ns: list[int]) -> str:
    jitter = jitter_ms(times_ns)
    p50, p99 = np.percentile(jitter, [50, 99])
    return f"| {name} | {len(jitter)} | {p50:.2f} ms | {p99:.2f} ms | {jitter.max():.2f} ms |"


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the jitter of a position_command output under image load.")
    parser.add_argument("--seconds", type=float, default=20.0, help="how long to listen")
    parser.add_argument("--checkpoint", type=Path, help="a checkpoint for the demo robot; by default a tiny one")
    arguments = parser.parse_args()
    os.environ.setdefault("ROS_DOMAIN_ID", str(random.SystemRandom().randint(1, 100)))
    os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    os.environ.setdefault("FASTDDS_DEFAULT_PROFILES_FILE", str(ROOT / "config" / "fastdds_shared_memory.xml"))
    with tempfile.TemporaryDirectory() as temporary, ExitStack() as stack:
        folder = Path(temporary)
        os.environ.setdefault("ROS_LOG_DIR", temporary)
        checkpoint = arguments.checkpoint or write_tiny_checkpoint(folder / "checkpoint")
        values = {"checkpoint": checkpoint, "contract": contract(folder), "dry_run": "false", "autostart": "true"}
        values["auto_enable"] = "true"
        assignments = [word for name, value in values.items() for word in ("-p", f"{name}:={value}")]
        stack.enter_context(process("demo_robot", "--ros-args", "-p", "width:=640", "-p", "height:=480"))
        stack.enter_context(process("policy", "--ros-args", *assignments))
        stamps = Stamps()
        stack.callback(stamps.close)
        deadline = time.monotonic() + START_DEADLINE_S
        while not stamps.sent_ns:
            if time.monotonic() > deadline:
                sys.exit(f"error: no command came on {TOPIC} within {START_DEADLINE_S:.0f} s")
            stamps.spin(0.5)
        stamps.spin(3.0)
        stamps.sent_ns.clear()
        stop, woken_ns = threading.Event(), list[int]()
        thread = threading.Thread(target=sleeper, args=(stop, woken_ns))
        thread.start()
        stamps.spin(arguments.seconds)
        stop.set()
        thread.join()
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    print(f"{os.cpu_count()} cores, load average {load}; {RATE_HZ:g} Hz, two cameras of 640x480 at 30 Hz\n")
    print("| who | intervals | p50 | p99 | largest |\n| --- | --- | --- | --- | --- |")
    print(row("position_command", stamps.sent_ns))
    print(row("a thread that only sleeps", woken_ns))


if __name__ == "__main__":
    main()
