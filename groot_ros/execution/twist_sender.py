"""Twists: a policy's own velocities, or the motion along and towards its pose."""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from groot_ros.contract.outputs import TwistOutput
from groot_ros.contract.timing import Motion, nanoseconds
from groot_ros.execution.columns import Array
from groot_ros.execution.commands import Command, TwistCommand
from groot_ros.execution.limits import ColumnLimits, limit_twist
from groot_ros.execution.outputs import Measurement, Route
from groot_ros.execution.reference import Reference
from groot_ros.execution.sender import Sender
from groot_ros.observation import NANOSECONDS_PER_SECOND

FEED_FORWARD_NS = 20_000_000
"""Time over which the motion of the plan is taken for its velocity."""


class TwistSender(Sender):
    """Sends a twist on every call, in the frame of the output; zero when the plan has run out."""

    def __init__(self, route: Route, target: TwistOutput, limits: ColumnLimits, motion: Motion) -> None:
        super().__init__(route, limits, motion)
        self._target = target
        self._oldest_ns = nanoseconds(motion.hold_s)
        self._sent: Array | None = None

    def commands(self, reference: Reference | None, now_ns: int, measurement: Measurement | None) -> list[Command]:
        """See :class:`Sender`; a pose is followed only while the robot's own is known and not older than hold_s."""
        if reference is None:
            return []
        twist = np.zeros(6)
        if now_ns <= reference.end_ns:
            wanted = reference.at(now_ns)[0]
            twist = self._towards(reference, wanted, now_ns, measurement) if self.route.is_pose else wanted
        limited = limit_twist(self.limits, twist)
        self.note(limited, now_ns)
        self._sent = limited.rows[0]
        return [self._message(limited.rows[0], now_ns)]

    def hold(self, now_ns: int, measurement: Measurement | None, *, ramp: bool) -> list[Command]:  # noqa: ARG002
        """Zero."""
        self.clipped_since_ns = None
        self._sent = np.zeros(6)
        return [self._message(np.zeros(6), now_ns)]

    def commanded(self, now_ns: int) -> Array | None:  # noqa: ARG002 - it stands until the next one
        """See :class:`Sender`; a twist towards a pose does not say where the robot is to be, so that there is none."""
        return None if self.route.is_pose else self._sent

    def forget(self, now_ns: int) -> None:
        """See :class:`Sender`."""

    def restart(self, values: Array, now_ns: int) -> None:
        """See :class:`Sender`."""

    def overhear(self, command: Command) -> None:
        """See :class:`Sender`."""

    def _towards(self, reference: Reference, wanted: Array, now_ns: int, measurement: Measurement | None) -> Array:
        pose = measurement.of(self.route) if measurement is not None else None
        if pose is None or measurement is None or now_ns - measurement.stamp_ns > self._oldest_ns:
            return np.zeros(6)
        target = np.concatenate([np.clip(wanted[:3], self.limits.lower[:3], self.limits.upper[:3]), wanted[3:]])
        later = reference.at(min(now_ns + FEED_FORWARD_NS, reference.end_ns))[0]
        feed_forward = pose_difference(wanted, later) * (NANOSECONDS_PER_SECOND / FEED_FORWARD_NS)
        return feed_forward + self._target.gain_per_s * pose_difference(pose, target)

    def _message(self, twist: Array, now_ns: int) -> TwistCommand:
        return TwistCommand(self.route.name, now_ns, self._target.frame, twist[:3].copy(), twist[3:].copy())


def pose_difference(start: Array, end: Array) -> Array:
    """What leads from one pose ``(7,)`` to another ``(6,)``: the way in m, and the turn as a rotation vector in rad.

    Both are in the frame in which the poses are given.
    """
    turn = Rotation.from_quat(end[3:]) * Rotation.from_quat(start[3:]).inv()
    return np.concatenate([end[:3] - start[:3], turn.as_rotvec()])
