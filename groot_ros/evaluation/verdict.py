"""The verdict: may this policy be tried on the robot, and why (not). Each reason is one sentence with its figures."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from groot_ros.evaluation.pilot import PREDICTION_FAILED
from groot_ros.evaluation.sentences import figure, times

STOP, LOOK, GOOD = "stop", "look", "good"
HEADLINES = {
    STOP: "Do not let it move the robot",
    LOOK: "Look closer before it moves the robot",
    GOOD: "Nothing speaks against a first try, slowly and with the hand on the stop",
}
_RANK = {GOOD: 0, LOOK: 1, STOP: 2}

MOST_REFUSED = 0.05
"""Share of the predictions that may fail, or whose chunks may be refused."""
MOST_STRAY = 0.5
"""Share of the live chunks that may belong to no observation."""
LEAST_EFFECT = 0.005
"""Change of the actions, as a share of half the trained range, below which the policy does not look at something."""
LARGEST_SEAM = 0.1
"""Seam jump (p95) as a share of the range in which a dimension moves."""
LARGEST_JERK_RATIO = 3.0
LARGEST_ERROR = 0.25
"""Mean absolute error as a share of the range in which a group moves."""
LOWEST_RATE = 0.8
"""Observations a second, as a share of the contract's rate."""
LARGEST_DELAY_S = 0.3
LOWEST_AGREEMENT = 0.8


@dataclass(frozen=True)
class Reason:
    """Why.

    Attributes:
        level: How grave it is.
        sentence: What was found, with its figures.
        moments: What to look at in the episodes: ``hold``, ``chunk`` (refused, or none came), ``observation``
            (missing), ``error``.

    """

    level: str
    sentence: str
    moments: str | None = None


def judge(report: dict[str, Any]) -> dict[str, Any]:
    """The verdict over all else in a report: level, headline, and the reasons (see :class:`Reason`), worst first."""
    reasons = [
        *_data(report),
        *_live(report),
        *_errors(report),
        *_motion(report),
        *_latency(report),
        *_sensitivity(report),
        *(Reason(LOOK, sentence) for sentence in report["warnings"]),
    ]
    reasons.sort(key=lambda reason: -_RANK[reason.level])
    level = reasons[0].level if reasons else GOOD
    return {
        "level": level,
        "headline": HEADLINES[level],
        "reasons": [asdict(reason) for reason in reasons],
    }


def _data(report: dict[str, Any]) -> list[Reason]:
    observations, reasons = report["metrics"]["observations"], []
    silent = [episode for episode in report["episodes"] if not episode["observations"]]
    reasons += [
        Reason(STOP, f"{episode['name']}: there was no observation at all: {episode['last_fault']}")
        for episode in silent
    ]
    wanted = report["run"]["rate_hz"]
    if not silent and observations["rate_hz"] < LOWEST_RATE * wanted:
        reasons.append(
            Reason(
                LOOK,
                f"{figure(observations['rate_hz'])} observations a second came, but the policy was trained at "
                f"{figure(wanted)}: frames were lost, or the camera is slower",
            )
        )
    lost = observations["not_ready"]
    if lost["total"]:
        kinds = ", ".join(f"{reason.replace('_', ' ')} {count}" for reason, count in lost.items() if reason != "total")
        reasons.append(Reason(LOOK, f"observations failed to come {times(lost['total'])} ({kinds})", "observation"))
    return reasons


def _live(report: dict[str, Any]) -> list[Reason]:
    """Chunks of a live node that could not be judged; none where no live chunks were."""
    live = report["run"].get("live_chunks")
    if live is None or not live["without_observation"]:
        return []
    sentence = (
        f"{live['without_observation']} of {live['total']} live chunks belong to no observation of these recordings, "
        "so nothing is said about them: were they recorded from this bag, with this contract?"
    )
    return [Reason(STOP if live["without_observation"] > MOST_STRAY * live["total"] else LOOK, sentence)]


def _errors(report: dict[str, Any]) -> list[Reason]:
    reasons = []
    mae = report["metrics"]["mae"]
    if all(values["all"] is None for values in mae.values()):
        sentence = (
            "the recordings hold no actions to compare with, so nothing is known of the errors: write the key record "
            "into the contract"
        )
        return [Reason(LOOK, sentence)] if report["metrics"]["chunks"] else []
    for group, values in mae.items():
        error = values["all"]
        if error is None:
            reasons.append(Reason(LOOK, f"{group}: nothing was recorded to compare with"))
            continue
        better: list[str] = []
        worse: list[str] = []
        for name, words in (("hold_still", "holding still"), ("repeat_last", "repeating the last action")):
            baseline = report["baselines"][name]["mae"][group]["all"]
            if baseline is None or (baseline == 0.0 and error == 0.0):
                continue
            (better if error < baseline else worse).append(f"{words} ({figure(baseline)})")
        sentence = f"{group}: the mean absolute error is {figure(error)}"
        if worse:
            reasons.append(Reason(STOP, f"{sentence}, no better than {' and '.join(worse)}", "error"))
        else:
            reasons.append(Reason(GOOD, f"{sentence}, better than {' and '.join(better)}" if better else sentence))
        spans = [span for span in report["ranges"][group].values() if span]
        if spans and error > LARGEST_ERROR * sum(spans) / len(spans):
            share = error / (sum(spans) / len(spans))
            reasons.append(Reason(LOOK, f"{group}: this error is {share:.0%} of the range in which it moves", "error"))
    for name, gripper in report["metrics"]["gripper"].items():
        if gripper["agreement"] is not None and gripper["agreement"] < LOWEST_AGREEMENT:
            reasons.append(
                Reason(LOOK, f"{name} is open or closed as demonstrated in only {gripper['agreement']:.0%} of the rows")
            )
        if gripper["absolute_delay_s"] is not None and gripper["absolute_delay_s"] > LARGEST_DELAY_S:
            reasons.append(
                Reason(
                    LOOK, f"{name} opens and closes {figure(gripper['absolute_delay_s'])} s early or late on average"
                )
            )
        if gripper["missed_changes"]:
            reasons.append(Reason(LOOK, f"{name} did not open or close {times(gripper['missed_changes'])}"))
    return reasons


