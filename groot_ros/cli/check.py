"""``ros2 run groot_ros check DATASET``: a quality report to read before training."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from groot_ros.cli._run import run
from groot_ros.dataset.quality.html import write_html
from groot_ros.dataset.quality.report import check_dataset
from groot_ros.dataset.quality.text import print_report

_EXAMPLES = """examples:
  python -m groot_ros check cubes
  python -m groot_ros check cubes --quick --horizon 32 --html report.html

exit status: 0 no errors, 1 errors, 2 the dataset cannot be read
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Check a dataset; return 0, 1 where it has errors, or 2 where it cannot be read."""
    parser = argparse.ArgumentParser(
        prog="check",
        description="Report on the quality of a LeRobot dataset (v3.0, v2.1, v2.0) before training.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("dataset", type=Path, help="directory with meta/info.json")
    parser.add_argument("--horizon", type=int, default=16, help="rows of the policy's action chunk (default: 16)")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write the report with pictures and plots to FILE")
    parser.add_argument("--quick", action="store_true", help="decode a few frames of each video instead of all")
    options = parser.parse_args(arguments)
    return run(lambda: _check(options))


def _check(options: argparse.Namespace) -> int:
    console = Console()
    with Progress(console=Console(stderr=True), transient=True) as bars:
        tasks = {what: bars.add_task(what, total=None) for what in ("rows", "frames")}
        report = check_dataset(
            options.dataset,
            horizon=options.horizon,
            quick=options.quick,
            progress=lambda what, done, total: bars.update(tasks[what], completed=done, total=total),
        )
    print_report(report, console)
    if options.html:
        write_html(report, options.html)
        console.print(f"pictures and plots: {options.html}")
    return 1 if report.has_errors else 0


if __name__ == "__main__":
    sys.exit(main())
