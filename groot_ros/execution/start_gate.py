"""The first command after a standstill: near where the robot stands, or approached by a ramp, or refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from groot_ros.contract.actions import Meaning
from groot_ros.contract.outputs import GripperCommandOutput
from groot_ros.contract.timing import Motion, nanoseconds
from groot_ros.execution.columns import Array
from groot_ros.execution.outputs import Measurement, Route
from groot_ros.execution.reference import StartRamp
from groot_ros.execution.status import Acceptance, Refusal
from groot_ros.execution.twist_sender import pose_difference


@dataclass(frozen=True)
class Start:
    """How one output begins to move.

    Attributes:
        ramp: The way to a plan that begins elsewhere; None where it begins where the robot stands.
        moved_to: Where the robot stands ``(J,)``, if something else has moved it since its last command.

    """

    ramp: StartRamp | None = None
    moved_to: Array | None = None


def gate(
    first: Mapping[str, Array],
    now_ns: int,
    motion: Motion,
    *,
    routes: Sequence[Route],
    measurement: Measurement | None,
    commanded: Mapping[str, Array | None],
    at_rest: bool,
) -> dict[str, Start] | Acceptance:
    """How all outputs may begin to move, by their names, or why they must not.

    Args:
        first: What the plan wants now of each output ``(J,)``.
        now_ns: The time.
        motion: The contract's tolerance and ramp.
        routes: The outputs.
        measurement: Where the robot is.
        commanded: What each output was sent last, None if nothing.
        at_rest: Whether the robot has come to rest; before, what is measured lags behind what was sent.

    """
    starts: dict[str, Start] = {}
    for route in routes:
        if not _has_place(route):
            starts[route.name] = Start()
            continue
        stands = _stand(route, motion, measurement, commanded[route.name], at_rest=at_rest)
        if isinstance(stands, Acceptance):
            return stands
        values, moved = stands
        distance, name = _distance(route, values, first[route.name])
        ramp = None
        if distance > motion.start_tolerance:
            if motion.start_ramp_s is None:
                return Acceptance(
                    Refusal.START_JUMP,
                    f"output {route.name}: the first command would move {name} by {distance:.3f}, but start_tolerance "
                    f"is {motion.start_tolerance:.3f}; bring the robot to where the policy begins, or set "
                    "motion.start_ramp_s",
                )
            ramp = StartRamp(values, now_ns, nanoseconds(motion.start_ramp_s))
        starts[route.name] = Start(ramp, values if moved else None)
    return starts


def moved_to(route: Route, motion: Motion, *, measurement: Measurement | None, commanded: Array | None) -> Array | None:
    """Where a robot stands that something else has moved since its last command ``(J,)``; None if nothing has.

    A joint that sags or lags by less than ``start_tolerance`` has not been moved and stays as it was commanded, and so
    does what is neither a position nor a pose: a closed two-position gripper stays closed.
    """
    measured = measurement.of(route) if measurement is not None else None
    if measured is None or commanded is None or not _has_place(route):
        return None
    if _distance(route, measured, commanded)[0] <= motion.start_tolerance:
        return None
    if route.is_pose:
        return measured
    gaps = np.abs(route.columns.difference(commanded[None], measured[None])[0])
    return np.where(_counted(route) & (gaps > motion.start_tolerance), measured, commanded)


def stands_as_told(route: Route, motion: Motion, *, measurement: Measurement | None, commanded: Array | None) -> bool:
    """Whether a robot at rest is where its last command has brought it, so that the command may be given once more.

    Where it is not, its controller holds it elsewhere, or it presses against something, or is not measured: the old
    command would move it, and a new one might let go of what it holds.
    """
    if not _has_place(route):
        return True
    measured = measurement.of(route) if measurement is not None else None
    if measured is None or commanded is None:
        return False
    return _distance(route, measured, commanded)[0] <= motion.start_tolerance


def _stand(
    route: Route, motion: Motion, measurement: Measurement | None, commanded: Array | None, *, at_rest: bool
) -> tuple[Array, bool] | Acceptance:
    """Where an output sets out from ``(J,)``, and whether something else has moved it there."""
    measured = measurement.of(route) if measurement is not None else None
    if measured is None:
        return Acceptance(
            Refusal.NOT_MEASURED,
            f"output {route.name}: motion must not begin, because where {', '.join(route.names)} stand is not "
            "measured; give the contract's state a group for them, and name it in the action's key state",
        )
    moved = moved_to(route, motion, measurement=measurement, commanded=commanded) if at_rest else None
    if moved is not None:
        return moved, True
    # Rather from what was sent last than from the sag below it.
    return (measured if commanded is None else commanded), False


def _has_place(route: Route) -> bool:
    """A gripper's action server moves at its own speed; velocities, deltas and levels have no place to start from."""
    return not isinstance(route.target, GripperCommandOutput) and (route.is_pose or bool(_counted(route).any()))


def _counted(route: Route) -> NDArray[np.bool_]:
    """Which columns ``(J,)`` say where the robot is: positions, but no two-position grippers."""
    counted = np.array([meaning is Meaning.POSITION for meaning in route.meanings])
    counted[list(route.levels)] = False
    return counted


def _distance(route: Route, start: Array, end: Array) -> tuple[float, str]:
    """The largest way between two positions of an output, and what makes it; velocities and binaries do not count."""
    if route.is_pose:
        way = pose_difference(start, end)
        parts = {"position": float(np.linalg.norm(way[:3])), "orientation": float(np.linalg.norm(way[3:]))}
        name = max(parts, key=lambda part: parts[part])
        return parts[name], name
    change = np.abs(route.columns.difference(start[None], end[None])[0])
    change[~_counted(route)] = 0.0
    worst = int(np.argmax(change))
    return float(change[worst]), route.names[worst]
