"""The first command after a standstill: near where the robot stands, or approached by a ramp, or refused."""

from __future__ import annotations

import numpy as np

from groot_ros.contract.actions import Meaning
from groot_ros.contract.outputs import GripperCommandOutput
from groot_ros.contract.timing import Motion, nanoseconds
from groot_ros.execution.columns import Array
from groot_ros.execution.outputs import Measurement, Route
from groot_ros.execution.reference import StartRamp
from groot_ros.execution.status import Acceptance, Refusal
from groot_ros.execution.twist_sender import pose_difference


def start_ramp(
    route: Route,
    first: Array,
    now_ns: int,
    motion: Motion,
    *,
    measurement: Measurement | None,
    commanded: Array | None,
) -> StartRamp | Acceptance | None:
    """How one output may begin to move.

    Args:
        route: The output.
        first: What the plan wants now ``(J,)``.
        now_ns: The time.
        motion: The contract's tolerance and ramp.
        measurement: Where the robot is.
        commanded: What it was sent last, None if nothing.

    Returns:
        None when the plan begins where the robot stands, a ramp when it does not, a refusal when it must not begin.

    """
    # A gripper's action server moves at its own speed; velocities and deltas have no place to start from.
    if isinstance(route.target, GripperCommandOutput) or route.rests_at_zero.all():
        return None
    measured = measurement.of(route) if measurement is not None else None
    if measured is None:
        return Acceptance(
            Refusal.NOT_MEASURED,
            f"output {route.name}: motion must not begin, because where {', '.join(route.names)} stand is not "
            "measured; give the contract's state a group for them, and name it in the action's key state",
        )
    start = measured
    if commanded is not None and _distance(route, measured, commanded)[0] <= motion.start_tolerance:
        start = commanded  # what was sent last, rather than the sag below it
    distance, name = _distance(route, start, first)
    if distance <= motion.start_tolerance:
        return None
    if motion.start_ramp_s is None:
        return Acceptance(
            Refusal.START_JUMP,
            f"output {route.name}: the first command would move {name} by {distance:.3f}, but start_tolerance is "
            f"{motion.start_tolerance:.3f}; bring the robot to where the policy begins, or set motion.start_ramp_s",
        )
    return StartRamp(start, now_ns, nanoseconds(motion.start_ramp_s))


def _distance(route: Route, start: Array, end: Array) -> tuple[float, str]:
    """The largest way between two positions of an output, and what makes it; velocities and binaries do not count."""
    if route.is_pose:
        way = pose_difference(start, end)
        parts = {"position": float(np.linalg.norm(way[:3])), "orientation": float(np.linalg.norm(way[3:]))}
        name = max(parts, key=lambda part: parts[part])
        return parts[name], name
    change = np.abs(route.columns.difference(start[None], end[None])[0])
    counted = np.array([meaning is Meaning.POSITION for meaning in route.meanings])
    counted[list(route.levels)] = False
    change[~counted] = 0.0
    worst = int(np.argmax(change))
    return float(change[worst]), route.names[worst]
