"""Whether motion may be enabled: the measured state beside what the policy was trained on, joint by joint."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from groot_ros.checkpoint.statistics import TagStatistics
from groot_ros.contract import Contract, UnitReading, UnitVerdict, read_units


class MotionGate:
    """Reads the state when it is first complete, and says why motion must stay off.

    Args:
        contract: The robot.
        statistics: What the policy was trained on.

    """

    def __init__(self, contract: Contract, statistics: TagStatistics) -> None:
        self._contract = contract
        self._statistics = statistics
        self.readings: list[UnitReading] | None = None

    def read(self, measured: Mapping[str, NDArray[np.float64]]) -> list[UnitReading]:
        """Compare the robot's values ``(R,)`` by state group, in topic units, with the statistics."""
        self.readings = read_units(self._contract, measured, self._statistics)
        return self.readings

    def refusal(self) -> str | None:
        """Why motion must not be enabled; None where nothing speaks against it."""
        if self.readings is None:
            return "the state has not come yet, so it is not known whether the robot and the policy belong together"
        faults = [reading.sentence for reading in self.readings if not reading.verdict.may_enable]
        if faults:
            return "the measured state and the checkpoint's statistics cannot belong together: " + "; ".join(faults)
        return None

    def warnings(self) -> list[str]:
        """What lies outside the trained range but may be enabled."""
        return [reading.sentence for reading in self.readings or () if reading.verdict is UnitVerdict.OUTSIDE]


def table(readings: list[UnitReading]) -> str:
    """The readings as lines of text: joint, measured, for the policy, trained range, verdict."""
    rows = [("state", "measured", "policy", "trained range", "")]
    rows += [
        (
            f"{reading.group}/{reading.dimension}",
            f"{reading.measured:.4g}",
            f"{reading.policy:.4g}",
            f"{reading.low:.4g} to {reading.high:.4g}",
            reading.verdict.value.replace("_", " "),
        )
        for reading in readings
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )
