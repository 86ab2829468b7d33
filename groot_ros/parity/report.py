"""The report of a comparison: Markdown that a person can paste into an issue, or a table in a terminal."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import distributions

from rich.console import Console
from rich.table import Table

from groot_ros.parity.check import TagReport
from groot_ros.parity.comparison import Comparison

_COLUMNS = ("part", "quantity", "shape", "largest difference", "mean", "worst at", "tolerance", "result")
_VERSIONED = ("groot_ros", "torch", "transformers", "tokenizers", "numpy", "scipy", "opencv-python-headless")


def versions_here() -> dict[str, str]:
    """Versions on this side."""
    installed = {(each.metadata["Name"] or "").lower(): each.version for each in distributions()}
    found = {name.removesuffix("-python-headless"): installed[name] for name in _VERSIONED if name in installed}
    return {"python": platform.python_version(), **found}


def markdown(reports: Sequence[TagReport], device: str) -> str:
    """The whole report as Markdown."""
    lines = [f"## GR00T N1.7 parity: {verdict(reports)}", "", f"Here: {_listed(versions_here())}; on {device}.", ""]
    for report in reports:
        lines += [f"### {report.artifact.tag}: {'pass' if report.passed else 'FAIL'}", "", _other_side(report), ""]
        if report.comparisons:
            lines += [f"| {' | '.join(_COLUMNS)} |", "|" + " --- |" * len(_COLUMNS)]
            lines += [f"| {' | '.join(_cells(comparison))} |" for comparison in report.comparisons]
            lines.append("")
        lines += [f"- {line}" for line in _remarks(report)]
        lines += [""] if _remarks(report) else []
    return "\n".join(lines)


def print_report(reports: Sequence[TagReport], device: str) -> None:
    """The same in a terminal."""
    console = Console()
    for report in reports:
        table = Table(title=f"{report.artifact.tag}\n{_other_side(report)}", title_justify="left", expand=False)
        for column in _COLUMNS:
            table.add_column(column, justify="right" if column in ("largest difference", "mean") else "left")
        for comparison in report.comparisons:
            table.add_row(*_cells(comparison), style=None if comparison.passed else "bold red")
        console.print(table)
        for line in _remarks(report):
            console.print(f"  {line}", markup=False)
    console.print(f"Here: {_listed(versions_here())}; on {device}.", markup=False)
    console.print(f"GR00T N1.7 parity: {verdict(reports)}", style="bold", markup=False)


def verdict(reports: Sequence[TagReport]) -> str:
    """One line for all."""
    failed = [report.artifact.tag for report in reports if not report.passed]
    if not failed:
        return f"pass, {len(reports)} of {len(reports)} tags"
    return f"FAIL, {len(failed)} of {len(reports)} tags: {', '.join(failed)}"


def _other_side(report: TagReport) -> str:
    artifact = report.artifact
    details = [_listed(each) for each in (artifact.versions, artifact.kernels) if each]
    return f"There: {'; '.join([f'{artifact.producer}, on {artifact.device}', *details])} ({artifact.path.name})."


def _remarks(report: TagReport) -> list[str]:
    parting = [f"First stage at which the two part: {report.parting}"] if report.parting is not None else []
    remarks = [f"{comparison.quantity}: {comparison.remark}" for comparison in report.comparisons if comparison.remark]
    return parting + remarks + report.notes


def _cells(comparison: Comparison) -> list[str]:
    return [
        comparison.part,
        comparison.quantity,
        "x".join(str(size) for size in comparison.shape) or "scalar",
        f"{comparison.largest:.2g}",
        f"{comparison.mean:.2g}",
        "[" + ", ".join(str(index) for index in comparison.worst) + "]" if comparison.worst else "",
        comparison.tolerance,
        "pass" if comparison.passed else "FAIL",
    ]


def _listed(versions: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {number}" for name, number in versions.items())
