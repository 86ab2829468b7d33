"""Goals for gripper actions: one when the target changes, none otherwise."""

from __future__ import annotations

import numpy as np

from groot_ros.contract.outputs import GripperCommandOutput
from groot_ros.contract.timing import Motion
from groot_ros.execution.columns import Array
from groot_ros.execution.commands import Command, GripperCommand
from groot_ros.execution.limits import ColumnLimits, limit_rows
from groot_ros.execution.outputs import Measurement, Route
from groot_ros.execution.reference import Reference
from groot_ros.execution.sender import Sender


class GripperSender(Sender):
    """Sends a goal when the plan's value has moved by more than the tolerance, or a binary gripper changes its mind.

    The action server moves at its own speed, so only position limits apply, and holding leaves a grip as it is.
    """

    def __init__(self, route: Route, target: GripperCommandOutput, limits: ColumnLimits, motion: Motion) -> None:
        super().__init__(route, limits, motion)
        self._target = target
        self._sent: Array | None = None
        self._begins = True

    def commands(self, reference: Reference | None, now_ns: int, measurement: Measurement | None) -> list[Command]:
        """See :class:`Sender`."""
        if reference is None:
            return []
        measured = measurement.of(self.route) if measurement is not None else None
        wanted = self.decide_levels(reference.at(now_ns), self._sent if self._sent is not None else measured)
        times = np.array([now_ns], dtype=np.int64)
        limited = limit_rows(self.route.columns, self.limits, times, wanted, previous=None, previous_ns=now_ns)
        self.note(limited, now_ns)
        position = limited.rows[0]
        if (
            not self._begins
            and self._sent is not None
            and np.all(np.abs(position - self._sent) <= self._target.tolerance)
        ):
            return []
        self._sent, self._begins = position, False
        return [GripperCommand(self.route.name, self.route.names, position.copy(), self._target.max_effort)]

    def hold(self, now_ns: int, measurement: Measurement | None, *, ramp: bool) -> list[Command]:  # noqa: ARG002
        """Nothing: the goal that was sent is where the gripper holds, and letting go would drop the object."""
        self.clipped_since_ns = None
        # Somebody may open the gripper meanwhile: the first goal after a hold goes out, whatever was sent last.
        self._begins = True
        return []

    def commanded(self, now_ns: int) -> Array | None:  # noqa: ARG002 - it stands until the next goal
        """See :class:`Sender`."""
        return self._sent

    def forget(self, now_ns: int) -> None:
        """See :class:`Sender`."""

    def restart(self, values: Array, now_ns: int) -> None:
        """See :class:`Sender`."""

    def overhear(self, command: Command) -> None:
        """See :class:`Sender`."""
