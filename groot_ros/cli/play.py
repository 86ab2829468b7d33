"""``ros2 run groot_ros play BAG``: plays a bag to a policy node, and keeps the chunks that it answers with."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from groot_ros.cli._arguments import split_ros_arguments
from groot_ros.cli._run import run

_EXAMPLES = """examples:
  python -m groot_ros policy --ros-args -p checkpoint:=P -p contract:=C -p autostart:=true -p use_sim_time:=true
  python -m groot_ros play BAG --contract C --record chunks.parquet
  python -m groot_ros evaluate BAG --contract C --chunks chunks.parquet --output R
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Play it."""
    parser = argparse.ArgumentParser(
        prog="play",
        description="Play a bag as the robot's topics of a contract, with /clock.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("bag", type=Path, help="directory with metadata.yaml, .mcap or .db3")
    parser.add_argument("--contract", type=Path, required=True, help="the robot contract, which says which topics")
    parser.add_argument("--rate", type=float, default=1.0, help="how many times faster than recorded (default: 1)")
    parser.add_argument("--lock-step", action="store_true", help="wait for the policy node after each message")
    parser.add_argument("--policy", default="/groot_policy", help="the policy node (default: /groot_policy)")
    parser.add_argument("--record", type=Path, metavar="FILE", help="keep the node's chunks, for evaluate --chunks")
    own, ros_arguments = split_ros_arguments(arguments)
    options = parser.parse_args(own)
    if options.rate <= 0:
        parser.error(f"--rate {options.rate}: wanted a number above 0")
    return run(lambda: _play(options, ros_arguments))


def _play(options: argparse.Namespace, ros_arguments: Sequence[str]) -> int:
    from groot_ros.contract import load_contract
    from groot_ros.evaluation.live_chunks import save_chunks
    from groot_ros.nodes.player import play_once

    played = play_once(
        options.bag,
        load_contract(options.contract),
        policy=options.policy,
        rate=options.rate,
        lock_step=options.lock_step,
        ros_arguments=ros_arguments,
    )
    print(f"{options.bag}: {played.messages} messages played, {len(played.chunks)} chunks came")
    if options.record is not None:
        save_chunks(played.chunks, options.record)
        print(f"chunks: {options.record}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
