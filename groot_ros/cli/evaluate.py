"""``ros2 run groot_ros evaluate``: replay recordings through a policy, and report what it would have done."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from groot_ros.cli._run import run
from groot_ros.contract import Contract, load_contract
from groot_ros.errors import EvaluationError
from groot_ros.evaluation.compare import compare
from groot_ros.evaluation.gate import Condition
from groot_ros.evaluation.latency import Latency
from groot_ros.evaluation.report import ACTIONS_FILE, METRICS_FILE, PAGE_FILE, read_json
from groot_ros.evaluation.sentences import figure

GATE_FAILED = 1
_EXAMPLES = """examples:
  python -m groot_ros evaluate --checkpoint ~/models/my_robot --contract my_robot.yaml recordings/* --output report
  python -m groot_ros evaluate --recorded --contract my_robot.yaml recordings/episode_000000 --output report
  python -m groot_ros evaluate --checkpoint P --contract C BAG --output R --fail-if 'mae.single_arm > 2.0'
  python -m groot_ros evaluate --compare report_before report_after

exit status: 0, 1 where a --fail-if holds, 2 on an error
"""
MARKS = {"stop": "[red]x[/]", "look": "[yellow]![/]", "good": "[green]v[/]"}


def parser() -> argparse.ArgumentParser:
    """The command line."""
    result = argparse.ArgumentParser(
        prog="evaluate",
        description="Replay bags or LeRobot datasets through a policy and report what it would have done.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    result.add_argument("recordings", nargs="*", type=Path, help="bags (directory, .mcap, .db3) and LeRobot datasets")
    result.add_argument("--checkpoint", help="checkpoint directory, or a hub id with --allow-download")
    result.add_argument("--contract", type=Path, help="the robot contract")
    result.add_argument("--output", type=Path, help="folder for metrics.json, actions.parquet and report.html")
    result.add_argument("--latency", default="0", help="simulated: seconds, or measured (default: 0)")
    result.add_argument("--seed", type=int, default=0, help="of every prediction (default: 0)")
    result.add_argument("--instruction", help="the task, in place of the recordings' own")
    result.add_argument("--other-instruction", help="another task, to see whether the prompt has an effect")
    result.add_argument("--probes", type=int, default=4, help="sensitivity probes an episode, 0 for none (default: 4)")
    result.add_argument("--episodes", help="episodes of the datasets, as 0,3,7")
    result.add_argument("--embodiment-tag", help="in place of the contract's")
    result.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N")
    result.add_argument("--dtype", choices=("float32", "bfloat16"))
    result.add_argument("--backbone", type=Path, help="the backbone's folder, where the checkpoint has none")
    result.add_argument("--allow-download", action="store_true", help="fetch missing files from the hub")
    result.add_argument("--action-decode-transform", default="auto", help="auto, none or libero")
    result.add_argument("--urdf", type=Path, help="robot description, where the contract takes limits from its topic")
    result.add_argument("--chunks", type=Path, help="chunks that `play --record` has recorded from a live node")
    result.add_argument("--recorded", action="store_true", help="replay the recorded actions: no checkpoint needed")
    result.add_argument("--fail-if", action="append", default=[], metavar="CONDITION", help="as 'mae.single_arm > 2.0'")
    result.add_argument("--compare", nargs=2, type=Path, metavar=("R1", "R2"), help="compare two reports")
    return result


def main(argv: list[str] | None = None) -> int:
    """Run it."""
    options = parser().parse_intermixed_args(argv)
    return run(lambda: _compare(options) if options.compare else _evaluate(options))


def _evaluate(options: argparse.Namespace) -> int:
    if not options.recordings or options.contract is None or options.output is None:
        msg = "give at least one recording, --contract and --output; or two reports with --compare"
        raise EvaluationError(msg)
    if (options.checkpoint is None) == (not options.recorded and options.chunks is None):
        msg = "give one of --checkpoint, --chunks (recorded from a live node) and --recorded (the recording itself)"
        raise EvaluationError(msg)
    conditions = [Condition.parse(text) for text in options.fail_if]
    latency = Latency.parse(options.latency)
    contract = load_contract(options.contract)
    console = Console(highlight=False)
    report = _replay(options, contract, latency, console)
    _say(report, console)
    console.print(f"report: {options.output / PAGE_FILE}", soft_wrap=True)
    failed = []
    for condition in conditions:
        holds, found = condition.holds(report)
        if holds:
            shown = "not measured" if found is None else figure(found)
            failed.append(f"fail-if {condition.text}: {condition.name} is {shown}")
    for sentence in failed:
        print(sentence, file=sys.stderr)
    return GATE_FAILED if failed else 0


def _replay(options: argparse.Namespace, contract: Contract, latency: Latency, console: Console) -> dict[str, Any]:
    # torch is only loaded where something is replayed: --help and --compare answer at once.
    from groot_ros.evaluation.evaluation import Settings, evaluate
    from groot_ros.evaluation.live_chunks import LivePilots, load_chunks
    from groot_ros.evaluation.loading import check_output, find_urdf, load_policy, state_warnings
    from groot_ros.evaluation.page import write_page
    from groot_ros.evaluation.pilot import Pilot
    from groot_ros.evaluation.policies import RecordedActions, ReplayablePolicy
    from groot_ros.evaluation.report import build_report, write_json
    from groot_ros.evaluation.sources import open_episodes

    check_output(options.output)
    urdf = find_urdf(contract, options.urdf, options.recordings)
    policy: ReplayablePolicy
    groot, embodiment = None, None
    live: LivePilots | None = None
    video_history: tuple[int, ...] = contract.policy.video_history
    state_history: tuple[int, ...] = (0,)
    if options.checkpoint is not None:
        groot = policy = load_policy(
            options.checkpoint,
            contract,
            embodiment_tag=options.embodiment_tag,
            device=options.device,
            dtype=options.dtype,
            backbone=options.backbone,
            allow_download=options.allow_download,
            action_decode_transform=options.action_decode_transform,
        )
        embodiment = groot.embodiment
        video_history = tuple(embodiment.modalities.video.delta_indices)
        state_history = tuple(embodiment.modalities.state.delta_indices)
        name = str(options.checkpoint)
    elif options.chunks is not None:
        chunks = load_chunks(options.chunks)
        policy, live = RecordedActions(contract, chunks[0].chunk.horizon), LivePilots(chunks)
        name = f"live chunks of {options.chunks}"
    else:
        policy = RecordedActions(contract, contract.policy.horizon)
        name = "the recording itself"
    episodes, tasks = open_episodes(
        options.recordings,
        contract,
        video_history=video_history,
        state_history=state_history,
        horizon=policy.horizon,
        chosen=_numbers(options.episodes),
    )
    instruction = options.instruction or contract.instruction
    others = [task for task in tasks if task != (options.instruction or (tasks[0] if tasks else instruction))]
    settings = Settings(
        seed=options.seed,
        latency=latency,
        instruction=options.instruction,
        other_instruction=options.other_instruction or (others[0] if others else None),
        probes=options.probes,
    )
    with console.status("replaying") as status:
        evaluation = evaluate(
            episodes,
            contract,
            policy,
            settings,
            actions_path=options.output / ACTIONS_FILE,
            embodiment=embodiment,
            urdf=urdf,
            make_pilot=live or Pilot,
            progress=lambda episode: status.update(f"replaying {episode}"),
        )
    warnings = []
    if groot is not None:
        warnings = state_warnings(groot, contract, [one.played.first_state for one in evaluation.episodes])
    run_facts: dict[str, Any] = {
        "policy": name,
        "robot": contract.robot,
        "contract": str(options.contract),
        "embodiment_tag": options.embodiment_tag or contract.embodiment_tag,
        "recordings": [str(path) for path in options.recordings],
        "instruction": instruction,
        "other_instruction": settings.other_instruction,
        "seed": options.seed,
        "latency": str(latency),
        "rate_hz": contract.rate_hz,
        "horizon": policy.horizon,
        "device": str(groot.device) if groot is not None else "none",
    }
    if live is not None:
        run_facts["live_chunks"] = live.counts()
    report = build_report(evaluation, run_facts, warnings)
    write_json(report, options.output / METRICS_FILE)
    write_page(report, evaluation, options.output / PAGE_FILE)
    return report


def _say(report: dict[str, Any], console: Console) -> None:
    verdict = report["verdict"]
    console.print(f"\n[bold]{verdict['headline']}[/]")
    for reason in verdict["reasons"]:
        console.print(f" {MARKS[reason['level']]} ", end="")
        console.print(reason["sentence"], markup=False)
    table = Table("action", "error", "hold still", "repeat last", "first row", box=None, header_style="dim")
    for group, values in report["metrics"]["mae"].items():
        for name, value in values.items():
            found = (
                value,
                report["baselines"]["hold_still"]["mae"][group][name],
                report["baselines"]["repeat_last"]["mae"][group][name],
                report["metrics"]["first_step_mae"][group][name],
            )
            shown = ["-" if one is None else figure(one) for one in found]
            table.add_row(group if name == "all" else f"  {name}", *shown)
    console.print()
    console.print(table)


def _compare(options: argparse.Namespace) -> int:
    differences = compare(*(read_json(folder) for folder in options.compare))
    table = Table("figure", "first", "second", "episodes", "p", "", box=None, header_style="dim")
    for one in differences:
        p_value = "-" if one.p_value is None else f"{one.p_value:.3f}"
        table.add_row(one.name, figure(one.first), figure(one.second), str(one.episodes), p_value, one.conclusion)
    Console(highlight=False).print(table)
    return 0


def _numbers(text: str | None) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(",")) if text else ()
    except ValueError:
        msg = f"--episodes {text!r}: wanted numbers with commas between them, as 0,3,7"
        raise EvaluationError(msg) from None


if __name__ == "__main__":
    sys.exit(main())
