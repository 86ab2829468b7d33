"""Actions written against the state they start from: joints by subtraction, end-effector poses as rigid transforms.

A pose is position (metres) followed by rotation, in the layout that its kind names. With ``T`` the 4 by 4 transform of
a pose, the relative pose is ``inverse(T_reference) T_target``, and the way back is ``T_reference T_relative``.
"""

from __future__ import annotations

from enum import Enum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from groot_ros.numerics.rotations import matrix_from_rot6d, matrix_from_rotvec, rot6d_from_matrix, rotvec_from_matrix

Array = NDArray[np.float64]


class RelativeKind(Enum):
    """How a group of values composes with its reference."""

    JOINTS = "joints"
    XYZ_ROT6D = "xyz+rot6d"
    XYZ_ROTVEC = "xyz+rotvec"

    @property
    def width(self) -> int | None:
        """Numbers in one pose; None for joints, which may be any number."""
        return {RelativeKind.JOINTS: None, RelativeKind.XYZ_ROT6D: 9, RelativeKind.XYZ_ROTVEC: 6}[self]


def to_relative(target: ArrayLike, reference: ArrayLike, kind: RelativeKind) -> Array:
    """Write absolute targets against a reference.

    Args:
        target: Absolute values ``(..., D)``, for instance all rows of a chunk.
        reference: Absolute values ``(..., D)`` that broadcast against ``target``, for instance one state.
        kind: How they compose.

    Returns:
        Relative values in the shape of ``target``.

    Raises:
        ValueError: A rot6d names no rotation, or a pose has the wrong number of values.

    """
    target, reference = np.asarray(target, dtype=np.float64), np.asarray(reference, dtype=np.float64)
    if kind is RelativeKind.JOINTS:
        difference: Array = target - reference
        return difference
    target_position, target_rotation = _split(target, kind)
    reference_position, reference_rotation = _split(reference, kind)
    inverse = np.swapaxes(reference_rotation, -1, -2)
    position = _rotate(inverse, target_position - reference_position)
    return _join(position, inverse @ target_rotation, kind)


def to_absolute(relative: ArrayLike, reference: ArrayLike, kind: RelativeKind) -> Array:
    """Undo `to_relative`: the absolute targets that relative values ``(..., D)`` mean from this reference.

    Raises:
        ValueError: A rot6d names no rotation, or a pose has the wrong number of values.

    """
    relative, reference = np.asarray(relative, dtype=np.float64), np.asarray(reference, dtype=np.float64)
    if kind is RelativeKind.JOINTS:
        total: Array = reference + relative
        return total
    relative_position, relative_rotation = _split(relative, kind)
    reference_position, reference_rotation = _split(reference, kind)
    position = reference_position + _rotate(reference_rotation, relative_position)
    return _join(position, reference_rotation @ relative_rotation, kind)


def _split(pose: Array, kind: RelativeKind) -> tuple[Array, Array]:
    if pose.shape[-1:] != (kind.width,):
        msg = f"a pose written as {kind.value} has {kind.width} numbers in its last axis, but the shape is {pose.shape}"
        raise ValueError(msg)
    to_matrix = matrix_from_rot6d if kind is RelativeKind.XYZ_ROT6D else matrix_from_rotvec
    return pose[..., :3], to_matrix(pose[..., 3:])


def _join(position: Array, rotation: Array, kind: RelativeKind) -> Array:
    write = rot6d_from_matrix if kind is RelativeKind.XYZ_ROT6D else rotvec_from_matrix
    return np.concatenate([position, write(rotation)], axis=-1)


def _rotate(rotation: Array, vectors: Array) -> Array:
    rotated: Array = (rotation @ vectors[..., None])[..., 0]
    return rotated
