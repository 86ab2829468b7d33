"""Angles in radians: wrapping, and the shortest way from one to another."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

_TURN = 2.0 * np.pi


def wrap_to_pi(angle: ArrayLike) -> NDArray[np.float64]:
    """Return the same direction as an angle in ``[-pi, pi)``.

    Args:
        angle: Radians, any shape.

    """
    values = np.asarray(angle, dtype=np.float64)
    wrapped = np.mod(values + np.pi, _TURN) - np.pi
    # Adding pi costs the last bits of a small angle; what needs no wrapping is returned as it is.
    return np.where((values >= -np.pi) & (values < np.pi), values, np.where(wrapped >= np.pi, -np.pi, wrapped))


def shortest_angle(start: ArrayLike, end: ArrayLike) -> NDArray[np.float64]:
    """Return the signed rotation, in ``[-pi, pi)`` radians, that leads from ``start`` to ``end`` the short way.

    Args:
        start: Radians, any shape.
        end: Radians, a shape that broadcasts with ``start``.

    """
    return wrap_to_pi(np.asarray(end, dtype=np.float64) - np.asarray(start, dtype=np.float64))
