"""Deltas as absolute targets: added up from where the robot was when the policy looked."""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from groot_ros.contract.actions import Meaning
from groot_ros.contract.poses import POSE_DIMENSIONS
from groot_ros.errors import MotionError
from groot_ros.execution.columns import Array
from groot_ros.execution.outputs import CommandMap, Measurement


def integrate_deltas(commands: CommandMap, rows: Array, start: Measurement | None) -> Array:
    """Replace integrated deltas by absolute targets: row i is the start plus the deltas 0 to i.

    Args:
        commands: Says which columns are integrated.
        rows: ``(H, columns)`` of a chunk, in the robot's units.
        start: Where the robot was at the observation.

    Raises:
        MotionError: The start of an integrated dimension was not measured.

    """
    if not commands.integrates:
        return rows
    result = rows.copy()
    names = commands.layout.columns.names
    for route in commands.routes:
        if route.integrated:
            pose = [_measured(start, f"{route.name}/{part}") for part in POSE_DIMENSIONS]
            result[:, list(route.indices)] = integrate_pose(np.array(pose), rows[:, list(route.integrated)])
            continue
        for index in route.indices:
            action = commands.contract.actions[names[index].split("/", 1)[0]]
            if action.meaning is Meaning.DELTA and action.integrate:
                result[:, index] = _measured(start, names[index]) + np.cumsum(rows[:, index])
    return result


def integrate_pose(start: Array, deltas: Array) -> Array:
    """Poses ``(H, 7)`` from a start ``(7,)`` and deltas ``(H, 6)``.

    Each turn is a rotation vector about the axes of the fixed frame, applied after the ones before it.
    """
    poses = np.empty((len(deltas), len(POSE_DIMENSIONS)))
    poses[:, :3] = start[:3] + np.cumsum(deltas[:, :3], axis=0)
    orientation = Rotation.from_quat(start[3:])
    for index, turn in enumerate(deltas[:, 3:]):
        orientation = Rotation.from_rotvec(turn) * orientation
        poses[index, 3:] = orientation.as_quat()
    return poses


def _measured(start: Measurement | None, name: str) -> float:
    if start is None or name not in start.values:
        msg = (
            f"{name}: its deltas cannot be added up, because where the robot stands is not measured; name the state "
            "group in the action's key state, or use motion: {mode: synchronous}"
        )
        raise MotionError(msg)
    return start.values[name]
