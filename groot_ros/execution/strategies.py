"""How a new chunk joins the plan that the robot is executing: one small class for each way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from groot_ros.contract.timing import Motion
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
    """Like replace, and the policy is given the rows still to come, so that it continues them instead of stepping."""

    uses_prefix: bool = True


def make_strategy(motion: Motion) -> Strategy:
    """The strategy that the contract's key ``motion`` asks for."""
    return {"replace": Replace(), "rtc": RealTimeChunking()}[motion.strategy]
