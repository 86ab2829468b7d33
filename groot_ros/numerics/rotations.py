"""Conversions between the ways to write a rotation, all through rotation matrices, and the way between two of them.

Conventions: quaternions are ``x, y, z, w`` (ROS, scipy); ``rpy`` is roll, pitch, yaw about the fixed axes x, y, z
(REP 103: ``R = Rz(yaw) Ry(pitch) Rx(roll)``); a rotation vector (axis-angle) is the unit axis times the angle, radians;
``rot6d`` is the first two **rows** of the matrix, one after the other (GR00T). Every function takes any number of
leading axes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.transform import Rotation

Array = NDArray[np.float64]

# A row of a rotation has length 1; what is shorter than this is rounding, and points nowhere.
_NO_DIRECTION = 1e-9


def matrix_from_quaternion(quaternion: ArrayLike) -> Array:
    """Return ``(..., 3, 3)`` for quaternions ``(..., 4)`` in the order x, y, z, w; they need not have length 1.

    Raises:
        ValueError: A quaternion has length zero (scipy's sentence).

    """
    return _to_matrix(Rotation.from_quat, quaternion, 4)


def quaternion_from_matrix(matrix: ArrayLike) -> Array:
    """Return unit quaternions ``(..., 4)`` in the order x, y, z, w, with w >= 0 but for rounding at half a turn."""
    quaternion = _from_matrix(Rotation.as_quat, matrix, 4)
    return np.where(quaternion[..., 3:] < 0.0, -quaternion, quaternion)


def matrix_from_rotvec(rotvec: ArrayLike) -> Array:
    """Return ``(..., 3, 3)`` for rotation vectors ``(..., 3)``, radians."""
    return _to_matrix(Rotation.from_rotvec, rotvec, 3)


def rotvec_from_matrix(matrix: ArrayLike) -> Array:
    """Return rotation vectors ``(..., 3)`` of at most pi radians; at pi the sign of the axis is scipy's."""
    return _from_matrix(Rotation.as_rotvec, matrix, 3)


def matrix_from_rpy(rpy: ArrayLike) -> Array:
    """Return ``(..., 3, 3)`` for roll, pitch, yaw ``(..., 3)`` about fixed axes, radians."""
    return _to_matrix(lambda flat: Rotation.from_euler("xyz", flat), rpy, 3)


def rpy_from_matrix(matrix: ArrayLike) -> Array:
    """Return roll, pitch, yaw ``(..., 3)``; pitch in ``[-pi/2, pi/2]``. Where pitch is at its end, yaw is 0 (scipy)."""
    return _from_matrix(lambda rotation: rotation.as_euler("xyz"), matrix, 3)


def matrix_from_rot6d(rot6d: ArrayLike) -> Array:
    """Return the rotation ``(..., 3, 3)`` that Gram-Schmidt makes of two rows ``(..., 6)``.

    The first row keeps its direction, the second is made perpendicular to it, the third is their cross product.

    Raises:
        ValueError: A row is zero, or the two are parallel, so that they name no rotation.

    """
    rows = np.asarray(rot6d, dtype=np.float64)
    if rows.shape[-1:] != (6,):
        msg = f"rot6d needs 6 numbers in its last axis, but its shape is {rows.shape}"
        raise ValueError(msg)
    first = _unit(rows[..., :3])
    second = _unit(rows[..., 3:] - np.sum(first * rows[..., 3:], axis=-1, keepdims=True) * first)
    return np.stack([first, second, np.cross(first, second)], axis=-2)


def rot6d_from_matrix(matrix: ArrayLike) -> Array:
    """Return the first two rows ``(..., 6)`` of ``(..., 3, 3)``, one after the other."""
    rows = np.asarray(matrix, dtype=np.float64)[..., :2, :]
    return rows.reshape(*rows.shape[:-2], 6)


def slerp_rotvec(start: ArrayLike, end: ArrayLike, fraction: ArrayLike) -> Array:
    """Return the rotation vector at ``fraction`` of the shortest turn from ``start`` to ``end``.

    Args:
        start: Rotation vectors ``(..., 3)``, radians.
        end: Rotation vectors ``(..., 3)``, radians.
        fraction: ``(...)``, 0 for ``start``, 1 for ``end``.

    """
    return rotvec_from_matrix(_slerp(matrix_from_rotvec(start), matrix_from_rotvec(end), fraction))


def slerp_quaternion(start: ArrayLike, end: ArrayLike, fraction: ArrayLike) -> Array:
    """Return the unit quaternion at ``fraction`` of the shortest turn from ``start`` to ``end``.

    Args:
        start: Quaternions ``(..., 4)`` in the order x, y, z, w. ``q`` and ``-q`` are the same rotation.
        end: Quaternions ``(..., 4)``.
        fraction: ``(...)``, 0 for ``start``, 1 for ``end``.

    """
    return quaternion_from_matrix(_slerp(matrix_from_quaternion(start), matrix_from_quaternion(end), fraction))


def _slerp(start: Array, end: Array, fraction: ArrayLike) -> Array:
    """Turn ``start`` about the constant axis that leads to ``end``."""
    turn = rotvec_from_matrix(np.swapaxes(start, -1, -2) @ end)
    return start @ matrix_from_rotvec(np.asarray(fraction, dtype=np.float64)[..., None] * turn)


def _unit(vectors: Array) -> Array:
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    if np.any(lengths < _NO_DIRECTION):
        msg = "a rot6d with a zero row, or with two parallel rows, names no rotation"
        raise ValueError(msg)
    unit: Array = vectors / lengths
    return unit


def _to_matrix(build: Callable[[Array], Any], values: ArrayLike, width: int) -> Array:
    """Call scipy on ``(N, width)``, which every version of it takes."""
    array = np.asarray(values, dtype=np.float64)
    if array.shape[-1:] != (width,):
        msg = f"a rotation written this way needs {width} numbers in its last axis, but the shape is {array.shape}"
        raise ValueError(msg)
    if array.size == 0:
        return np.empty((*array.shape[:-1], 3, 3))
    matrix: Array = build(array.reshape(-1, width)).as_matrix()
    return matrix.reshape(*array.shape[:-1], 3, 3)


def _from_matrix(write: Callable[[Any], Array], matrix: ArrayLike, width: int) -> Array:
    array = np.asarray(matrix, dtype=np.float64)
    if array.shape[-2:] != (3, 3):
        msg = f"a rotation matrix is 3 by 3, but the shape is {array.shape}"
        raise ValueError(msg)
    if array.size == 0:
        return np.empty((*array.shape[:-2], width))
    values = write(Rotation.from_matrix(array.reshape(-1, 3, 3)))
    return values.reshape(*array.shape[:-2], width)
