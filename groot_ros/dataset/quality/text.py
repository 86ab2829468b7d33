"""The report in a terminal."""

from __future__ import annotations

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from groot_ros.dataset.quality.finding import Severity, numbers
from groot_ros.dataset.quality.report import QualityReport

_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.NOTE: "cyan"}


def print_report(report: QualityReport, console: Console) -> None:
    """Print what a person should know."""
    console.print(render(report))


def render(report: QualityReport) -> RenderableType:
    """Return the report for a rich console."""
    dataset = report.dataset
    seconds = dataset.total_frames / dataset.info.fps
    head = Text.assemble(
        (str(dataset.root), "bold"),
        f"\nLeRobot {dataset.info.version.value}, {dataset.info.robot_type or 'no robot named'}: "
        f"{len(dataset.episodes)} episodes, {dataset.total_frames} rows at {dataset.info.fps:g} Hz ({seconds:.0f} s), "
        f"{len(dataset.tasks)} tasks, cameras {', '.join(dataset.modality.video) or 'none'}\n",
    )
    if not report.findings:
        return Group(head, Text("nothing to complain about", style="green"))
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("", "check", "where", "found", "episodes"):
        table.add_column(title, overflow="fold")
    for finding in report.findings:
        table.add_row(
            Text(finding.severity.value, style=_STYLES[finding.severity]),
            finding.check,
            Text(finding.subject),
            Text(finding.sentence),
            numbers(finding.episodes) if finding.episodes else "all",
        )
    return Group(head, table, Text(f"\n{verdict(report)}", style="bold"))


def verdict(report: QualityReport) -> str:
    """Return the report in one sentence."""
    errors, warnings = report.count(Severity.ERROR), report.count(Severity.WARNING)
    if errors:
        return f"{errors} errors, {warnings} warnings: mend the errors before training"
    return f"no errors, {warnings} warnings"
