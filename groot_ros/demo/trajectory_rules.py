"""What joint_trajectory_controller rejects, as a checker for the demo controller and for tests."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

import numpy as np

from groot_ros.demo.trajectory_message import Trajectory, is_cancel, time_ns
from groot_ros.observation import NANOSECONDS_PER_SECOND

ZERO_VELOCITY = float(np.finfo(np.float32).eps)


class RejectionReason(Enum):
    """Why a trajectory is not executed."""

    JOINTS = "wrong joint set"
    NO_POINTS = "no points"
    LENGTHS = "wrong number of values in a point"
    NOT_FINITE = "a value is not finite"
    TIMES = "times do not increase"
    PAST = "ends in the past"
    END_VELOCITY = "moves at its end"
    UNSUPPORTED = "accelerations or efforts"


@dataclass(frozen=True)
class Rejection:
    """A trajectory that is not executed: the reason to count, and the sentence to read."""

    reason: RejectionReason
    sentence: str


@dataclass(frozen=True)
class JointTrajectoryRules:
    """joint_trajectory_controller's checks of an incoming ``trajectory_msgs/JointTrajectory``.

    A value that is not finite is rejected too (the real controller would pass it on to the motors).

    Attributes:
        joints: The controller's joints.
        allow_partial_joints_goal: Accept a subset of the joints.
        allow_nonzero_velocity_at_trajectory_end: Accept a last point that still moves.

    """

    joints: tuple[str, ...]
    allow_partial_joints_goal: bool = False
    allow_nonzero_velocity_at_trajectory_end: bool = False

    def check(self, message: Trajectory, now_ns: int) -> Rejection | None:
        """The first rule that ``message`` breaks at ``now_ns`` (on the clock of its stamp), or None."""
        if is_cancel(message):
            return None
        return (
            self._check_joints(message)
            or self._check_points(message)
            or self._check_times(message, now_ns)
            or self._check_end(message)
        )

    def _check_joints(self, message: Trajectory) -> Rejection | None:
        names = list(message.joint_names)
        wanted = f"the controller's joints are {list(self.joints)}"
        if not names or len(set(names)) != len(names) or not set(names) <= set(self.joints):
            return Rejection(RejectionReason.JOINTS, f"joint_names are {names}; {wanted}")
        if len(names) != len(self.joints) and not self.allow_partial_joints_goal:
            return Rejection(RejectionReason.JOINTS, f"joint_names are only {names}; {wanted}, and all are needed")
        return None

    def _check_points(self, message: Trajectory) -> Rejection | None:
        if not message.points:
            return Rejection(RejectionReason.NO_POINTS, "the trajectory has joint names but no points")
        count = len(message.joint_names)
        for index, point in enumerate(message.points):
            if len(point.accelerations) or len(point.effort):
                sentence = f"point {index} has accelerations or efforts; this controller takes positions and velocities"
                return Rejection(RejectionReason.UNSUPPORTED, sentence)
            for field, values, required in (
                ("positions", point.positions, True),
                ("velocities", point.velocities, False),
            ):
                if len(values) != count and (required or len(values)):
                    sentence = f"point {index} has {len(values)} {field} for {count} joints"
                    return Rejection(RejectionReason.LENGTHS, sentence)
                if not np.all(np.isfinite(values)):
                    return Rejection(RejectionReason.NOT_FINITE, f"point {index} has {field} {list(values)}")
        return None

    def _check_times(self, message: Trajectory, now_ns: int) -> Rejection | None:
        times = [time_ns(point.time_from_start) for point in message.points]
        for index, (before, after) in enumerate(pairwise(times)):
            if after <= before:
                sentence = (
                    f"time_from_start of points {index} and {index + 1} is {_seconds(before)} and {_seconds(after)}; "
                    "it must increase strictly"
                )
                return Rejection(RejectionReason.TIMES, sentence)
        stamp = time_ns(message.header.stamp)
        if stamp and stamp + times[-1] < now_ns:
            late = _seconds(now_ns - stamp - times[-1])
            return Rejection(RejectionReason.PAST, f"the last point was due {late} before the trajectory arrived")
        return None

    def _check_end(self, message: Trajectory) -> Rejection | None:
        velocities = message.points[-1].velocities
        if self.allow_nonzero_velocity_at_trajectory_end or all(abs(value) <= ZERO_VELOCITY for value in velocities):
            return None
        return Rejection(RejectionReason.END_VELOCITY, f"velocities of the last point are {list(velocities)}, not zero")


def _seconds(duration_ns: int) -> str:
    return f"{duration_ns / NANOSECONDS_PER_SECOND:.3f} s"
