"""Plain objects of the shape of trajectory_msgs, for tests that run without ROS."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

SECOND = 1_000_000_000


def time(nanoseconds: int) -> SimpleNamespace:
    return SimpleNamespace(sec=nanoseconds // SECOND, nanosec=nanoseconds % SECOND)


def point(positions: Sequence[float], from_start_ns: int, velocities: Sequence[float] = ()) -> SimpleNamespace:
    return SimpleNamespace(
        positions=list(positions),
        velocities=list(velocities),
        accelerations=[],
        effort=[],
        time_from_start=time(from_start_ns),
    )


def trajectory(names: Sequence[str], points: Sequence[SimpleNamespace], stamp_ns: int = 0) -> SimpleNamespace:
    return SimpleNamespace(header=SimpleNamespace(stamp=time(stamp_ns)), joint_names=list(names), points=list(points))
