"""What the senders of all kinds of output share: limits with their counts, and grippers' levels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter

import numpy as np
from numpy.typing import NDArray

from groot_ros.contract.timing import Motion
from groot_ros.execution.columns import Array
from groot_ros.execution.commands import Command
from groot_ros.execution.limits import ColumnLimits, Limited
from groot_ros.execution.outputs import Measurement, Route
from groot_ros.execution.reference import Reference


class Sender(ABC):
    """Makes the commands of one output, and remembers what the robot was told last.

    Attributes:
        route: The output.
        limits: What its commands never exceed.
        clips: How often a position limit changed a value, by robot name.
        slowed: How often a rate limit changed a value, by robot name.
        clipped_since_ns: Since when every command has been clipped; None while the last one was not.

    """

    def __init__(self, route: Route, limits: ColumnLimits, motion: Motion) -> None:
        self.route = route
        self.limits = limits
        self.motion = motion
        self.clips: Counter[str] = Counter()
        self.slowed: Counter[str] = Counter()
        self.clipped_since_ns: int | None = None

    @abstractmethod
    def commands(self, reference: Reference | None, now_ns: int, measurement: Measurement | None) -> list[Command]:
        """The commands that are due now, none or one; without a reference only what is left of a hold."""

    @abstractmethod
    def hold(self, now_ns: int, measurement: Measurement | None, *, ramp: bool) -> list[Command]:
        """The command that stops what this output moves; none where nothing was ever sent or measured.

        Args:
            now_ns: The time.
            measurement: Where the robot is.
            ramp: Whether further commands will follow, so that the stop may take ``hold_ramp_s``.

        """

    @abstractmethod
    def commanded(self, now_ns: int) -> Array | None:
        """What the robot was told to be doing at this time ``(J,)``; None before the first command."""

    @abstractmethod
    def forget(self, now_ns: int) -> None:
        """The clock jumped to ``now_ns``: what was sent last still holds, but its times mean nothing."""

    @abstractmethod
    def restart(self, values: Array, now_ns: int) -> None:
        """Something else has moved the robot to ``values (J,)``: it is no longer where it was sent last."""

    @abstractmethod
    def overhear(self, command: Command) -> None:
        """Take a command of another process for the last one that was sent; nothing where none is remembered."""

    def decide_levels(self, rows: Array, previous: Array | None) -> Array:
        """Rows ``(N, J)`` with each binary gripper at one of its two positions."""
        decided = rows.copy()
        for column, levels in self.route.levels.items():
            before = None if previous is None else float(previous[column])
            for row in decided:
                before = row[column] = levels.decide(float(row[column]), before)
        return decided

    def note(self, limited: Limited, now_ns: int) -> None:
        """Count what limits changed."""
        for counter, changed in ((self.clips, limited.clipped), (self.slowed, limited.slowed)):
            for column in np.flatnonzero(changed.any(axis=0)) if changed.any() else ():
                counter[self.route.names[column]] += 1
        # To be slowed down is no fault of the plan: low speed limits are a good way to begin with a robot.
        self.note_clipping(limited.clipped, now_ns)

    def note_clipping(self, clipped: NDArray[np.bool_], now_ns: int) -> None:
        """Note whether the commands of this time ``(N, J)`` were clipped, or within the position limits."""
        if not clipped.any():
            self.clipped_since_ns = None
        elif self.clipped_since_ns is None:
            self.clipped_since_ns = now_ns
