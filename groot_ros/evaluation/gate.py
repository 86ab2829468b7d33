"""``--fail-if 'mae.single_arm > 2.0'``: conditions on a report, for a lab's CI."""

from __future__ import annotations

import difflib
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from groot_ros.errors import EvaluationError

OPERATORS: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
}
_CONDITION = re.compile(r"^\s*(?P<name>[^\s<>=!]+)\s*(?P<operator>>=|<=|==|!=|>|<)\s*(?P<value>\S+)\s*$")
SUMS = ("all", "total")
"""Keys that stand for the whole where a name ends at a group of figures."""


@dataclass(frozen=True)
class Condition:
    """One condition on one figure."""

    name: str
    operator: str
    value: float
    text: str

    @classmethod
    def parse(cls, text: str) -> Condition:
        """Read a condition.

        Raises:
            EvaluationError: It is none.

        """
        match = _CONDITION.match(text)
        try:
            value = float(match["value"]) if match else None
        except ValueError:
            value = None
        if match is None or value is None:
            msg = (
                f"--fail-if {text!r} is no condition; wanted a name, one of {' '.join(OPERATORS)}, and a number, "
                "as 'mae.single_arm > 2.0'"
            )
            raise EvaluationError(msg)
        return cls(match["name"], match["operator"], value, text.strip())

    def holds(self, report: dict[str, Any]) -> tuple[bool, float | None]:
        """Whether it holds for a report, and the figure; a figure that was not measured fulfils every condition.

        A gate that passes because nothing was measured would be worth nothing.

        Raises:
            EvaluationError: The report has no such figure.

        """
        figures = figures_of(report)
        name = next((one for one in (self.name, *(f"{self.name}.{end}" for end in SUMS)) if one in figures), None)
        if name is None:
            alike = difflib.get_close_matches(self.name, figures, n=5, cutoff=0.4)
            msg = f"--fail-if {self.text!r}: the report has no figure {self.name!r}; similar are {', '.join(alike)}"
            raise EvaluationError(msg if alike else msg.rsplit(";", 1)[0])
        found = figures[name]
        return found is None or OPERATORS[self.operator](found, self.value), found


def figures_of(report: dict[str, Any]) -> dict[str, float | None]:
    """All figures of a report by dotted name: those of ``metrics`` without a prefix, all others with theirs."""
    figures: dict[str, float | None] = {}
    _gather(report["metrics"], "", figures)
    for part in ("baselines", "sensitivity", "latency"):
        _gather(report[part], f"{part}.", figures)
    return figures


def _gather(values: dict[str, Any], prefix: str, figures: dict[str, float | None]) -> None:
    for name, value in values.items():
        if isinstance(value, dict):
            _gather(value, f"{prefix}{name}.", figures)
        elif value is None or isinstance(value, int | float):
            figures[f"{prefix}{name}"] = value
