"""Two runs over the same recordings: which is better, and whether that could be chance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import wilcoxon

from groot_ros.errors import EvaluationError
from groot_ros.evaluation.gate import figures_of

COMPARED = ("mae", "mse", "first_step_mae", "mae_normalised")
FEWEST_EPISODES = 6
"""With fewer pairs, even if all point the same way, the two-sided signed-rank test cannot fall below 5 %."""
CHANCE = 0.05


@dataclass(frozen=True)
class Difference:
    """One figure in both runs.

    Attributes:
        name: Its dotted name.
        first: Mean over the episodes in the first run.
        second: The same in the second run.
        episodes: Episodes that have it in both.
        p_value: Two-sided Wilcoxon signed-rank test over the episodes; None where they are too few or all equal.

    """

    name: str
    first: float
    second: float
    episodes: int
    p_value: float | None

    @property
    def conclusion(self) -> str:
        """What it says, for a person."""
        if self.first == self.second:
            return "equal"
        better = "second" if self.second < self.first else "first"
        if self.p_value is None:
            return f"{better} is lower; {self.episodes} episodes are too few to exclude chance"
        if self.p_value < CHANCE:
            return f"{better} is better"
        return f"{better} is lower, but it may be chance"


def compare(first: dict[str, Any], second: dict[str, Any]) -> list[Difference]:
    """Compare two reports, episode by episode.

    Raises:
        EvaluationError: They have no episode in common.

    """
    episodes = [{episode["name"]: episode for episode in report["episodes"]} for report in (first, second)]
    names = [name for name in episodes[0] if name in episodes[1]]
    if not names:
        shown = [", ".join(list(found)[:3]) for found in episodes]
        msg = f"the two reports have no episode in common: the first has {shown[0]} ..., the second {shown[1]} ..."
        raise EvaluationError(msg)
    pairs: dict[str, list[tuple[float, float]]] = {}
    for name in names:
        figures = [
            figures_of({"metrics": found[name]["metrics"], "baselines": {}, "sensitivity": {}, "latency": {}})
            for found in episodes
        ]
        for figure, value in figures[0].items():
            other = figures[1].get(figure)
            if figure.split(".")[0] in COMPARED and figure.endswith(".all") and value is not None and other is not None:
                pairs.setdefault(figure.removesuffix(".all"), []).append((value, other))
    return [_difference(figure, np.array(values)) for figure, values in pairs.items()]


def _difference(name: str, values: np.ndarray[Any, np.dtype[np.float64]]) -> Difference:
    change = values[:, 1] - values[:, 0]
    p_value = None
    if len(values) >= FEWEST_EPISODES and np.any(change != 0.0):
        p_value = float(wilcoxon(change).pvalue)
    return Difference(name, float(values[:, 0].mean()), float(values[:, 1].mean()), len(values), p_value)
