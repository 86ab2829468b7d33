"""``metrics.json``: everything that an evaluation found, under keys that are documented in docs/evaluation.md."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from groot_ros.errors import EvaluationError
from groot_ros.evaluation.evaluation import HOLD_STILL, POLICY, REPEAT_LAST, Evaluation
from groot_ros.evaluation.metrics import Array, demonstrated_ranges, latency_metrics, motion_metrics
from groot_ros.evaluation.pilot import PREDICTION_FAILED
from groot_ros.evaluation.replay import Played
from groot_ros.evaluation.verdict import judge
from groot_ros.observation import NANOSECONDS_PER_SECOND

SCHEMA = "groot_ros.evaluation/1"
METRICS_FILE, ACTIONS_FILE, PAGE_FILE = "metrics.json", "actions.parquet", "report.html"


def build_report(evaluation: Evaluation, run: dict[str, Any], warnings: list[str]) -> dict[str, Any]:
    """The content of ``metrics.json``.

    Args:
        evaluation: What was found.
        run: What was evaluated: checkpoint, contract, recordings, seed, latency ...
        warnings: Sentences on what may make the result worth less: untested versions, states out of range.

    """
    period_s = evaluation.contract.period_s
    ranges = demonstrated_ranges(evaluation.logs(POLICY))
    played = [episode.played for episode in evaluation.episodes]
    not_ready: Counter[str] = sum((one.not_ready for one in played), Counter())
    report: dict[str, Any] = {
        "schema": SCHEMA,
        "run": run,
        "metrics": {
            **motion_metrics(evaluation.logs(POLICY), evaluation.scale, period_s, ranges),
            "observations": {
                "count": sum(one.observations for one in played),
                "rate_hz": _mean([one.observation_rate_hz for one in played]),
                "not_ready": {"total": sum(not_ready.values()), **dict(sorted(not_ready.items()))},
            },
            "duration_s": sum(one.duration_s for one in played),
        },
        "baselines": {
            player: motion_metrics(evaluation.logs(player), evaluation.scale, period_s, ranges)
            for player in (HOLD_STILL, REPEAT_LAST)
        },
        "sensitivity": evaluation.sensitivity,
        "latency": latency_metrics(evaluation.logs(POLICY)),
        "episodes": [
            {
                "name": episode.name,
                "duration_s": episode.played.duration_s,
                "first_observation_s": _first_observation_s(episode.played),
                "observations": episode.played.observations,
                "not_ready": dict(sorted(episode.played.not_ready.items())),
                "last_fault": "" if episode.played.observations else episode.played.last_fault,
                "prediction_fault": _prediction_fault(episode.played),
                "messages": episode.played.messages,
                "metrics": motion_metrics([episode.logs[POLICY]], evaluation.scale, period_s, ranges),
                "baselines": {
                    player: {"mae": motion_metrics([episode.logs[player]], evaluation.scale, period_s, ranges)["mae"]}
                    for player in (HOLD_STILL, REPEAT_LAST)
                },
            }
            for episode in evaluation.episodes
        ],
        "ranges": _by_name(evaluation, ranges),
        "warnings": warnings,
    }
    report["verdict"] = judge(report)
    return report


def write_json(report: dict[str, Any], path: Path) -> None:
    """Write ``metrics.json``; the same report gives the same bytes."""
    temporary = path.with_suffix(".part")
    temporary.write_text(json.dumps(report, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    temporary.replace(path)


def read_json(folder: Path) -> dict[str, Any]:
    """Read the report of a folder.

    Raises:
        EvaluationError: It is missing, damaged, or of another schema.

    """
    path = folder / METRICS_FILE if folder.is_dir() else folder
    try:
        report = json.loads(path.read_text())
    except OSError as error:
        msg = f"{path} cannot be read: {error.strerror}; wanted the folder that `evaluate --output` wrote"
        raise EvaluationError(msg) from error
    except ValueError as error:
        msg = f"{path} is no JSON: {error}"
        raise EvaluationError(msg) from error
    schema = report.get("schema") if isinstance(report, dict) else None
    if schema != SCHEMA:
        msg = f"{path}: the schema is {schema!r}, wanted {SCHEMA!r}; evaluate again with this version"
        raise EvaluationError(msg)
    result: dict[str, Any] = report
    return result


def _first_observation_s(played: Played) -> float | None:
    if played.first_observation_ns is None:
        return None
    return (played.first_observation_ns - played.start_ns) / NANOSECONDS_PER_SECOND


def _prediction_fault(played: Played) -> str:
    """Why the first prediction that failed gave no chunk; empty where none did."""
    return next((moment.sentence for moment in played.moments if moment.reason == PREDICTION_FAILED), "")


def _by_name(evaluation: Evaluation, ranges: Array) -> dict[str, dict[str, float | None]]:
    """By how much each dimension moves in the recordings: the measure by which an error is large or small."""
    return {
        group: {
            name: float(value) if np.isfinite(value) else None
            for name, value in zip(evaluation.columns.groups[group], ranges[part], strict=True)
        }
        for group, part in evaluation.columns.slices.items()
    }


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0
