"""From a plan to the commands of one output: limited, never older than now, and stopped by a hold that is sent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from groot_ros.execution.columns import Array
from groot_ros.execution.commands import Command
from groot_ros.execution.outputs import Measurement


class Reference(Protocol):
    """What one output is to do over time."""

    @property
    def end_ns(self) -> int:
        """Time of the last row."""

    @property
    def times_ns(self) -> NDArray[np.int64]:
        """Times of the rows."""

    def at(self, times_ns: NDArray[np.int64] | int) -> Array:
        """Wanted values ``(K, J)`` at times ``(K,)``."""


class Sender(Protocol):
    """Makes the commands of one output and remembers what the robot was told last."""

    def commands(self, reference: Reference, now_ns: int, measurement: Measurement | None) -> list[Command]:
        """The commands that are due now: none, or one."""

    def hold(self, now_ns: int, measurement: Measurement | None) -> list[Command]:
        """The command that stops the robot, whatever was sent before; none where nothing was ever sent or measured."""

    def commanded(self, now_ns: int) -> Array | None:
        """What the robot has been told to be doing at this time ``(J,)``; None before the first command."""

    def reset(self) -> None:
        """Forget what was sent."""


@dataclass
class LimitCounts:
    """How often limits changed a command, by robot name."""

    clipped: dict[str, int]
    slowed: dict[str, int]
