"""Measured values beside the range that the policy was trained on: what no joint does is a forgotten unit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from groot_ros.checkpoint.statistics import KeyStatistics, TagStatistics
from groot_ros.contract.contract import Contract
from groot_ros.contract.sources import JointSource

UNIT_FACTORS = {180 / math.pi: "degrees and radians", 1000.0: "metres and millimetres", 100.0: "ratios and percent"}
TWO_TURNS = 4 * math.pi
MARGIN = 0.25
"""Share of the trained range by which a value may lie outside it and still fit."""
IMPOSSIBLE_SPANS = 3.0
"""So many trained ranges outside, a value and its statistics cannot belong together."""


class UnitVerdict(Enum):
    """Whether a measured value and the trained range belong together."""

    FITS = "fits"
    OUTSIDE = "outside"
    IMPOSSIBLE = "impossible"
    WRONG_UNIT = "wrong_unit"

    @property
    def may_enable(self) -> bool:
        """Whether motion may be enabled; a value merely outside is warned about."""
        return self in {UnitVerdict.FITS, UnitVerdict.OUTSIDE}


@dataclass(frozen=True)
class UnitReading:
    """One dimension of the state as it is now.

    Attributes:
        group: State group.
        dimension: Dimension name.
        measured: The topic's value; for a pose, whose numbers are mixed, the policy's.
        policy: The value as the policy is given it.
        low: Lowest value of the statistics.
        high: Highest value of the statistics.
        verdict: Whether these belong together.
        sentence: All this for a person.

    """

    group: str
    dimension: str
    measured: float
    policy: float
    low: float
    high: float
    verdict: UnitVerdict
    sentence: str


def read_units(
    contract: Contract, measured: Mapping[str, NDArray[np.float64]], statistics: TagStatistics
) -> list[UnitReading]:
    """Compare what is measured with what the policy was trained on, dimension by dimension.

    Args:
        contract: The contract.
        measured: State group to its robot values ``(R,)`` in topic units.
        statistics: The embodiment's statistics; a group that they lack is left out.

    """
    readings = []
    for group, values in measured.items():
        trained = statistics.state.get(group)
        if trained is not None:
            readings += _read_group(contract, group, np.asarray(values, np.float64), trained)
    return readings


def _read_group(
    contract: Contract, group: str, values: NDArray[np.float64], trained: KeyStatistics
) -> list[UnitReading]:
    group_map = contract.state_map(group)
    policy = group_map.to_policy(values)
    topic = values if len(values) == len(policy) else policy
    radians = _plain_radians(contract, group)
    readings = []
    for row, name in enumerate(group_map.dimensions):
        low, high = float(trained.min[row]), float(trained.max[row])
        verdict, why = _judge(float(policy[row]), low, high, in_radians=name in radians)
        sentence = (
            f"state.{group} {name}: measured {topic[row]:.4g}, for the policy {policy[row]:.4g}, "
            f"trained on {low:.4g} to {high:.4g}: {why}"
        )
        readings.append(UnitReading(group, name, float(topic[row]), float(policy[row]), low, high, verdict, sentence))
    return readings


def _plain_radians(contract: Contract, group: str) -> set[str]:
    """Joints whose position goes to the policy as it comes, in SI units, without a unit in writing."""
    return {
        name
        for source in contract.state[group]
        if isinstance(source, JointSource) and source.field == "position" and source.policy_unit is None
        for name, factor in zip(source.dimensions, source.map.factor, strict=True)
        if abs(factor) == 1.0
    }


def _judge(value: float, low: float, high: float, *, in_radians: bool) -> tuple[UnitVerdict, str]:
    furthest = max(abs(low), abs(high))
    if in_radians and furthest > TWO_TURNS:
        why = f"{furthest:.4g} is no angle in radians; write policy_unit: deg (a factor of 57), or the unit meant"
        return UnitVerdict.WRONG_UNIT, why
    span = max(high - low, 1e-3 * furthest, 1e-9)
    outside = max(low - value, value - high, 0.0) / span
    if outside <= MARGIN:
        return UnitVerdict.FITS, "fits"
    for factor, units in UNIT_FACTORS.items():
        for scaled in (value * factor, value / factor):
            if low - MARGIN * span <= scaled <= high + MARGIN * span and outside > 1.0:
                return UnitVerdict.WRONG_UNIT, f"a factor of {factor:.4g} apart: {units} are mixed up; see policy_unit"
    if outside > IMPOSSIBLE_SPANS:
        return UnitVerdict.IMPOSSIBLE, f"{outside:.1f} trained ranges outside; check joint, unit, sign and offset"
    return UnitVerdict.OUTSIDE, f"outside by {outside:.0%} of the trained range"
