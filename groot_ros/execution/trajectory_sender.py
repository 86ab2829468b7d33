"""Trajectories for joint_trajectory_controller: the rows still ahead, never further than what may run on unattended."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from groot_ros.contract.outputs import JointTrajectoryOutput
from groot_ros.contract.timing import Motion, nanoseconds
from groot_ros.execution.columns import Array
from groot_ros.execution.commands import Command, TrajectoryCommand
from groot_ros.execution.limits import ColumnLimits, limit_rows
from groot_ros.execution.outputs import Measurement, Route
from groot_ros.execution.reference import Reference
from groot_ros.execution.sender import Sender
from groot_ros.observation import NANOSECONDS_PER_SECOND

SHORTEST_HOLD_NS = 20_000_000
"""A hold is a point in the future: a controller drops a trajectory that has ended on arrival."""

LEAD_NS = 5_000_000
"""Rows that are due sooner would be history on arrival, and a step to them would need any speed."""

SHORTEST_NS = 50_000_000
"""A trajectory that ends sooner is not sent: on a busy machine it would arrive after its end and be rejected."""

AT_ONCE_NS = 0
"""The stamp of a hold: the controller begins it on arrival, however late that is and whatever its clock says."""


class TrajectorySender(Sender):
    """Sends a trajectory when the plan has changed, and again before the one that was sent runs short."""

    def __init__(self, route: Route, target: JointTrajectoryOutput, limits: ColumnLimits, motion: Motion) -> None:
        super().__init__(route, limits, motion)
        self._target = target
        self._max_ahead_ns = nanoseconds(motion.max_ahead_s)
        self._reference: Reference | None = None
        self._resend_ns = 0
        self._times: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self._rows: Array = np.empty((0, len(route.names)))

    def commands(self, reference: Reference | None, now_ns: int, measurement: Measurement | None) -> list[Command]:
        """See :class:`Sender`."""
        if reference is None:
            self._reference = None
            return []
        if reference is self._reference and not self._runs_short(reference, now_ns):
            return []
        times, wanted = reference.ahead(now_ns + LEAD_NS, now_ns + self._max_ahead_ns)
        if times.size == 0 or int(times[-1]) < now_ns + SHORTEST_NS:
            return []
        self._reference = reference
        self._resend_ns = now_ns + self._max_ahead_ns // 2
        previous = self.commanded(now_ns)
        if previous is None:
            previous = measurement.of(self.route) if measurement is not None else None
        limited = limit_rows(
            self.route.columns,
            self.limits,
            times,
            self.decide_levels(wanted, previous),
            previous=previous,
            previous_ns=now_ns,
        )
        self.note(limited, now_ns)
        goes_on = self._target.final_velocity and int(times[-1]) < reference.end_ns
        return [self._send(now_ns, times, limited.rows, previous, ends_moving=goes_on)]

    def _runs_short(self, reference: Reference, now_ns: int) -> bool:
        """Whether what was sent ends before the plan does, and too soon to wait for the next chunk."""
        return now_ns >= self._resend_ns and self._times.size > 0 and int(self._times[-1]) < reference.end_ns

    def hold(self, now_ns: int, measurement: Measurement | None, *, ramp: bool) -> list[Command]:  # noqa: ARG002
        """One point at which the robot has come to rest by an even deceleration; the controller does the ramp."""
        self._reference = None
        self.clipped_since_ns = None
        position, velocity = self.commanded(now_ns), self._velocity(now_ns)
        if position is None:
            position = measurement.of(self.route) if measurement is not None else None
            if position is None:
                return []
            velocity = np.zeros_like(position)
        duration_ns = max(nanoseconds(self.motion.hold_ramp_s), SHORTEST_HOLD_NS)
        stop = position + velocity * (duration_ns / NANOSECONDS_PER_SECOND / 2.0)
        stop = np.clip(stop, np.minimum(self.limits.lower, position), np.maximum(self.limits.upper, position))
        times = np.array([now_ns + duration_ns], dtype=np.int64)
        command = self._send(now_ns, times, stop[None], position, ends_moving=False)
        return [replace(command, stamp_ns=AT_ONCE_NS)]

    def commanded(self, now_ns: int) -> Array | None:
        """See :class:`Sender`."""
        if self._times.size == 0:
            return None
        times = self._times
        after = min(int(times.searchsorted(now_ns, side="right")), times.size - 1)
        before = max(after - 1, 0)
        before_ns = int(times[before])
        span = int(times[after]) - before_ns
        weight = min(max(now_ns - before_ns, 0) / span, 1.0) if span else 1.0
        return self.route.columns.between(self._rows[before], self._rows[after], weight)

    def forget(self, now_ns: int) -> None:
        """See :class:`Sender`."""
        if self._times.size:
            self._times, self._rows = np.array([now_ns], dtype=np.int64), self._rows[-1:]
        self._reference, self._resend_ns = None, 0

    def restart(self, values: Array, now_ns: int) -> None:
        """See :class:`Sender`."""
        self._times, self._rows = np.array([now_ns], dtype=np.int64), values[None]
        self._reference = None

    def overhear(self, command: Command) -> None:
        """See :class:`Sender`."""
        if isinstance(command, TrajectoryCommand):
            self._times, self._rows = command.stamp_ns + command.offsets_ns, command.positions

    def _velocity(self, now_ns: int) -> Array:
        """Velocity of what was sent, at this time ``(J,)``; zero after its end and for two-position grippers."""
        if self._times.size < 2 or not self._times[0] <= now_ns < self._times[-1]:
            return np.zeros(len(self.route.names))
        after = int(np.searchsorted(self._times, now_ns, side="right"))
        seconds = int(self._times[after] - self._times[after - 1]) / NANOSECONDS_PER_SECOND
        change = self.route.columns.difference(self._rows[after - 1][None], self._rows[after][None])[0]
        velocity: Array = change / seconds
        velocity[list(self.route.levels)] = 0.0
        return velocity

    def _send(
        self, now_ns: int, times: NDArray[np.int64], rows: Array, previous: Array | None, *, ends_moving: bool
    ) -> TrajectoryCommand:
        """Remember the rows and make the command; ``previous`` is where the robot is told to be now."""
        self._times, self._rows = times, rows
        if previous is not None:
            self._times = np.concatenate([[now_ns], times])
            self._rows = np.concatenate([previous[None], rows])
        velocities = self._finite_differences(times, rows)
        if not ends_moving:
            velocities[-1] = 0.0
        return TrajectoryCommand(self.route.name, now_ns, self.route.names, times - now_ns, rows, velocities)

    def _finite_differences(self, times: NDArray[np.int64], rows: Array) -> Array:
        """Velocities ``(N, J)``: the mean of the slopes before and after each row, at the ends the only one.

        The step from where the robot is to the first row is left out: at a seam it may be steep for one short moment.
        """
        velocities = np.zeros_like(rows)
        if len(rows) > 1:
            seconds = np.diff(times)[:, None] / NANOSECONDS_PER_SECOND
            slopes = self.route.columns.difference(rows[:-1], rows[1:]) / seconds
            velocities[0], velocities[-1] = slopes[0], slopes[-1]
            velocities[1:-1] = (slopes[:-1] + slopes[1:]) / 2.0
        velocities[:, list(self.route.levels)] = 0.0
        return velocities
