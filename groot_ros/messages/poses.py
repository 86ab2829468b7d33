"""Poses and transforms as seven numbers: x, y, z in metres and the unit quaternion x, y, z, w."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from groot_ros.errors import MessageError
from groot_ros.messages.fields import read_field

POSE_NAMES = ("x", "y", "z", "qx", "qy", "qz", "qw")
QUATERNION_TOLERANCE = 1e-2


def read_pose(message: Any, where: str, *, field: str = "pose") -> NDArray[np.float64]:  # noqa: ANN401
    """The pose at ``field`` of a message (PoseStamped's ``pose``, Odometry's ``pose.pose``), float64 ``(7,)``.

    Raises:
        MessageError: There is no pose, a value is not finite, or the quaternion is far from length 1.

    """
    pose = read_field(message, field, where)
    if not hasattr(pose, "position") or not hasattr(pose, "orientation"):
        msg = f"{where}: {field} is {type(pose).__name__}, wanted a pose with position and orientation"
        raise MessageError(msg)
    return _seven(pose.position, pose.orientation, where)


def read_transform(transform: Any, where: str) -> NDArray[np.float64]:  # noqa: ANN401
    """A geometry_msgs/Transform, float64 ``(7,)``.

    Raises:
        MessageError: A value is not finite, or the quaternion is far from length 1.

    """
    return _seven(transform.translation, transform.rotation, where)


def _seven(position: Any, rotation: Any, where: str) -> NDArray[np.float64]:  # noqa: ANN401
    values = np.array([position.x, position.y, position.z, rotation.x, rotation.y, rotation.z, rotation.w], np.float64)
    if not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values))[0])
        msg = f"{where}: {POSE_NAMES[row]} is {values[row]}; a pose must be finite"
        raise MessageError(msg)
    length = float(np.linalg.norm(values[3:]))
    if abs(length - 1.0) > QUATERNION_TOLERANCE:
        msg = f"{where}: the quaternion has length {length:.4g}, wanted 1; an orientation that was never set has 0"
        raise MessageError(msg)
    values[3:] /= length
    return values
