"""What one output is to do over time: its part of the plan, approached gently after a standstill."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from groot_ros.execution.columns import Array
from groot_ros.execution.plan import Plan
from groot_ros.execution.strategies import smoothstep


@dataclass(frozen=True)
class StartRamp:
    """The way from where the robot stands to a plan that begins elsewhere.

    Attributes:
        values: Where the robot stands ``(J,)``.
        start_ns: When it sets out.
        duration_ns: How long it takes to be on the plan.

    """

    values: Array
    start_ns: int
    duration_ns: int


def running(ramp: StartRamp | None, now_ns: int) -> StartRamp | None:
    """The ramp, or None where it has ended."""
    return ramp if ramp is not None and now_ns < ramp.start_ns + ramp.duration_ns else None


@dataclass(frozen=True)
class Reference:
    """The plan of one output.

    Attributes:
        plan: The output's columns of the plan.
        ramp: The way to it, None where the robot was there already.

    """

    plan: Plan
    ramp: StartRamp | None = None

    @property
    def end_ns(self) -> int:
        """Time of the last row."""
        return self.plan.end_ns

    def at(self, times_ns: NDArray[np.int64] | int) -> Array:
        """Wanted values ``(K, J)`` at times ``(K,)``."""
        rows = self.plan.at(times_ns)
        if self.ramp is None:
            return rows
        times = np.atleast_1d(np.asarray(times_ns, dtype=np.int64))
        weight = smoothstep((times - self.ramp.start_ns) / self.ramp.duration_ns)
        columns = self.plan.columns
        ramped = columns.mix(np.broadcast_to(self.ramp.values, rows.shape).copy(), rows, weight)
        ramped[:, columns.binary] = rows[:, columns.binary]
        return ramped

    def ahead(self, now_ns: int, until_ns: int) -> tuple[NDArray[np.int64], Array]:
        """Times and values of the rows after ``now_ns`` and not after ``until_ns``.

        Where no row lies between but the plan goes on, its value at the end of that time stands for the row.
        """
        times, rows = self.plan.ahead(now_ns, until_ns)
        if times.size == 0 and self.end_ns > now_ns:
            times = np.array([min(until_ns, self.end_ns)], dtype=np.int64)
            return times, self.at(times)
        return times, rows if self.ramp is None or not times.size else self.at(times)
