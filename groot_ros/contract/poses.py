"""Poses: position and quaternion of ROS against the layout in which the policy was trained, both ways."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from groot_ros.numerics import rotations


class RotationFormat(Enum):
    """How a policy writes an orientation.

    ``rpy``: roll, pitch, yaw about the fixed axes x, y, z (ROS), rad. ``axis_angle``: axis times angle, rad.
    ``rot6d_rows``: the first two rows of the rotation matrix. ``quaternion``: x, y, z, w with w >= 0.
    """

    RPY = "rpy"
    AXIS_ANGLE = "axis_angle"
    ROT6D_ROWS = "rot6d_rows"
    QUATERNION = "quaternion"


ROTATION_DIMENSIONS: dict[RotationFormat, tuple[str, ...]] = {
    RotationFormat.RPY: ("roll", "pitch", "yaw"),
    RotationFormat.AXIS_ANGLE: ("rx", "ry", "rz"),
    RotationFormat.ROT6D_ROWS: ("r11", "r12", "r13", "r21", "r22", "r23"),
    RotationFormat.QUATERNION: ("qx", "qy", "qz", "qw"),
}
POSITION_DIMENSIONS = ("x", "y", "z")
POSE_DIMENSIONS = ("x", "y", "z", "qx", "qy", "qz", "qw")
"""A pose as ROS writes it: position in metres, unit quaternion."""


TO_MATRIX = {
    RotationFormat.RPY: rotations.matrix_from_rpy,
    RotationFormat.AXIS_ANGLE: rotations.matrix_from_rotvec,
    RotationFormat.ROT6D_ROWS: rotations.matrix_from_rot6d,
    RotationFormat.QUATERNION: rotations.matrix_from_quaternion,
}
FROM_MATRIX = {
    RotationFormat.RPY: rotations.rpy_from_matrix,
    RotationFormat.AXIS_ANGLE: rotations.rotvec_from_matrix,
    RotationFormat.ROT6D_ROWS: rotations.rot6d_from_matrix,
    RotationFormat.QUATERNION: rotations.quaternion_from_matrix,
}


@dataclass(frozen=True)
class PoseMap:
    """A ROS pose ``(..., 7)`` (x, y, z, qx, qy, qz, qw) to the policy's layout ``(..., D)`` and back.

    Attributes:
        form: How the policy writes the orientation.
        tool_rotation: ``(3, 3)``; the policy's orientation is the topic's times this one (another tool frame).
        taken: Which dimensions of position and orientation the policy has, in its order.

    """

    form: RotationFormat
    tool_rotation: NDArray[np.float64]
    taken: tuple[str, ...]

    @property
    def whole(self) -> tuple[str, ...]:
        """All dimensions that this layout has."""
        return whole_pose_dimensions(self.form)

    def to_policy(self, poses: NDArray[np.float64]) -> NDArray[np.float64]:
        """ROS poses ``(..., 7)`` as the policy writes them, ``(..., D)``."""
        poses = np.asarray(poses, np.float64)
        matrix = rotations.matrix_from_quaternion(poses[..., 3:]) @ self.tool_rotation
        values = np.concatenate([poses[..., :3], FROM_MATRIX[self.form](matrix)], axis=-1)
        return values[..., [self.whole.index(name) for name in self.taken]]

    def to_topic(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Policy values ``(..., D)`` as ROS poses ``(..., 7)``; only where the policy has the whole pose.

        Raises:
            ValueError: The map takes only some of the dimensions.

        """
        if set(self.taken) != set(self.whole):
            msg = f"a pose cannot be made from {', '.join(self.taken)} alone"
            raise ValueError(msg)
        values = np.asarray(values, np.float64)[..., [self.taken.index(name) for name in self.whole]]
        matrix = TO_MATRIX[self.form](values[..., 3:]) @ self.tool_rotation.T
        return np.concatenate([values[..., :3], rotations.quaternion_from_matrix(matrix)], axis=-1)


def whole_pose_dimensions(form: RotationFormat) -> tuple[str, ...]:
    """The names of position and orientation in this layout."""
    return POSITION_DIMENSIONS + ROTATION_DIMENSIONS[form]


def tool_rotation_matrix(rows: Sequence[Sequence[float]] | None) -> NDArray[np.float64]:
    """The ``(3, 3)`` matrix of the key ``tool_rotation``; the identity where it is absent."""
    return np.eye(3) if rows is None else np.array(rows, np.float64)
