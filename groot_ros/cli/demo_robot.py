"""``demo_robot``: a simulated arm with cameras, a leader arm and a trajectory controller, over ROS 2."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from groot_ros.cli._arguments import split_ros_arguments
from groot_ros.cli._run import run
from groot_ros.nodes.demo_robot import PARTS, run_all, run_part

_EXAMPLES = """examples:
  python -m groot_ros demo_robot
  python -m groot_ros demo_robot cameras --ros-args -p seed:=3

ROS arguments go to every part that is run.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo robot, or one of its parts."""
    parser = argparse.ArgumentParser(
        prog="demo_robot",
        description="The demo robot, each part a process: the arm with its controller, the cameras, the leader arm.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("part", nargs="?", choices=PARTS, help="run this part alone, in this process (default: all)")
    own, ros_arguments = split_ros_arguments(arguments)
    options = parser.parse_args(own)
    if options.part is None:
        return run_all(ros_arguments)
    return run(lambda: run_part(options.part, ros_arguments))


if __name__ == "__main__":
    sys.exit(main())
