"""Plain objects of the shape of trajectory_msgs, for tests that run without ROS."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

from groot_ros.execution.commands import TrajectoryCommand

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


def command_message(command: TrajectoryCommand) -> SimpleNamespace:
    """What the node makes of a command of the executor."""
    points = [
        point(positions.tolist(), int(offset_ns), velocities.tolist())
        for offset_ns, positions, velocities in zip(
            command.offsets_ns, command.positions, command.velocities, strict=True
        )
    ]
    return trajectory(command.joints, points, command.stamp_ns)
