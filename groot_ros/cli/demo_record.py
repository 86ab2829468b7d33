"""``demo_record``: demonstrations of the demo robot, recorded over ROS 2 as those of any robot are."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from groot_ros.cli._run import run
from groot_ros.cli._share import shared_file

_EXAMPLES = """examples:
  python -m groot_ros demo_record --episodes 200 --output bags
  python -m groot_ros convert bags dataset --contract config/robots/demo.yaml

It takes as long as the demonstrations do: the robot moves in real time.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Record the demonstrations."""
    parser = argparse.ArgumentParser(
        prog="demo_record",
        description="The demo robot's leader arm reaches for one target after the other, and the recorder records it.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--episodes", type=int, default=200, help="demonstrations (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=3.0, help="length of each (default: %(default)s)")
    parser.add_argument(
        "--contract", type=Path, default=shared_file("config/robots/demo.yaml"), help="default: the package's"
    )
    parser.add_argument("--output", type=Path, required=True, help="folder of the bags")
    parser.add_argument(
        "--start-spread",
        type=float,
        default=0.6,
        metavar="RAD",
        help="how far from home a joint may begin: more than in trials (default: %(default)s)",
    )
    parser.add_argument("--first-seed", type=int, default=1000, help="of the episodes (default: %(default)s)")
    options = parser.parse_args(arguments)
    return run(lambda: _record(options))


def _record(options: argparse.Namespace) -> int:
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from groot_ros.nodes.demo_demonstrations import DemonstrationOptions, record_demonstrations

    console = Console(highlight=False)
    columns = (
        TextColumn("demonstrations"),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=options.episodes)
        record_demonstrations(
            DemonstrationOptions(
                contract=options.contract,
                output=options.output,
                count=options.episodes,
                first_seed=options.first_seed,
                seconds=options.seconds,
                start_spread_rad=options.start_spread,
            ),
            lambda number, said: bar.update(task, completed=number + 1, description=said),
        )
    console.print(f"{options.output}: {options.episodes} demonstrations; next: python -m groot_ros convert")
    return 0


if __name__ == "__main__":
    sys.exit(main())
