"""The report as one HTML file that needs nothing else: pictures and plots are inside."""

from __future__ import annotations

import base64
import io
from pathlib import Path

import numpy as np
from jinja2 import Environment, PackageLoader
from matplotlib.figure import Figure

from groot_ros.dataset.files import whole_file
from groot_ros.dataset.modality import ModalitySlice
from groot_ros.dataset.quality.finding import numbers
from groot_ros.dataset.quality.report import QualityReport
from groot_ros.dataset.quality.rows import dimension_names
from groot_ros.dataset.quality.text import verdict

MOST_EPISODES = 24  # with pictures and plots: the first ones with findings, then others
_PLOTTED_ROWS = 1000


def write_html(report: QualityReport, path: Path) -> None:
    """Write the report to ``path``, whole or not at all.

    Raises:
        DatasetError: The file cannot be written.

    """
    environment = Environment(loader=PackageLoader("groot_ros.dataset.quality", "."), autoescape=True)
    shown = _shown_episodes(report)
    page = environment.get_template("report.html.j2").render(
        dataset=report.dataset,
        findings=[(finding, numbers(finding.episodes)) for finding in report.findings],
        verdict=verdict(report),
        has_errors=report.has_errors,
        horizon=report.horizon,
        lengths=_lengths_plot(report),
        ranges={name: _ranges_plot(report, name) for name in report.columns},
        episodes=[
            (report.dataset.episodes[index], _pictures(report, index), _episode_plot(report, index)) for index in shown
        ],
        hidden=len(report.dataset.episodes) - len(shown),
    )
    with whole_file(path) as temporary:
        temporary.write_text(page, encoding="utf-8")


def _shown_episodes(report: QualityReport) -> list[int]:
    count = len(report.dataset.episodes)
    flagged = [index for finding in report.findings for index in finding.episodes]
    spread = np.linspace(0, count - 1, min(count, MOST_EPISODES)).astype(int).tolist() if count else []
    unreadable = {index for finding in report.findings if finding.check == "rows" for index in finding.episodes}
    wanted = dict.fromkeys([*flagged[: MOST_EPISODES // 2], *spread, *flagged])
    return sorted([index for index in wanted if index not in unreadable][:MOST_EPISODES])


def _pictures(report: QualityReport, episode: int) -> dict[str, list[str]]:
    return {
        facts.feature: [_embedded(jpeg, "jpeg") for jpeg in facts.thumbnails]
        for facts in report.cameras
        if facts.episode == episode
    }


def _embedded(image: bytes, kind: str) -> str:
    return f"data:image/{kind};base64," + base64.b64encode(image).decode()


def _plot(figure: Figure) -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=80)
    return _embedded(buffer.getvalue(), "png")


def _lengths_plot(report: QualityReport) -> str:
    figure = Figure(figsize=(8, 2.2), layout="constrained")
    axes = figure.add_subplot()
    axes.bar(
        range(len(report.dataset.episodes)),
        [entry.length / report.dataset.info.fps for entry in report.dataset.episodes],
    )
    axes.set(xlabel="episode", ylabel="seconds")
    return _plot(figure)


def _ranges_plot(report: QualityReport, column: str) -> str:
    """Show how the values of each dimension spread over its range: a bar from q01 to q99, the median as a dot."""
    values = report.columns[column].astype(np.float64)
    names = dimension_names(report.dataset, ModalitySlice(0, values.shape[1], column))
    low, middle, high = np.quantile(values, (0.01, 0.5, 0.99), axis=0)
    places = np.arange(values.shape[1])
    figure = Figure(figsize=(8, 2.6), layout="constrained")
    axes = figure.add_subplot()
    axes.vlines(places, values.min(axis=0), values.max(axis=0), color="0.75", linewidth=2)
    axes.vlines(places, low, high, color="tab:blue", linewidth=6)
    axes.plot(places, middle, "o", color="black", markersize=3)
    axes.set_xticks(places, names, rotation=90, fontsize=7)
    axes.set_ylabel("dataset units")
    return _plot(figure)


def _episode_plot(report: QualityReport, episode: int) -> str:
    """Show state (thin) and action (thick) of an episode over time, one panel a state group."""
    dataset = report.dataset
    groups = list(dataset.modality.action)
    figure = Figure(figsize=(8, 1.4 * max(1, len(groups))), layout="constrained")
    panels = np.atleast_1d(figure.subplots(max(1, len(groups)), 1, sharex=True))
    for axes, key in zip(panels, groups, strict=False):
        action = dataset.action(episode, key)
        step = max(1, len(action) // _PLOTTED_ROWS)
        seconds = np.arange(len(action))[::step] / dataset.info.fps
        axes.set_prop_cycle(None)
        axes.plot(seconds, action[::step], linewidth=1.2)
        if key in dataset.modality.state:
            axes.set_prop_cycle(None)
            axes.plot(seconds, dataset.state(episode, key)[::step], linewidth=0.6, linestyle=":")
        axes.set_ylabel(key, fontsize=7)
        axes.tick_params(labelsize=6)
    panels[-1].set_xlabel("seconds; action solid, state dotted", fontsize=7)
    return _plot(figure)
