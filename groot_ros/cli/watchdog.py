"""``watchdog``: holds the robot when the policy's heartbeat ends, were the policy killed outright."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from groot_ros.cli._arguments import split_ros_arguments
from groot_ros.cli._run import run

_EXAMPLES = """example, beside the policy and with the same contract:
  python -m groot_ros watchdog --ros-args -p contract:=my_robot.yaml
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the node until it is told to stop."""
    parser = argparse.ArgumentParser(
        prog="watchdog",
        description="Hold the robot when the policy's heartbeat ends. It arms itself with the first heartbeat.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    own, ros_arguments = split_ros_arguments(arguments)
    parser.parse_args(own)

    def spin() -> int:
        from groot_ros.nodes.running import run_node
        from groot_ros.nodes.watchdog import Watchdog

        run_node(Watchdog, ros_arguments)
        return 0

    return run(spin)


if __name__ == "__main__":
    sys.exit(main())
