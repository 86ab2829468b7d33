"""How a new chunk joins the plan that the robot is executing: one small class for each way."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from groot_ros.contract.timing import Motion, nanoseconds
from groot_ros.execution.columns import Array
from groot_ros.execution.plan import Plan


class Strategy(Protocol):
    """Joins a new chunk to the plan. A pure function: nothing is remembered from one call to the next."""

    @property
    def uses_prefix(self) -> bool:
        """Whether the policy is to be told which rows are still to come (real-time chunking)."""

    def merge(self, plan: Plan | None, new: Plan, now_ns: int) -> Plan:
        """Return what to execute from ``now_ns`` on.

        Args:
            plan: What is being executed, None at the start.
            new: The rows of the chunk that has just arrived.
            now_ns: The time of the switch.

        """


@dataclass(frozen=True)
class Replace:
    """The newest chunk counts, from the row that is due now. The plan may step at the switch."""

    uses_prefix: bool = False

    def merge(self, plan: Plan | None, new: Plan, now_ns: int) -> Plan:
        """See :class:`Strategy`."""
        return new if plan is None else plan.splice(new, max(now_ns, new.start_ns))


@dataclass(frozen=True)
class RealTimeChunking(Replace):
    """Like replace, but the policy was given the rows still to come, so that it continues them instead of stepping."""

    uses_prefix: bool = True


@dataclass(frozen=True)
class Blend:
    """A crossfade from the old plan to the new chunk: smooth, at the price of executing a mixture for a while.

    Attributes:
        duration_ns: Length of the crossfade; shorter where the old plan ends earlier. Two-position grippers take the
            new chunk's value at once.

    """

    duration_ns: int
    uses_prefix: bool = False

    def merge(self, plan: Plan | None, new: Plan, now_ns: int) -> Plan:
        """See :class:`Strategy`."""
        switch_ns = max(now_ns, new.start_ns)
        if plan is None:
            return new
        duration = min(self.duration_ns, plan.end_ns - switch_ns)
        if duration <= 0:
            return plan.splice(new, switch_ns)
        joined = plan.splice(new, switch_ns)
        fading = slice(*joined.times_ns.searchsorted([switch_ns, switch_ns + duration]).tolist())
        weight = smoothstep((joined.times_ns[fading] - switch_ns) / duration)
        rows = joined.rows.copy()
        rows[fading] = plan.columns.mix(plan.at(joined.times_ns[fading]), joined.rows[fading], weight)
        rows[:, plan.columns.binary] = joined.rows[:, plan.columns.binary]
        return replace(joined, rows=rows)


@dataclass(frozen=True)
class Ensemble:
    """Temporal ensembling (ACT): the weighted mean of all predictions for a time, in its online form.

    Only what can be averaged is: rotations and two-position grippers take the newest chunk's value.

    Attributes:
        decay: m in the weight ``exp(-m * i)`` of the prediction that is i newer than the oldest; a positive m favours
            the oldest.

    """

    decay: float
    uses_prefix: bool = False

    def merge(self, plan: Plan | None, new: Plan, now_ns: int) -> Plan:
        """See :class:`Strategy`."""
        switch_ns = max(now_ns, new.start_ns)
        if plan is None:
            return new
        joined = plan.splice(new, switch_ns)
        both = (joined.times_ns >= switch_ns) & (joined.times_ns <= plan.end_ns)
        times = joined.times_ns[both]
        earlier = plan.counts[np.searchsorted(plan.times_ns, times, side="right").clip(1) - 1]
        share = np.exp(-self.decay * earlier) / _weight_sum(self.decay, earlier + 1)
        old, rows, counts = plan.at(times), joined.rows.copy(), joined.counts.copy()
        averaged = plan.columns.averageable
        mean = old + share[:, None] * plan.columns.difference(old, joined.rows[both])
        rows[np.ix_(both, averaged)] = mean[:, averaged]
        counts[both] = earlier + 1
        return replace(joined, rows=rows, counts=counts)


def smoothstep(fraction: Array) -> Array:
    """Rise from 0 to 1 with no slope at either end; 0 before and 1 after."""
    bounded = np.clip(fraction, 0.0, 1.0)
    return bounded * bounded * (3.0 - 2.0 * bounded)


def make_strategy(motion: Motion) -> Strategy:
    """The strategy that the contract's key ``motion`` asks for."""
    if motion.strategy == "blend":
        return Blend(nanoseconds(motion.blend_s))
    if motion.strategy == "ensemble":
        return Ensemble(motion.ensemble_decay)
    return RealTimeChunking() if motion.strategy == "rtc" else Replace()


def _weight_sum(decay: float, count: Array) -> Array:
    """``sum(exp(-decay * i) for i in range(count))`` for each count."""
    return np.array([np.exp(-decay * np.arange(number)).sum() for number in count])
