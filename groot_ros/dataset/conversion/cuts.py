"""``episodes.csv``: which parts of which bags are episodes, what was asked for, and whether it succeeded."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from groot_ros.errors import DatasetError

COLUMNS = ("bag", "start_s", "end_s", "instruction", "success")
WORDS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False, "": None}


@dataclass(frozen=True)
class Cut:
    """A part of a bag.

    Attributes:
        bag: The bag.
        start_s: Where it begins, seconds after the bag's first message.
        end_s: Where it ends; None for the bag's end.
        instruction: The task in words; None takes the recorded one, or the contract's.
        success: Whether the task was done; None where nobody said.

    """

    bag: Path
    start_s: float = 0.0
    end_s: float | None = None
    instruction: str | None = None
    success: bool | None = None


def read_cuts(path: Path, bags: Sequence[Path]) -> list[Cut]:
    """Read ``episodes.csv``: columns bag, start_s, end_s, instruction, success; an empty cell says nothing.

    Args:
        path: The file.
        bags: The bags to which it may refer, by name or by path (relative to the file).

    Raises:
        DatasetError: A column or a bag is not known, or a cell cannot be read; the line is named.

    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, skipinitialspace=True)
            found = tuple(name.strip() for name in reader.fieldnames or ())
            if "bag" not in found or set(found) - set(COLUMNS):
                msg = f"{path}: found the columns {', '.join(found) or 'none'}; wanted {', '.join(COLUMNS)}"
                raise DatasetError(msg)
            reader.fieldnames = list(found)
            return [_cut(line, f"{path}, line {number}", path.parent, bags) for number, line in enumerate(reader, 2)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        msg = f"{path} cannot be read as CSV: {error}"
        raise DatasetError(msg) from error


def _cut(line: dict[str, str | None], where: str, folder: Path, bags: Sequence[Path]) -> Cut:
    cells = {name: (value or "").strip() for name, value in line.items() if isinstance(name, str)}
    success = cells.get("success", "").lower()
    if success not in WORDS:
        msg = f"{where}: success is {success!r}; write true, false or nothing"
        raise DatasetError(msg)
    cut = Cut(
        bag=_bag(cells["bag"], where, folder, bags),
        start_s=_seconds(cells.get("start_s", ""), f"{where}: start_s") or 0.0,
        end_s=_seconds(cells.get("end_s", ""), f"{where}: end_s"),
        instruction=cells.get("instruction") or None,
        success=WORDS[success],
    )
    if cut.end_s is not None and cut.end_s <= cut.start_s:
        msg = f"{where}: the episode ends at {cut.end_s:g} s, but begins at {cut.start_s:g} s"
        raise DatasetError(msg)
    return cut


def _seconds(text: str, where: str) -> float | None:
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        msg = f"{where} is {text!r}; write seconds after the bag's first message"
        raise DatasetError(msg)
    return value


def _bag(name: str, where: str, folder: Path, bags: Sequence[Path]) -> Path:
    wanted = folder / name
    matches = [bag for bag in bags if bag.name == name or bag.resolve() == wanted.resolve()]
    if len(matches) != 1:
        known = ", ".join(bag.name for bag in bags)
        msg = f"{where}: bag {name!r} names {len(matches)} of the bags that were given: {known}"
        raise DatasetError(msg)
    return matches[0]
