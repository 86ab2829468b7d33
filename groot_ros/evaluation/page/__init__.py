"""``report.html``: one file that opens offline, with everything inside."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment
from markupsafe import Markup

from groot_ros.evaluation.evaluation import HOLD_STILL, POLICY, REPEAT_LAST, Evaluation
from groot_ros.evaluation.sentences import figure

ABSENT = "-"


def write_page(report: dict[str, Any], evaluation: Evaluation, path: Path) -> None:
    """Write the page.

    Args:
        report: The content of ``metrics.json``.
        evaluation: What was found, for the curves and pictures.
        path: The file.

    """
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["figure"] = lambda value: ABSENT if value is None else figure(value)
    environment.filters["share"] = lambda value: ABSENT if value is None else f"{value:.1%}"
    environment.filters["duration"] = _duration
    environment.globals["share_of_range"] = lambda group, name, error: _share_of_range(report, group, name, error)
    order = worst_first(report)
    data = {
        "columns": evaluation.columns.names,
        "errors": [
            None if error is None else figure(error)
            for values in report["metrics"]["mae"].values()
            for name, error in values.items()
            if name != "all"
        ],
        "period": evaluation.contract.period_s,
        "horizon": evaluation.horizon,
        "horizon_errors": {
            group: {
                POLICY: rows,
                **{player: report["baselines"][player]["mae_by_row"][group] for player in (HOLD_STILL, REPEAT_LAST)},
            }
            for group, rows in report["metrics"]["mae_by_row"].items()
        },
        "episodes": [{"name": episode.name, **episode.view} for episode in evaluation.episodes],
        "order": order,
        "first": order[0] if order else 0,
    }
    changes = [result["change_normalised"] or 0.0 for result in report["sensitivity"].values()]
    folder = resources.files(__package__)
    template = environment.from_string(folder.joinpath("report.html.j2").read_text(encoding="utf-8"))
    text = template.render(
        report=report,
        order=order,
        sensitivity_max=max(changes, default=0.0),
        css=Markup(folder.joinpath("page.css").read_text(encoding="utf-8")),
        javascript=Markup(folder.joinpath("page.js").read_text(encoding="utf-8")),
        data=Markup(json.dumps(data, allow_nan=False).replace("</", "<\\/")),
    )
    temporary = path.with_suffix(".part")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


def _share_of_range(report: dict[str, Any], group: str, name: str, error: float | None) -> float | None:
    """An error by the way that its dimension goes in the recordings; of a group, by the mean of these ways."""
    ways = report["ranges"][group]
    known = [way for dimension, way in ways.items() if way and name in {dimension, "all"}]
    return error / (sum(known) / len(known)) if known and error is not None else None


def worst_first(report: dict[str, Any]) -> list[int]:
    """Numbers of the episodes: those without an observation first, then by their error as a share of the baselines'."""

    def badness(episode: dict[str, Any]) -> tuple[bool, float, int]:
        shares = []
        for group, values in episode["metrics"]["mae"].items():
            baseline = episode["baselines"][HOLD_STILL]["mae"][group]["all"]
            if values["all"] is not None and baseline:
                shares.append(values["all"] / baseline)
        holds = episode["metrics"]["holds"]["total"] + episode["metrics"]["refusals"]["total"]
        return not episode["observations"], sum(shares) / len(shares) if shares else 0.0, holds

    episodes = report["episodes"]
    return sorted(range(len(episodes)), key=lambda number: badness(episodes[number]), reverse=True)


def _duration(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:.1f} min"
