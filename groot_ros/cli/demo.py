"""``demo``: a tiny GR00T N1.7 policy moves the demo robot over ROS 2, and a table and two files tell what happened."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from groot_ros.cli._run import run
from groot_ros.cli._share import shared_file

FAILED = 1
_EXAMPLES = """examples:
  python -m groot_ros demo
  python -m groot_ros demo --checkpoint my_policy --duration 60

exit status: 0 the robot did what the policy said, 1 it did not, 2 nothing could be started
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; 0 only if chunks flowed and the robot did what they said."""
    parser = argparse.ArgumentParser(
        prog="demo",
        description="A tiny GR00T N1.7 policy moves a simulated arm over ROS 2.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--checkpoint",
        type=Path,
        default=shared_file("config/demo_checkpoint"),
        help="default: the package's, which learned to reach",
    )
    parser.add_argument(
        "--contract", type=Path, default=shared_file("config/robots/demo.yaml"), help="default: the package's"
    )
    parser.add_argument("--output", type=Path, default=Path("build/demo"), help="default: %(default)s")
    parser.add_argument("--duration", type=float, default=20.0, metavar="S", help="seconds (default: %(default)s)")
    parser.add_argument("--device", default="auto", help="cuda, cpu or auto (default: %(default)s)")
    parser.add_argument("--embodiment-tag", default="new_embodiment", help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="of the target and the noise (default: %(default)s)")
    options = parser.parse_args(arguments)
    return run(lambda: _run(options))


def _run(options: argparse.Namespace) -> int:
    from rich.console import Console
    from rich.table import Table

    from groot_ros.nodes.demo import DemoOptions, run_demo

    console = Console(highlight=False)
    console.print(
        "The robot, its cameras and the policy are starting; the policy then reaches for one target after the other, "
        f"for {options.duration:g} s."
    )
    summary = run_demo(
        DemoOptions(
            checkpoint=options.checkpoint,
            contract=options.contract,
            output=options.output,
            duration_s=options.duration,
            device=options.device,
            embodiment_tag=options.embodiment_tag,
            seed=options.seed,
        )
    )
    table = Table(title="GR00T N1.7 on the demo robot", show_header=False, title_justify="left")
    table.add_column(style="bold")
    table.add_column()
    for label, value in summary.rows():
        table.add_row(label, value)
    console.print(table)
    if not summary.targets_reached:
        console.print("No target was reached: untrained weights move the arm as the chunks say, but without purpose.")
    console.print(f"Written: {options.output / 'summary.json'}, {options.output / 'trajectory.png'}")
    for problem in summary.problems:
        console.print(f"failed: {problem}", style="red")
    return 0 if summary.success else FAILED
