"""``ros2 run groot_ros convert``: bags to a dataset that LeRobot and GR00T train on; or what a bag holds."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.progress import Progress, TaskID
from rich.table import Table

from groot_ros.cli._run import run
from groot_ros.contract import load_contract
from groot_ros.dataset.bag import is_bag
from groot_ros.dataset.conversion import Conversion, ConversionSettings, Cut, OnGap, convert, inspect_bag, read_cuts
from groot_ros.dataset.conversion.convert import Shard
from groot_ros.dataset.conversion.draft import draft_contract
from groot_ros.dataset.conversion.inspection import BagReport
from groot_ros.dataset.layout import LayoutVersion
from groot_ros.dataset.video_writer import VideoEncoding
from groot_ros.errors import DatasetError
from groot_ros.recording.recovery import UNFINISHED_SUFFIX
from groot_ros.recording.session import DISCARDED

_EXAMPLES = """examples:
  python -m groot_ros convert --inspect recordings/episode_000000
  python -m groot_ros convert recordings cubes --contract my_robot.yaml --jobs 8
  python -m groot_ros convert old/*.mcap cubes --contract my_robot.yaml --episodes episodes.csv --trim-idle

A folder stands for all bags in it. What is in the dataset already is not done again: after an interruption, run the
same command. On a cluster, run it with --shard 1/8 to --shard 8/8, and once without --shard at the end.

exit status: 0 all went well, 1 a bag failed (the others are in the dataset), 2 nothing could be done
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Convert or inspect."""
    options = _parser().parse_intermixed_args(arguments)
    console = Console()
    return run(lambda: _inspect(options, console) if options.inspect else _convert(options, console))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="convert",
        description="Convert rosbag2 bags (MCAP or sqlite3, compressed or split, of any tool) to a LeRobot dataset.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("paths", type=Path, nargs="+", metavar="BAG... OUT", help="bags, and last the dataset")
    parser.add_argument("--inspect", action="store_true", help="only say what the bags hold, and draft a contract")
    parser.add_argument("--contract", type=Path, help="the robot's contract (YAML)")
    parser.add_argument("--instruction", help="the task in words, for bags that do not say it")
    parser.add_argument("--episodes", type=Path, metavar="CSV", help="columns bag,start_s,end_s,instruction,success")
    parser.add_argument("--successes-only", action="store_true", help="leave out episodes that are labelled failures")
    parser.add_argument(
        "--on-gap", choices=[one.value for one in OnGap], default=OnGap.SPLIT.value, help="default: %(default)s"
    )
    parser.add_argument(
        "--trim-idle",
        type=float,
        nargs="?",
        const=0.3,
        metavar="S",
        help="cut off head and tail without commands, but for S seconds (default: 0.3)",
    )
    parser.add_argument(
        "--least-rows", type=int, metavar="N", help="leave out shorter episodes (default: the contract's horizon)"
    )
    parser.add_argument(
        "--codec", choices=("h264", "hevc", "av1", "lossless"), default="h264", help="default: %(default)s"
    )
    parser.add_argument("--crf", type=int, help="quality of the video, lower is better (default: by codec)")
    parser.add_argument("--preset", help="the encoder's speed preset (default: by codec)")
    parser.add_argument(
        "--format", choices=("v3.0", "v2.1"), default="v3.0", help="layout of the dataset (default: %(default)s)"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="bags at a time (default: all cores)")
    parser.add_argument("--shard", type=_shard, metavar="I/N", help="only every Nth bag, prepared beside the dataset")
    return parser


def _shard(text: str) -> Shard:
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        msg = f"{text!r} is no shard; write 1/8 to 8/8"
        raise argparse.ArgumentTypeError(msg)
    return Shard(int(match[1]), int(match[2]))


def _convert(options: argparse.Namespace, console: Console) -> int:
    if len(options.paths) < 2 or options.contract is None:
        missing = "--contract" if options.contract is None else "a directory for the dataset behind the bags"
        msg = f"{missing} is missing; convert BAG... OUT --contract FILE"
        raise DatasetError(msg)
    *sources, root = options.paths
    bags, leftovers, aside = find_bags(sources)
    cuts = read_cuts(options.episodes, bags) if options.episodes else [Cut(bag) for bag in bags]
    contract = load_contract(options.contract)
    settings = ConversionSettings(
        contract=contract,
        instruction=options.instruction,
        on_gap=OnGap(options.on_gap),
        trim_idle_s=options.trim_idle,
        least_rows=contract.policy.horizon if options.least_rows is None else options.least_rows,
        successes_only=options.successes_only,
    )
    with Progress(console=Console(stderr=True), transient=True) as bars:
        tasks = [bars.add_task(cut.bag.name, total=1.0) for cut in cuts]
        conversion = convert(
            cuts,
            root,
            settings,
            encoding=VideoEncoding(codec=options.codec, crf=options.crf, preset=options.preset),
            version=LayoutVersion(options.format),
            processes=options.jobs,
            shard=options.shard,
            progress=lambda job, share: bars.update(tasks[job], completed=share),
        )
    _print_conversion(conversion, console, contract.rate_hz)
    for bag in leftovers:
        console.print(f"{bag} was left out: it is not finished; run record --recover {bag.parent}", soft_wrap=True)
    for folder in aside:
        console.print(
            f"{folder} was left out: what lies in it was put aside; give it alone to convert it", soft_wrap=True
        )
    for bag in [bag for bag in bags if bag not in {cut.bag for cut in cuts}]:
        console.print(f"{bag} was left out: it does not stand in {options.episodes}", soft_wrap=True)
    if conversion.episodes is None:
        console.print(f"prepared beside {root}; when all shards are done, run the command without --shard")
    elif conversion.episodes:
        console.print(f"{root}: {conversion.episodes} episodes; next: python -m groot_ros check {root}")
    return 1 if conversion.failed or leftovers else 0


def find_bags(sources: Sequence[Path]) -> tuple[list[Path], list[Path], list[Path]]:
    """The bags that are meant, those that were never finished, and folders of episodes that were put aside.

    The last are meant only where nothing else is given: ``recordings/*`` names them too.

    Raises:
        DatasetError: A path leads nowhere, or to a folder without bags.

    """
    bags: list[Path] = []
    unfinished: list[Path] = []
    aside: list[Path] = []
    for source in sources:
        if source.is_file() or is_bag(source):
            (unfinished if source.suffix == UNFINISHED_SUFFIX else bags).append(source)
            continue
        if len(sources) > 1 and source.name == DISCARDED and source.is_dir():
            aside.append(source)
            continue
        inside = sorted(path for path in source.iterdir() if is_bag(path)) if source.is_dir() else []
        if not inside:
            what = "a folder without bags" if source.is_dir() else "not there"
            msg = f"{source} is {what}; give bags, or a folder of them"
            raise DatasetError(msg)
        for bag in inside:
            (unfinished if bag.suffix == UNFINISHED_SUFFIX else bags).append(bag)
    return list(dict.fromkeys(bags)), list(dict.fromkeys(unfinished)), aside


def _print_conversion(conversion: Conversion, console: Console, rate_hz: float) -> None:
    table = Table(title="Conversion", title_justify="left")
    for column in ("bag", "episodes", "rows", "seconds", "gaps"):
        table.add_column(column, justify="left" if column == "bag" else "right")
    table.add_column("notes", overflow="fold")
    for report in conversion.reports:
        if report.fault is not None:
            table.add_row(report.cut.bag.name, "", "", "", "", f"failed: {report.fault}", style="red")
            continue
        rows = ("", "") if report.known else (str(report.rows), f"{report.rows / rate_hz:.1f}")
        notes = "; ".join(report.notes)
        table.add_row(report.cut.bag.name, str(len(report.names)), *rows, str(report.gaps), notes)
    console.print(table)
    for warning in conversion.warnings:
        console.print(f"warning: {warning}", style="yellow", soft_wrap=True)


def _inspect(options: argparse.Namespace, console: Console) -> int:
    bags, unfinished, aside = find_bags(options.paths)
    for folder in aside:
        console.print(f"{folder} was left out: what lies in it was put aside; give it alone to see it", soft_wrap=True)
    for bag in bags + unfinished:
        with Progress(console=Console(stderr=True), transient=True) as bars:
            task = bars.add_task(bag.name, total=1.0)
            report = inspect_bag(bag, partial(_advance, bars, task))
        _print_inspection(report, console)
        console.print("\nDraft of a contract:\n", style="bold")
        console.print(draft_contract(report), markup=False, highlight=False, soft_wrap=True)
    return 0


def _advance(bars: Progress, task: TaskID, share: float) -> None:
    bars.update(task, completed=share)


def _print_inspection(report: BagReport, console: Console) -> None:
    table = Table(title=f"{report.path}: {report.duration_s:.1f} s", title_justify="left")
    for column in ("topic", "type"):
        table.add_column(column, overflow="fold")
    for column in ("messages", "Hz", "longest gap s", "lag s"):
        table.add_column(column, justify="right")
    for column in ("stamps", "content"):
        table.add_column(column, overflow="fold")
    for topic in report.topics:
        lag = "" if topic.lag_s is None else f"{topic.lag_s:.3f}"
        stamps = ", ".join(topic.stamp_faults) or ("good" if topic.has_header else "none: arrival counts")
        table.add_row(
            topic.name,
            topic.type,
            str(topic.messages),
            f"{topic.rate_hz:.1f}",
            f"{topic.longest_gap_s:.3f}",
            lag,
            stamps if topic.fault is None else "",
            topic.fault or topic.content,
            style="red" if topic.fault else "",
        )
    console.print(table)


if __name__ == "__main__":
    raise SystemExit(main())
