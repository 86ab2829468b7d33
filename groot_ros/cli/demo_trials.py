"""``demo_trials``: in how many trials a policy reaches the demo robot's target, which only its cameras show."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from groot_ros.cli._run import run
from groot_ros.cli._share import shared_file

FAILED = 1
_EXAMPLES = """examples:
  python -m groot_ros demo_trials --checkpoint my_policy --trials 50
  python -m groot_ros demo_trials --checkpoint my_policy --other-scene      # a control: the cameras show another target
  python -m groot_ros demo_trials --checkpoint my_policy --trials 5 --film 5

exit status: 0 done, and as many reached as was asked for; 1 too few or too many; 2 nothing could be started
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the trials."""
    parser = argparse.ArgumentParser(
        prog="demo_trials",
        description="A policy reaches for fresh targets with the demo robot, over ROS 2, and a table says how often.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--checkpoint", type=Path, default=shared_file("config/demo_checkpoint"), help="default: the package's"
    )
    parser.add_argument("--trials", type=int, default=50, help="default: %(default)s")
    parser.add_argument(
        "--contract", type=Path, default=shared_file("config/robots/demo.yaml"), help="default: the package's"
    )
    parser.add_argument("--output", type=Path, default=Path("build/trials"), help="default: %(default)s")
    parser.add_argument("--time-limit", type=float, default=6.0, metavar="S", help="of a trial (default: %(default)s)")
    parser.add_argument("--other-scene", action="store_true", help="the cameras show another target than the real one")
    parser.add_argument("--film", type=int, default=0, metavar="N", help="film the first N trials (trials.gif)")
    parser.add_argument("--first-seed", type=int, default=0, help="of the episodes (default: %(default)s)")
    parser.add_argument("--at-least", type=int, default=0, metavar="N", help="fail where fewer targets are reached")
    parser.add_argument("--at-most", type=int, metavar="N", help="fail where more targets are reached")
    parser.add_argument("--device", default="auto", help="cuda, cpu or auto (default: %(default)s)")
    parser.add_argument("--embodiment-tag", default="new_embodiment", help="default: %(default)s")
    options = parser.parse_args(arguments)
    if options.trials < 1:
        parser.error(f"--trials {options.trials}: give 1 or more")
    return run(lambda: _run(options))


def _run(options: argparse.Namespace) -> int:
    from rich.console import Console
    from rich.table import Table

    from groot_ros.demo.trials import Trial
    from groot_ros.nodes.demo_trials import TrialsOptions, run_trials

    console = Console(highlight=False)

    def tell(trial: Trial) -> None:
        after = trial.reached_after_s
        how = f"reached after {after:.1f} s" if after is not None else "not reached"
        console.print(f"trial {trial.seed}: {how}, {trial.last_of_reach:.1%} of the reach away at the end")

    report = run_trials(
        TrialsOptions(
            checkpoint=options.checkpoint,
            contract=options.contract,
            output=options.output,
            count=options.trials,
            first_seed=options.first_seed,
            limit_s=options.time_limit,
            other_scene=options.other_scene,
            film=options.film,
            device=options.device,
            embodiment_tag=options.embodiment_tag,
        ),
        tell,
    )
    table = Table(title=f"Trials of {options.checkpoint}", show_header=False, title_justify="left")
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for label, value in report.rows():
        table.add_row(label, value)
    console.print(table)
    console.print(f"Written: {options.output / 'trials.json'}")
    most = options.trials if options.at_most is None else options.at_most
    if options.at_least <= report.reached <= most:
        return 0
    console.print(f"failed: {report.reached} reached; {options.at_least} to {most} were asked for", style="red")
    return FAILED


if __name__ == "__main__":
    sys.exit(main())
