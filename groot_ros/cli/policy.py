"""``policy``: the lifecycle node ``groot_policy``, which turns what a robot sees into what it does."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from groot_ros.cli._arguments import split_ros_arguments
from groot_ros.cli._run import run

_EXAMPLES = """examples:
  look at what a policy would do, nothing moves:
    python -m groot_ros policy --ros-args -p checkpoint:=~/models/my_robot -p contract:=my_robot.yaml -p autostart:=true
  let it move when ~/enable is called:
    ... -p dry_run:=false
  then: ros2 service call /groot_policy/enable std_srvs/srv/SetBool "{data: true}"
  two robots with one policy, as /left/groot_policy and /right/groot_policy, each with its own topics:
    python -m groot_ros policy --robots left=left.yaml right=right.yaml --ros-args -p checkpoint:=~/models/my_robot
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the node until it is told to stop."""
    parser = argparse.ArgumentParser(
        prog="policy",
        description="Run a GR00T N1.7 policy on a robot. Its parameters, topics and services: docs/policy_node.md.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--robots",
        nargs="+",
        default=[],
        metavar="NAMESPACE[=CONTRACT]",
        help="robots that share the policy, each with its namespace and, where they differ, its contract",
    )
    own, ros_arguments = split_ros_arguments(arguments)
    words = parser.parse_args(own).robots

    def spin() -> int:
        from groot_ros.nodes.policy_node import PolicyNode
        from groot_ros.nodes.policy_robots import make_robots, parse_robots
        from groot_ros.nodes.running import run_node, run_nodes

        if words:
            robots = parse_robots(words)
            return int(not run_nodes(lambda: make_robots(robots), ros_arguments, before_shutdown=PolicyNode.stop))
        run_node(PolicyNode, ros_arguments, before_shutdown=PolicyNode.stop)
        return 0

    return run(spin)


if __name__ == "__main__":
    sys.exit(main())
