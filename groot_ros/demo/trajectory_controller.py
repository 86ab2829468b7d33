"""A controller that executes joint trajectories as joint_trajectory_controller does, as a pure function of time."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from groot_ros.demo.arm import Vector
from groot_ros.demo.trajectory_message import Trajectory, is_cancel, time_ns
from groot_ros.demo.trajectory_rules import JointTrajectoryRules, Rejection, RejectionReason
from groot_ros.observation import NANOSECONDS_PER_SECOND


@dataclass(frozen=True)
class _Knot:
    time_ns: int
    positions: Vector
    velocities: Vector | None


class TrajectoryController:
    """Holds its position, or follows the newest trajectory that the rules accepted.

    A stamp of zero means now. Points that are not ahead are dropped, and the way to the first point ahead begins
    at the command of this moment: latency is compensated, and nothing jumps. Between points the way is linear without
    velocities and cubic with them. After the last point the command holds.
    """

    def __init__(self, rules: JointTrajectoryRules, start: Vector) -> None:
        """Hold ``start`` ``(joints,)`` rad, in the order of the rules' joints."""
        self.rules = rules
        self.accepted = 0
        self.cancelled = 0
        self.rejected: Counter[RejectionReason] = Counter()
        self.last_rejection: Rejection | None = None
        self.hold(start)

    def hold(self, positions: Vector) -> None:
        """Forget the trajectory and hold ``positions`` ``(joints,)`` rad."""
        self._knots = [_Knot(0, np.array(positions, dtype=np.float64), None)]

    def receive(self, message: Trajectory, now_ns: int) -> Rejection | None:
        """Follow ``message`` from ``now_ns`` on, or return why not; a rejected one changes nothing."""
        rejection = self.rules.check(message, now_ns)
        if rejection is not None:
            self.rejected[rejection.reason] += 1
            self.last_rejection = rejection
            return rejection
        positions, velocities = self.command(now_ns)
        if is_cancel(message):
            self.cancelled += 1
            self.hold(positions)
            return None
        self.accepted += 1
        begin_ns = time_ns(message.header.stamp) or now_ns
        columns = [self.rules.joints.index(name) for name in message.joint_names]
        knots = [_Knot(now_ns, positions, velocities)]
        for point in message.points:
            due_ns = begin_ns + time_ns(point.time_from_start)
            if due_ns <= now_ns and point is not message.points[-1]:
                continue
            target = positions.copy()
            target[columns] = point.positions
            speed = None
            if len(point.velocities):
                speed = np.zeros_like(positions)
                speed[columns] = point.velocities
            knots.append(_Knot(due_ns, target, speed))
        self._knots = knots if knots[1].time_ns > now_ns else knots[1:]
        return None

    def command(self, now_ns: int) -> tuple[Vector, Vector]:
        """Commanded positions and velocities ``(joints,)`` at ``now_ns``, rad and rad/s."""
        first, last = self._knots[0], self._knots[-1]
        if now_ns >= last.time_ns or now_ns < first.time_ns:
            edge = last if now_ns >= last.time_ns else first
            return edge.positions.copy(), np.zeros_like(edge.positions)
        index = next(i for i in range(1, len(self._knots)) if now_ns < self._knots[i].time_ns)
        return _interpolate(self._knots[index - 1], self._knots[index], now_ns)


def _interpolate(before: _Knot, after: _Knot, now_ns: int) -> tuple[Vector, Vector]:
    duration_s = (after.time_ns - before.time_ns) / NANOSECONDS_PER_SECOND
    share = (now_ns - before.time_ns) / (after.time_ns - before.time_ns)
    step = after.positions - before.positions
    if before.velocities is None or after.velocities is None:
        return before.positions + share * step, step / duration_s
    begin, end = before.velocities * duration_s, after.velocities * duration_s
    square, cube = 3 * step - 2 * begin - end, begin + end - 2 * step
    positions = before.positions + share * (begin + share * (square + share * cube))
    velocities = (begin + share * (2 * square + share * 3 * cube)) / duration_s
    return positions, velocities
