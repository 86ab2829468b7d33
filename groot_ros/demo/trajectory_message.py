"""The shape of a ``trajectory_msgs/JointTrajectory``, so that its rules can be checked where no ROS is installed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from groot_ros.observation import NANOSECONDS_PER_SECOND


class Time(Protocol):
    """``builtin_interfaces/Time`` or ``Duration``."""

    sec: int
    nanosec: int


class Header(Protocol):
    """``std_msgs/Header``."""

    stamp: Time


class Point(Protocol):
    """``trajectory_msgs/JointTrajectoryPoint``."""

    positions: Sequence[float]
    velocities: Sequence[float]
    accelerations: Sequence[float]
    effort: Sequence[float]
    time_from_start: Time


class Trajectory(Protocol):
    """``trajectory_msgs/JointTrajectory``."""

    header: Header
    joint_names: Sequence[str]
    points: Sequence[Point]


def is_cancel(message: Trajectory) -> bool:
    """An empty trajectory: it cancels the one that runs."""
    return not message.joint_names and not message.points


def time_ns(time: Time) -> int:
    """Nanoseconds of a stamp (where 0 means now) or of a ``time_from_start``."""
    return int(time.sec) * NANOSECONDS_PER_SECOND + int(time.nanosec)
