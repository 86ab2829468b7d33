"""Commands that a timer samples from the plan: arrays, bare numbers, poses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from groot_ros.contract.outputs import FloatOutput, PoseOutput
from groot_ros.contract.timing import Motion, nanoseconds
from groot_ros.execution.columns import Array
from groot_ros.execution.commands import ArrayCommand, Command, FloatCommand, PoseCommand
from groot_ros.execution.limits import ColumnLimits, limit_rows
from groot_ros.execution.outputs import Measurement, Route
from groot_ros.execution.reference import Reference
from groot_ros.execution.sender import Sender
from groot_ros.observation import NANOSECONDS_PER_SECOND


@dataclass(frozen=True)
class Stop:
    """An even deceleration from ``values`` at ``velocity`` to rest."""

    values: Array
    velocity: Array
    start_ns: int
    duration_ns: int

    def at(self, now_ns: int) -> Array:
        """Where it has come to ``(J,)``."""
        duration = self.duration_ns / NANOSECONDS_PER_SECOND
        passed = min(max(now_ns - self.start_ns, 0) / NANOSECONDS_PER_SECOND, duration)
        return self.values + self.velocity * (passed - passed * passed / (2.0 * duration) if duration else 0.0)


class SampledSender(Sender):
    """Sends one value for each column on every call: the plan at this very time."""

    def __init__(self, route: Route, limits: ColumnLimits, motion: Motion) -> None:
        super().__init__(route, limits, motion)
        self._sent: Array | None = None
        self._sent_ns = 0
        self._velocity: Array = np.zeros(len(route.names))
        self._stop: Stop | None = None
        self._moving = False

    def commands(self, reference: Reference | None, now_ns: int, measurement: Measurement | None) -> list[Command]:
        """See :class:`Sender`."""
        if reference is None:
            return self._stopping(now_ns)
        self._stop = None
        previous = self._sent
        if previous is None and measurement is not None:
            previous = measurement.of(self.route)
        if not self._moving:
            # What may be reached is reckoned from now, however long the robot has been standing.
            self._sent_ns, self._moving = now_ns, True
        wanted = reference.at(now_ns)
        if now_ns > reference.end_ns:
            wanted = self.route.resting(wanted[0])[None]
        limited = limit_rows(
            self.route.columns,
            self.limits,
            np.array([now_ns], dtype=np.int64),
            self.decide_levels(wanted, previous),
            previous=previous,
            previous_ns=self._sent_ns,
        )
        self.note(limited, now_ns)
        return [self._send(limited.rows[0], now_ns)]

    def hold(self, now_ns: int, measurement: Measurement | None, *, ramp: bool) -> list[Command]:
        """Positions slow down evenly where a ramp may follow, else stay where they were sent; velocities are zero."""
        self.clipped_since_ns = None
        self._moving = False
        values = self._sent
        if values is None:
            values = measurement.of(self.route) if measurement is not None else None
        if values is None:
            if not self.route.rests_at_zero.all():
                return []
            values = np.zeros(len(self.route.names))
        values = self.route.resting(values)
        self._stop = None
        if ramp:
            moving = np.where(self.route.rests_at_zero, 0.0, self._velocity)
            moving[list(self.route.levels)] = 0.0
            self._stop = Stop(values, moving, self._sent_ns, nanoseconds(self.motion.hold_ramp_s))
            values = self._within(self._stop.at(now_ns))
        return [self._send(values, now_ns)]

    def commanded(self, now_ns: int) -> Array | None:  # noqa: ARG002 - it stands until the next one
        """See :class:`Sender`."""
        return self._sent

    def forget(self, now_ns: int) -> None:
        """See :class:`Sender`."""
        self._sent_ns, self._velocity, self._stop = now_ns, np.zeros(len(self.route.names)), None

    def restart(self, values: Array, now_ns: int) -> None:
        """See :class:`Sender`."""
        self.forget(now_ns)
        self._sent = values

    def overhear(self, command: Command) -> None:
        """See :class:`Sender`."""
        if isinstance(command, ArrayCommand):
            self._sent = command.values
        elif isinstance(command, FloatCommand):
            self._sent = np.array([command.value])
        elif isinstance(command, PoseCommand):
            self._sent = np.concatenate([command.position, command.orientation])

    def _stopping(self, now_ns: int) -> list[Command]:
        stop = self._stop
        if stop is None:
            return []
        if now_ns >= stop.start_ns + stop.duration_ns:
            self._stop = None
        return [self._send(self._within(stop.at(now_ns)), now_ns)]

    def _within(self, values: Array) -> Array:
        return np.clip(values, self.limits.lower, self.limits.upper)

    def _send(self, values: Array, now_ns: int) -> Command:
        if self._sent is not None and now_ns > self._sent_ns:
            seconds = (now_ns - self._sent_ns) / NANOSECONDS_PER_SECOND
            self._velocity = self.route.columns.difference(self._sent[None], values[None])[0] / seconds
            for turn in self.route.columns.quaternions:
                self._velocity[turn] = 0.0
        self._sent, self._sent_ns = values, now_ns
        return self._message(values, now_ns)

    def _message(self, values: Array, now_ns: int) -> Command:
        target = self.route.target
        if isinstance(target, PoseOutput):
            return PoseCommand(self.route.name, now_ns, target.frame, values[:3].copy(), values[3:].copy())
        if isinstance(target, FloatOutput):
            return FloatCommand(self.route.name, float(values[0]))
        return ArrayCommand(self.route.name, self.route.names, values.copy())


class SteppedSender(SampledSender):
    """Sends each row of a chunk of deltas once and in order, for a simulator that adds them up itself.

    Nothing lies between two deltas, so nothing is interpolated, and none is left out when a timer is late.
    """

    EARLY = 0.1
    """A row may go this share of a period early: timers and simulated clocks are not exact."""

    def __init__(self, route: Route, limits: ColumnLimits, motion: Motion) -> None:
        super().__init__(route, limits, motion)
        self._reference: Reference | None = None
        self._next_row = 0

    def commands(
        self,
        reference: Reference | None,
        now_ns: int,
        measurement: Measurement | None,  # noqa: ARG002 - deltas have no place to start from
    ) -> list[Command]:
        """See :class:`Sender`; row i is sent at the start of the period that ends at its time."""
        if reference is not self._reference:
            self._reference, self._next_row = reference, 0
        if reference is None:
            return []
        plan = reference.plan
        if self._next_row >= len(plan.times_ns):
            return []
        period_ns = int(plan.times_ns[-1] - plan.times_ns[0]) // max(len(plan.times_ns) - 1, 1)
        if now_ns < int(plan.times_ns[self._next_row]) - round((1.0 + self.EARLY) * period_ns):
            return []
        row = self.decide_levels(plan.rows[self._next_row][None], self._sent)
        self._next_row += 1
        clamped = np.clip(row, self.limits.lower, self.limits.upper)
        clipped = clamped != row
        for column in np.flatnonzero(clipped[0]):
            self.clips[self.route.names[column]] += 1
        self.note_clipping(clipped, now_ns)
        return [self._send(clamped[0], now_ns)]
