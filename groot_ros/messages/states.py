"""One message of a state source to the robot's values, whatever kind of source it is."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from groot_ros.contract.sources import ArraySource, FieldSource, JointSource, PoseSource, StateSource
from groot_ros.messages.arrays import read_multi_array
from groot_ros.messages.fields import read_numbers
from groot_ros.messages.joints import read_named_values
from groot_ros.messages.poses import read_pose


def read_state(source: StateSource, message: Any, where: str) -> NDArray[np.float64]:  # noqa: ANN401
    """The robot's values of one message, float64 ``(R,)``, in topic units; a pose has seven.

    Transforms are another matter, since several messages make one pose: see `TransformTracker`.

    Raises:
        MessageError: The message does not hold what the contract says.
        TypeError: The source is a transform.

    """
    if isinstance(source, JointSource):
        return read_named_values(
            message, source.joints, where, names_field=source.joint_names_field, values_field=source.field
        )
    if isinstance(source, ArraySource):
        return read_multi_array(message, source.names, where)
    if isinstance(source, FieldSource):
        return read_numbers(message, source.fields, where)
    if isinstance(source, PoseSource):
        return read_pose(message, where, field=source.field)
    msg = "a transform is followed by a TransformTracker, not read from one message"
    raise TypeError(msg)
