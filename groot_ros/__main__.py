"""``python -m groot_ros <tool>``: every command-line tool, wherever Python runs."""

from __future__ import annotations

import importlib
import importlib.util
import sys

TOOLS = {
    "policy": "run a policy on a robot: the lifecycle node that turns observations into actions",
    "record": "record demonstrations from a running robot",
    "convert": "turn ROS bags into a LeRobot dataset that GR00T reads too, or say what a bag holds",
    "check": "check a dataset before it costs a training run",
    "finetune": "fine-tune GR00T N1.7 on a dataset",
    "evaluate": "replay a dataset or a bag through a policy and report the errors",
    "checkpoint": "inspect a checkpoint, bundle it for offline use, or write a tiny one",
    "parity": "compare with the outputs of the original implementation",
    "benchmark": "measure latency and throughput on this machine",
    "watchdog": "hold the robot when the policy's heartbeat ends",
    "demo": "a tiny policy moves the demo robot, and a table tells what happened",
    "demo_robot": "a simulated planar arm with cameras and a controller",
    "demo_record": "record demonstrations of the demo robot",
    "demo_trials": "in how many trials a policy reaches the demo robot's target",
    "play": "play a dataset or a bag as a robot's topics",
}


def _module(tool: str) -> str:
    return f"groot_ros.cli.{tool}"


def available() -> dict[str, str]:
    """Return the tools whose module is installed, with what each does."""
    return {tool: text for tool, text in TOOLS.items() if importlib.util.find_spec(_module(tool)) is not None}


def main(argv: list[str] | None = None) -> int:
    """Run a tool, or list them all."""
    arguments = sys.argv[1:] if argv is None else argv
    tools = available()
    if arguments and arguments[0] in tools:
        return int(importlib.import_module(_module(arguments[0])).main(arguments[1:]))
    asked = not arguments or arguments[0] in ("-h", "--help")
    stream = sys.stdout if asked else sys.stderr
    if not asked:
        print(f"error: there is no tool {arguments[0]!r}.", file=stream)
    print("usage: python -m groot_ros <tool> [arguments]; --help after a tool explains it\n", file=stream)
    for tool, text in tools.items():
        print(f"  {tool:<13}{text}", file=stream)
    return 0 if asked else 2


if __name__ == "__main__":
    sys.exit(main())
