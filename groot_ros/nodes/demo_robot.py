"""The demo robot: its parts as separate processes, as on a real robot, and the one that starts them all."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Sequence

PARTS = ("arm", "cameras", "leader")
LONGEST_STOP_S = 5.0
POLL_S = 0.1


def run_part(part: str, args: Sequence[str]) -> int:
    """Run one part in this process until it is told to stop; ``args`` may hold ``--ros-args ...``. Returns 0."""
    from groot_ros.nodes.running import run_node

    if part == "arm":
        from groot_ros.nodes.demo_robot_arm import DemoArm

        run_node(DemoArm, args)
    elif part == "cameras":
        from groot_ros.nodes.demo_robot_cameras import DemoCameras

        run_node(DemoCameras, args)
    else:
        from groot_ros.nodes.demo_robot_leader import DemoLeader

        run_node(DemoLeader, args)
    return 0


def run_all(args: Sequence[str]) -> int:
    """Start every part as a process of its own and wait; a part that ends is reported, the others go on.

    Returns:
        0 when all ended because this process was told to stop, else 1.

    """
    stopping = False

    def stop(*_: object) -> None:
        nonlocal stopping
        stopping = True

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    command = [sys.executable, "-m", "groot_ros.cli.demo_robot"]
    running = {part: subprocess.Popen([*command, part, *args]) for part in PARTS}
    failed = False
    while running and not stopping:
        for part, process in list(running.items()):
            if process.poll() is not None:
                failed = True
                del running[part]
                sys.stderr.write(f"demo_robot: the {part} process ended with code {process.returncode}\n")
        time.sleep(POLL_S)
    for process in running.values():
        process.terminate()
    deadline = time.monotonic() + LONGEST_STOP_S
    while time.monotonic() < deadline and any(process.poll() is None for process in running.values()):
        time.sleep(POLL_S)
    for process in running.values():
        process.kill()
    return int(failed)
