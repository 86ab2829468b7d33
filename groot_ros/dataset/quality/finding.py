"""One thing that the report has to say about a dataset."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum

MOST_SENTENCES = 3
"""Of one kind and subject."""


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
    """Join findings of the same kind and subject in several episodes into one, and put errors first.

    Where their sentences differ, the first `MOST_SENTENCES` are told, each with its episodes.
    """
    kinds: dict[tuple[Severity, str, str, str], list[Finding]] = {}
    for finding in findings:
        sentence = "" if finding.episodes else finding.sentence
        kinds.setdefault((finding.severity, finding.check, finding.subject, sentence), []).append(finding)
    order = list(Severity)
    return sorted(map(_joined, kinds.values()), key=lambda finding: order.index(finding.severity))


def _joined(findings: list[Finding]) -> Finding:
    sentences: dict[str, list[int]] = {}
    for finding in findings:
        sentences.setdefault(finding.sentence, []).extend(finding.episodes)
    episodes = tuple(episode for finding in findings for episode in finding.episodes)
    if len(sentences) == 1:
        return replace(findings[0], episodes=episodes)
    told = [f"{sentence} (episode {numbers(found)})" for sentence, found in list(sentences.items())[:MOST_SENTENCES]]
    others = [episode for found in list(sentences.values())[MOST_SENTENCES:] for episode in found]
    if others:
        told.append(f"and more like these (episode {numbers(others)})")
    return replace(findings[0], sentence="; ".join(told), episodes=episodes)


def numbers(values: Iterable[int]) -> str:
    """Write whole numbers in few characters: ``0-5, 7``."""
    runs: list[list[int]] = []
    for value in sorted(set(values)):
        if runs and value == runs[-1][1] + 1:
            runs[-1][1] = value
        else:
            runs.append([value, value])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)
