"""Why there is no observation: a reason that programs compare, the stream, and a sentence for the person."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Reason(Enum):
    """Why there is no observation; the values are stable and stand in diagnostics and reports."""

    CLOCK_JUMPED_BACK = "clock_jumped_back"
    MISSING = "missing"
    STALE = "stale"
    ZERO_STAMP = "zero_stamp"
    FUTURE_STAMP = "future_stamp"
    OUT_OF_ORDER = "out_of_order"
    BAD_MESSAGE = "bad_message"
    UNMATCHED = "unmatched"
    HISTORY_GAP = "history_gap"
    SIZE_CHANGED = "size_changed"


@dataclass(frozen=True)
class NotReady:
    """There is no observation now.

    Attributes:
        reason: Why.
        stream: Which stream is to blame, as ``video.front`` or ``state.single_arm``; ``clock`` for the clock.
        sentence: The same for a person, with figures.

    """

    reason: Reason
    stream: str
    sentence: str

    def __str__(self) -> str:
        """The sentence."""
        return self.sentence
