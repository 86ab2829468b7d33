"""How long a prediction takes by the recording's clock: nothing, a fixed time, or what was measured."""

from __future__ import annotations

from dataclasses import dataclass

from groot_ros.errors import EvaluationError
from groot_ros.observation import NANOSECONDS_PER_SECOND

MEASURED = "measured"


@dataclass(frozen=True)
class Latency:
    """The simulated latency.

    Attributes:
        fixed_s: Seconds; None takes the time that each prediction really took, which differs from run to run.

    """

    fixed_s: float | None = 0.0

    @classmethod
    def parse(cls, text: str) -> Latency:
        """Read ``0``, ``0.12`` or ``measured``.

        Raises:
            EvaluationError: Neither.

        """
        if text == MEASURED:
            return cls(None)
        try:
            seconds = float(text)
        except ValueError:
            seconds = -1.0
        if not 0.0 <= seconds < float("inf"):
            msg = f"latency: found {text!r}; allowed are seconds from 0 on, as 0.12, or {MEASURED}"
            raise EvaluationError(msg)
        return cls(seconds)

    def of(self, measured_s: float) -> int:
        """The latency of a prediction that really took so long, nanoseconds."""
        return round((measured_s if self.fixed_s is None else self.fixed_s) * NANOSECONDS_PER_SECOND)

    def __str__(self) -> str:
        """As `parse` reads it."""
        return MEASURED if self.fixed_s is None else f"{self.fixed_s:g}"
