"""What leaves the executor: plain values, one class for each kind of ROS message, in SI units and the robot's names."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from groot_ros.execution.columns import Array


@dataclass(frozen=True)
class TrajectoryCommand:
    """For trajectory_msgs/JointTrajectory.

    Attributes:
        output: Name of the output in the contract.
        stamp_ns: Header stamp: the time that ``offsets_ns`` count from; 0 for a hold, which begins when it arrives.
        joints: Joint names.
        offsets_ns: ``time_from_start`` of the points ``(N,)``, int64, strictly increasing, above 0.
        positions: ``(N, J)``.
        velocities: ``(N, J)``; the last row is zero unless the output allows otherwise.

    """

    output: str
    stamp_ns: int
    joints: tuple[str, ...]
    offsets_ns: NDArray[np.int64]
    positions: Array
    velocities: Array


@dataclass(frozen=True)
class ArrayCommand:
    """For std_msgs/Float64MultiArray: one value for each name (positions, velocities or a simulator's action)."""

    output: str
    names: tuple[str, ...]
    values: Array


@dataclass(frozen=True)
class FloatCommand:
    """For std_msgs/Float64: one value."""

    output: str
    value: float


@dataclass(frozen=True)
class TwistCommand:
    """For geometry_msgs/TwistStamped: velocities ``(3,)`` in m/s and rad/s, in ``frame``."""

    output: str
    stamp_ns: int
    frame: str
    linear: Array
    angular: Array


@dataclass(frozen=True)
class PoseCommand:
    """For geometry_msgs/PoseStamped: position ``(3,)`` in m, orientation ``(4,)`` as x, y, z, w, in ``frame``."""

    output: str
    stamp_ns: int
    frame: str
    position: Array
    orientation: Array


@dataclass(frozen=True)
class GripperCommand:
    """For the goals of control_msgs GripperCommand and ParallelGripperCommand; made only when the target changes."""

    output: str
    joints: tuple[str, ...]
    positions: Array
    max_effort: float


Command = TrajectoryCommand | ArrayCommand | FloatCommand | TwistCommand | PoseCommand | GripperCommand
