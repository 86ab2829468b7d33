"""One thing that the report has to say about a dataset."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum


class Severity(Enum):
    """How bad a finding is: an error spoils training or stops it, a warning makes it worse than it could be."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True)
class Finding:
    """One thing found.

    Attributes:
        severity: How bad it is.
        check: Name of the check in few words; the same for all findings of a kind.
        subject: The column, camera or file it is about.
        sentence: What was found and how to mend it.
        episodes: The episodes it is about; empty where it is about the dataset.

    """

    severity: Severity
    check: str
    subject: str
    sentence: str
    episodes: tuple[int, ...] = ()


def merge(findings: Iterable[Finding]) -> list[Finding]:
    """Join findings of the same kind and subject in several episodes into one, and put errors first."""
    merged: dict[tuple[Severity, str, str, bool], Finding] = {}
    for finding in findings:
        key = (finding.severity, finding.check, finding.subject, bool(finding.episodes))
        known = merged.get(key)
        merged[key] = replace(known, episodes=known.episodes + finding.episodes) if known else finding
    order = list(Severity)
    return sorted(merged.values(), key=lambda finding: order.index(finding.severity))


def numbers(values: Iterable[int]) -> str:
    """Write whole numbers in few characters: ``0-5, 7``."""
    runs: list[list[int]] = []
    for value in sorted(set(values)):
        if runs and value == runs[-1][1] + 1:
            runs[-1][1] = value
        else:
            runs.append([value, value])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)