def _motion(report: dict[str, Any]) -> list[Reason]:
    metrics, reasons = report["metrics"], []
    if not metrics["chunks"]:
        return [_no_chunk(report)]
    refused = metrics["refusals"]
    if refused["total"]:
        failed = refused.get(PREDICTION_FAILED, 0)
        kinds = ", ".join(
            f"{'failed' if reason == PREDICTION_FAILED else reason.replace('_', ' ')} {count}"
            for reason, count in refused.items()
            if reason != "total"
        )
        share = refused["total"] / (metrics["chunks"] + failed)
        level = STOP if share > MOST_REFUSED else LOOK
        found = "predictions gave no chunk, or one that was refused" if failed else "chunks were refused"
        reasons.append(Reason(level, f"{share:.0%} of the {found} ({kinds}): they would not be executed", "chunk"))
    if metrics["holds"]["total"]:
        kinds = ", ".join(
            f"{reason.replace('_', ' ')} {count}" for reason, count in metrics["holds"].items() if reason != "total"
        )
        reasons.append(
            Reason(LOOK, f"the robot would have been held {times(metrics['holds']['total'])} ({kinds})", "hold")
        )
    clipped = {joint: count for joint, count in metrics["clips"].items() if joint != "total" and count}
    if clipped:
        worst = max(clipped, key=lambda joint: clipped[joint])
        reasons.append(Reason(LOOK, f"limits changed commands of {', '.join(clipped)}, {worst} most often"))
    for group, seam in metrics["seam_jump"].items():
        spans = [span for span in report["ranges"][group].values() if span]
        if seam["p95"] is not None and spans and seam["p95"] > LARGEST_SEAM * max(spans):
            reasons.append(
                Reason(
                    LOOK,
                    f"{group}: where two chunks meet, the plan jumps by {figure(seam['p95'])} (p95), "
                    f"{seam['p95'] / max(spans):.0%} of the range in which it moves",
                )
            )
    for group, ratio in metrics["jerk_ratio"].items():
        if ratio is not None and ratio > LARGEST_JERK_RATIO:
            reasons.append(Reason(LOOK, f"{group} moves with {figure(ratio)} times the jerk of the demonstration"))
    return reasons


def _no_chunk(report: dict[str, Any]) -> Reason:
    """Why there is nothing to judge."""
    if report["metrics"]["refusals"].get(PREDICTION_FAILED):
        faults = [episode["prediction_fault"] for episode in report["episodes"] if episode["prediction_fault"]]
        return Reason(STOP, f"every prediction failed: {faults[0]}", "chunk")
    if "live_chunks" in report["run"]:
        return Reason(STOP, "no live chunk came while these recordings were played: there is no chunk to judge")
    return Reason(STOP, "the policy was never asked: there is no chunk to judge")


def _latency(report: dict[str, Any]) -> list[Reason]:
    stage = report["latency"]["prediction"]
    if stage["p95_ms"] is None:
        return []
    covered_ms = 1e3 * report["run"]["horizon"] / report["run"]["rate_hz"]
    sentence = f"a prediction takes {figure(stage['p95_ms'])} ms (p95) here, and a chunk covers {figure(covered_ms)} ms"
    if stage["p95_ms"] >= covered_ms:
        return [Reason(STOP, f"{sentence}: it would have run out before it is there")]
    return [Reason(LOOK if stage["p95_ms"] > covered_ms / 2 else GOOD, sentence)]


def _sensitivity(report: dict[str, Any]) -> list[Reason]:
    reasons = []
    for name, result in report["sensitivity"].items():
        change = result["change_normalised"]
        if result["failed"]:
            asked = result["probes"] + result["failed"]
            failed = f"{result['failed']} of {asked} probes failed: {result['fault']}"
            reasons.append(Reason(LOOK, f"sensitivity to {name.replace('_', ' ')}: {failed}"))
        if change is None or name == "other_seed":
            continue
        share = f"the actions change by {change:.1%} of half the trained range"
        if name == "other_instruction":
            text = f"another instruction: {share}"
            if change < LEAST_EFFECT:
                reasons.append(Reason(LOOK, f"{text}, so the prompt has no effect"))
        elif name.startswith("black_"):
            camera = name.removeprefix("black_")
            if change < LEAST_EFFECT:
                reasons.append(Reason(LOOK, f"camera {camera} made black: {share}, so the policy does not look at it"))
        elif change < LEAST_EFFECT:
            reasons.append(Reason(LOOK, f"the state frozen: {share}, so the policy does not feel where the robot is"))
    return reasons
