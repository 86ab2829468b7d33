"""ROS messages back to commands: what another process told the robot, in the order of the contract's own names."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from groot_ros.contract.outputs import JointTrajectoryOutput, PoseOutput, PositionCommandOutput
from groot_ros.errors import MessageError
from groot_ros.execution.commands import ArrayCommand, Command, FloatCommand, PoseCommand, TrajectoryCommand
from groot_ros.execution.outputs import Route
from groot_ros.messages import header_stamp_ns, read_multi_array, read_pose, stamp_ns


def overheard_command(route: Route, message: Any, received_ns: int) -> Command | None:  # noqa: ANN401 - a ROS message
    """The command that a message is.

    Args:
        route: The output on whose topic it came.
        message: The message.
        received_ns: When it came; a trajectory whose stamp is 0 begins then.

    Returns:
        None where the message says nothing of where the robot was told to be: a twist, an empty trajectory.

    Raises:
        MessageError: The message moves other joints than the output does, or holds another number of values.

    """
    target = route.target
    where = f"output {route.name}"
    if isinstance(target, JointTrajectoryOutput):
        return _trajectory(route, message, received_ns, f"{where} on {target.topic}")
    if isinstance(target, PositionCommandOutput):
        return ArrayCommand(
            route.name, route.names, read_multi_array(message, route.names, f"{where} on {target.topic}")
        )
    if isinstance(target, PoseOutput):
        pose = read_pose(message, f"{where} on {target.topic}")
        return PoseCommand(route.name, received_ns, target.frame, pose[:3], pose[3:])
    if hasattr(message, "data"):
        return FloatCommand(route.name, float(message.data))
    return None


def _trajectory(route: Route, message: Any, received_ns: int, where: str) -> TrajectoryCommand | None:  # noqa: ANN401
    if not message.points:
        return None
    joints = list(message.joint_names)
    missing = [name for name in route.names if name not in joints]
    if missing:
        msg = f"{where}: somebody else's trajectory moves {', '.join(joints)}, but not {', '.join(missing)}"
        raise MessageError(msg)
    columns = [joints.index(name) for name in route.names]
    positions = np.array([point.positions for point in message.points], dtype=np.float64)
    offsets = np.array([stamp_ns(point.time_from_start) for point in message.points], dtype=np.int64)
    if positions.shape != (len(offsets), len(joints)) or not np.isfinite(positions).all():
        msg = f"{where}: a trajectory whose points do not hold one finite position for each of {', '.join(joints)}"
        raise MessageError(msg)
    chosen: NDArray[np.float64] = positions[:, columns]
    begin_ns = header_stamp_ns(message) or received_ns
    return TrajectoryCommand(route.name, begin_ns, route.names, offsets, chosen, np.zeros_like(chosen))
