"""Joint values by name, never by position."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groot_ros.errors import MessageError
from groot_ros.messages.fields import as_floats, finite, read_field


def read_joint_state(
    message: Any,  # noqa: ANN401 - sensor_msgs/JointState of rclpy or rosbags
    names: Sequence[str],
    where: str,
    *,
    field: str = "position",
) -> NDArray[np.float64]:
    """The joints ``names`` of a JointState in this order, float64 ``(D,)``; other joints may be there too.

    Args:
        message: sensor_msgs/JointState.
        names: The joints wanted.
        where: What the message is, for errors: the topic.
        field: ``position``, ``velocity`` or ``effort``.

    Raises:
        MessageError: A joint is missing, stands twice, has no value, or one that is not finite.

    """
    return read_named_values(message, names, where, names_field="name", values_field=field)


def read_named_values(
    message: Any,  # noqa: ANN401 - any message with names beside values
    names: Sequence[str],
    where: str,
    *,
    names_field: str,
    values_field: str,
) -> NDArray[np.float64]:
    """Values by name from any message that holds names beside values, float64 ``(D,)``.

    Raises:
        MessageError: As `read_joint_state`, or a field is not there.

    """
    present = tuple(read_field(message, names_field, where))
    values = as_floats(read_field(message, values_field, where), f"{where}: {values_field}")
    if len(values) != len(present):
        msg = f"{where}: {len(present)} joint names, but {len(values)} values in {values_field}"
        raise MessageError(msg)
    wanted = tuple(names)
    return finite(values[_indices(present, wanted, where)], wanted, where)


@lru_cache(maxsize=256)
def _indices(present: tuple[str, ...], wanted: tuple[str, ...], where: str) -> NDArray[np.intp]:
    """Where the wanted names stand; kept, since a publisher sends the same names each time."""
    twice = sorted({name for name in present if present.count(name) > 1})
    if twice:
        msg = f"{where}: the joint name {', '.join(twice)} stands twice in one message, so its value is unknown"
        raise MessageError(msg)
    missing = [name for name in wanted if name not in present]
    if missing:
        msg = f"{where}: the message has no joint {', '.join(missing)}; it has {', '.join(present) or 'none'}"
        raise MessageError(msg)
    return np.array([present.index(name) for name in wanted], np.intp)
