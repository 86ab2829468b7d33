"""``ros2 run groot_ros record``: record demonstrations from a running robot, or recover broken recordings."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from groot_ros.cli._arguments import split_ros_arguments
from groot_ros.cli._run import run

_EXAMPLES = """keys in the terminal:
  space start/stop, d discard, r redo (discard and start again), n next instruction, q quit
services of the node groot_recorder: ~/start, ~/stop, ~/discard (std_srvs/Trigger); ~/status tells how it goes

examples:
  python -m groot_ros record --contract my_robot.yaml --output recordings
  python -m groot_ros record --contract my_robot.yaml --instruction "open the drawer" --instruction "close the drawer"
  python -m groot_ros record --recover recordings
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Record until told to stop, or recover."""
    parser = argparse.ArgumentParser(
        prog="record",
        description="Record a robot's topics, as its contract names them, one rosbag2 (MCAP) an episode.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--contract", type=Path, help="the robot's contract (YAML)")
    what.add_argument("--recover", type=Path, metavar="DIR", help="make readable bags of the broken ones in DIR")
    parser.add_argument("--output", type=Path, default=Path("recordings"), help="folder (default: %(default)s)")
    parser.add_argument(
        "--instruction", action="append", default=[], help="the task in words; several to step through with n"
    )
    parser.add_argument(
        "--least-free-gb", type=float, default=2.0, metavar="GB", help="kept free on the disk (default: %(default)s)"
    )
    parser.add_argument("--no-view", action="store_true", help="no live view, also in a terminal: services only")
    own, ros_arguments = split_ros_arguments(arguments)
    options = parser.parse_args(own)
    if options.recover is not None:
        return run(lambda: _recover(options.recover))
    return run(lambda: _record(options, ros_arguments))


def _recover(folder: Path) -> int:
    from groot_ros.recording import recover

    recoveries = recover(folder)
    if not recoveries:
        print(f"{folder}: every bag in it is finished; nothing to recover")
    for one in recoveries:
        if one.fault is not None:
            print(f"{one.bag}: {one.fault}")
        else:
            print(
                f"{one.bag}: {one.messages} messages, {one.duration_s:.1f} s; {one.cut_bytes} unfinished bytes cut off"
                + (f", {one.bad_chunks} damaged chunks lost" if one.bad_chunks else "")
            )
    return 1 if any(one.fault is not None for one in recoveries) else 0


def _record(options: argparse.Namespace, ros_arguments: list[str]) -> int:
    from groot_ros.nodes.recorder_node import RecorderNode, RecorderOptions
    from groot_ros.nodes.recorder_view import RecorderView
    from groot_ros.nodes.running import run_node

    told = RecorderOptions(
        contract=options.contract,
        output=options.output,
        instructions=tuple(options.instruction),
        least_free_bytes=round(options.least_free_gb * 1e9),
    )
    is_terminal = sys.stdin.isatty() and sys.stdout.isatty() and not options.no_view
    view = RecorderView() if is_terminal else None

    def make() -> RecorderNode:
        node = RecorderNode(told, view.say if view else None)
        if view is not None:
            view.attach(node)
        return node

    def finish(node: RecorderNode) -> None:
        node.close()
        if view is not None:
            view.detach()

    try:
        run_node(make, ros_arguments, before_shutdown=finish)
    finally:
        if view is not None:
            view.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
