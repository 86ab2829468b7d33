"""The text that ``checkpoint inspect`` prints."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

_NARROWEST = 80
_MOST_NUMBERS = 3


def print_report(report: dict[str, Any]) -> None:
    """Print a checkpoint's summary for a person: 80 columns, plain text where the output is a pipe."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=_NARROWEST)
    _heading(console, "Checkpoint")
    fps = "not recorded: the contract's rate cannot be checked" if report["fps"] is None else f"{report['fps']:g} Hz"
    _line(console, "path", report["path"])
    _line(console, "written by", {"nvidia": "NVIDIA's layout", "lerobot": "LeRobot"}[report["written_by"]])
    _line(console, "row rate", fps)
    _line(console, "backbone", report["backbone"])
    _network(console, report["network"])
    _images(console, report["images"])
    for tag, description in report["tags"].items():
        _tag(console, tag, description, report["images"])
    untrained = report["tags_that_need_fine_tuning"]
    if untrained:
        _heading(console, "Tags that need fine-tuning")
        console.print(Text(", ".join(untrained)))


def _heading(console: Console, text: str) -> None:
    console.print(Text(f"\n{text}", style="bold"))


def _line(console: Console, name: str, value: str) -> None:
    table = Table.grid(padding=(0, 2))
    table.add_column(width=16)
    table.add_column(overflow="fold")
    table.add_row(Text(f"  {name}"), Text(value))
    console.print(table)


def _network(console: Console, network: dict[str, Any]) -> None:
    _heading(console, "Network")
    for part, number in network["parameters"].items():
        _line(console, "", f"{number / 1e6:.2f} M  {part}")
    stored = ", ".join(f"{number / 1e6:.2f} M as {dtype}" for dtype, number in network["stored_as"].items())
    memory = ", ".join(f"{dtype} {_size(size)}" for dtype, size in network["memory_bytes"].items())
    _line(console, "parameters", f"{network['total'] / 1e6:.2f} M (in the files: {stored})")
    _line(console, "memory", f"{memory} (weights alone)")
    _line(console, "steps", f"{network['denoising_steps']} denoising steps, {network['action_horizon']} rows")


def _images(console: Console, images: dict[str, Any]) -> None:
    _heading(console, "Images")
    _line(console, "geometry", images["geometry"])
    camera, seen = images["camera_size"], images["network_size"]
    _line(
        console,
        "a frame",
        f"{camera[0]}x{camera[1]} -> {seen[0]}x{seen[1]} pixels, {images['tokens']} image tokens (another camera: "
        "--camera-size)",
    )


def _tag(console: Console, tag: str, description: dict[str, Any], images: dict[str, Any]) -> None:
    _heading(console, f"Tag {tag}")
    if "refused" in description:
        _line(console, "cannot be used", description["refused"])
        return
    history = description["camera_history"]
    frames = "the present frame" if len(history) == 1 else f"{len(history)} frames each, at rows {_rows(history)}"
    tokens = images["tokens"] * len(history) * len(description["cameras"])
    order = " (in this order)" if len(description["cameras"]) > 1 else ""
    _line(console, "cameras", ", ".join(description["cameras"]) + order)
    _line(console, "history", f"{frames}; {tokens} image tokens together")
    if description["state_history"] != [0]:
        _line(console, "state history", f"rows {_rows(description['state_history'])}")
    _line(console, "instruction", description["language"])
    _line(console, "horizon", f"{description['horizon']} rows; projector {description['projector']}")
    console.print()
    console.print(_groups("state", description["state"]))
    console.print()
    console.print(_groups("action", description["actions"]))


def _groups(kind: str, groups: list[dict[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=True, padding=(0, 1))
    table.add_column(f"{kind} group", overflow="fold", ratio=3)
    table.add_column("dims", justify="right")
    table.add_column("meaning" if kind == "action" else "", overflow="fold", ratio=3)
    table.add_column("scaled by", no_wrap=True)
    table.add_column("range", overflow="fold", ratio=4)
    for group in groups:
        table.add_row(
            Text(group["group"]),
            str(group["dimensions"]),
            Text(group.get("representation", "")),
            group["normalisation"],
            _ranges(group["low"], group["high"]),
        )
    return table


def _ranges(low: list[float], high: list[float]) -> str:
    shown = [f"{a:.3g}..{b:.3g}" for a, b in zip(low, high, strict=True)]
    if len(shown) > _MOST_NUMBERS:
        shown = [*shown[: _MOST_NUMBERS - 1], "...", shown[-1]]
    return "  ".join(shown)


def _rows(indices: list[int]) -> str:
    return ", ".join(str(index) for index in indices)


def _size(number: int) -> str:
    return f"{number / 1e9:.2f} GB" if number >= 1e9 else f"{number / 1e6:.1f} MB"
