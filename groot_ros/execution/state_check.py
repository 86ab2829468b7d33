"""Whether a measured state can belong to what the policy was trained on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from groot_ros.checkpoint.statistics import KeyStatistics

WARN_BEYOND = 0.25
"""Share of the trained range by which a value may lie outside without a word."""
REFUSE_BEYOND = 3.0
"""Beyond this many ranges it is no unusual posture but another unit, sign or joint."""
DEGREES_PER_RADIAN = 180.0 / np.pi


class StateFit(Enum):
    """How well a state fits the statistics."""

    INSIDE = "inside"
    UNUSUAL = "unusual"
    IMPOSSIBLE = "impossible"


def check_state(
    state: Mapping[str, NDArray[np.floating]],
    statistics: Mapping[str, KeyStatistics],
    names: Mapping[str, Sequence[str]],
) -> tuple[StateFit, list[str]]:
    """Compare a state with the range of the training data.

    Args:
        state: State groups in the policy's units ``(T, D)``, newest last.
        statistics: Statistics of the state groups.
        names: Dimension names of the state groups.

    Returns:
        The worst fit, and one sentence for each dimension that lies outside.

    """
    worst, sentences = StateFit.INSIDE, []
    for key, values in state.items():
        if key not in statistics or np.size(values) == 0:
            continue
        newest = np.asarray(values, dtype=np.float64)[-1]
        lower, upper = statistics[key].min, statistics[key].max
        for name, value, low, high in zip(names[key], newest, lower, upper, strict=True):
            outside = max(low - value, value - high)
            span = high - low
            # A dimension that never moved in training has no range; half its own size stands for one.
            span = span if span > 0.0 else max(abs(high) / 2.0, 1e-6)
            if outside <= WARN_BEYOND * span:
                continue
            impossible = outside > REFUSE_BEYOND * span
            worst = StateFit.IMPOSSIBLE if impossible or worst is StateFit.IMPOSSIBLE else StateFit.UNUSUAL
            hint = _hint(value, low, high)
            sentences.append(f"state {key}/{name} is {value:.4g}, but was {low:.4g} to {high:.4g} in training{hint}")
    return worst, sentences


def _hint(value: float, low: float, high: float) -> str:
    slack = WARN_BEYOND * (high - low)
    for factor, given, wanted in (
        (DEGREES_PER_RADIAN, "radians", "degrees"),
        (1 / DEGREES_PER_RADIAN, "degrees", "radians"),
    ):
        if low - slack <= value * factor <= high + slack:
            return f"; it would fit as {wanted}, so {given} may stand where {wanted} are wanted: see policy_unit"
    if low - slack <= -value <= high + slack:
        return "; it would fit with the other sign: see sign"
    return ""
