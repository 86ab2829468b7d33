"""From action groups to outputs: every dimension goes somewhere or is unused, and has limits or none in writing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from groot_ros.contract.actions import ActionGroup, Meaning
from groot_ros.contract.groups import action_map
from groot_ros.contract.limits import Limits
from groot_ros.contract.outputs import (
    FloatOutput,
    GripperCommandOutput,
    JointTrajectoryOutput,
    NamedOutput,
    OutputTarget,
    PoseOutput,
    PositionCommandOutput,
    TwistOutput,
)
from groot_ros.contract.schema import FaultyKeyError
from groot_ros.contract.sources import StateSource
from groot_ros.contract.timing import Motion

Actions = Mapping[str, ActionGroup]
State = Mapping[str, Sequence[StateSource]]

ALLOWED_MEANINGS: dict[type, tuple[Meaning, ...]] = {
    JointTrajectoryOutput: (Meaning.POSITION, Meaning.DELTA),
    PositionCommandOutput: (Meaning.POSITION, Meaning.VELOCITY, Meaning.DELTA),
    TwistOutput: (Meaning.VELOCITY, Meaning.POSE),
    PoseOutput: (Meaning.POSE, Meaning.DELTA),
    FloatOutput: (Meaning.POSITION, Meaning.VELOCITY, Meaning.DELTA),
    GripperCommandOutput: (Meaning.POSITION,),
}


@dataclass(frozen=True)
class OutputRow:
    """One value that an output sends.

    Attributes:
        group: Action group.
        dimension: Dimension of the group.
        robot_name: What the robot calls it: the joint, or the dimension of a pose or twist.

    """

    group: str
    dimension: str
    robot_name: str


def output_rows(output: OutputTarget, actions: Actions, state: State) -> list[OutputRow]:
    """The values that an output sends, in its order."""
    drawn = [
        (group, dimension)
        for group, wanted in output.draws.items()
        for dimension in (action_map(group, actions, state).dimensions if wanted == "all" else wanted)
    ]
    names = output.names if isinstance(output, NamedOutput) and output.names else [name for _, name in drawn]
    return [OutputRow(*pair, robot_name) for pair, robot_name in zip(drawn, names, strict=True)]


def check_actions(actions: Actions, state: State) -> None:
    """Refuse a group that names an unknown state group, or whose dimensions are written nowhere."""
    for group, action in actions.items():
        if action.state is not None and action.state not in state:
            raise FaultyKeyError(
                f"actions.{group}.state", f"found {action.state!r}", f"known state groups are {', '.join(state)}"
            )
        action_map(group, actions, state)


def check_outputs(outputs: Mapping[str, OutputTarget], actions: Actions, state: State, motion: Motion) -> None:
    """Refuse an output that draws what is not there, and a dimension that goes nowhere or twice."""
    taken: set[tuple[str, str]] = set()
    for name, output in outputs.items():
        key = f"outputs.{name}"
        for group, wanted in output.draws.items():
            _check_drawn(f"{key}.from.{group}", output, group, wanted, actions=actions, state=state)
            if (
                actions[group].meaning is Meaning.DELTA
                and not actions[group].integrate
                and motion.mode != "synchronous"
            ):
                raise FaultyKeyError(
                    f"actions.{group}.meaning",
                    "found delta with asynchronous motion",
                    "write motion: {mode: synchronous}, or integrate: true for absolute targets",
                )
        _check_names(key, output, actions, state)
        rows = output_rows(output, actions, state)
        sent = [row.robot_name for row in rows]
        twice = sorted({robot_name for robot_name in sent if sent.count(robot_name) > 1})
        if isinstance(output, NamedOutput) and twice and len(set(rows)) == len(rows):
            raise FaultyKeyError(f"{key}.names", f"found {', '.join(twice)} twice", "name each value as the robot does")
        for row in rows:
            if (row.group, row.dimension) in taken:
                raise FaultyKeyError(f"{key}.from.{row.group}", f"found {row.dimension} twice", "send it once")
            taken.add((row.group, row.dimension))
    _check_all_routed(taken, actions, state)


def _check_drawn(
    key: str, output: OutputTarget, group: str, wanted: Sequence[str], *, actions: Actions, state: State
) -> None:
    if group not in actions:
        raise FaultyKeyError(key, "found no such action group", f"known are {', '.join(actions)}")
    meaning = actions[group].meaning
    allowed = ALLOWED_MEANINGS[type(output)]
    if meaning not in allowed:
        raise FaultyKeyError(
            key,
            f"found a group whose meaning is {meaning.value}",
            f"a {output.type} output takes {' or '.join(one.value for one in allowed)}",
        )
    dimensions = action_map(group, actions, state).dimensions
    for name in () if wanted == "all" else wanted:
        if name not in dimensions:
            raise FaultyKeyError(key, f"found {name!r}", f"the group's dimensions are {', '.join(dimensions)}")
    if meaning is Meaning.POSE and wanted != "all" and set(wanted) != set(dimensions):
        raise FaultyKeyError(key, f"found {', '.join(wanted)}", "a pose goes as a whole: write all")


def _check_names(key: str, output: OutputTarget, actions: Actions, state: State) -> None:
    drawn = sum(
        len(action_map(group, actions, state).dimensions) if wanted == "all" else len(wanted)
        for group, wanted in output.draws.items()
    )
    if isinstance(output, NamedOutput) and output.names is not None and len(output.names) != drawn:
        raise FaultyKeyError(
            f"{key}.names", f"found {len(output.names)} names", f"wanted {drawn}, one a drawn dimension"
        )
    if isinstance(output, FloatOutput | GripperCommandOutput) and drawn != 1:
        raise FaultyKeyError(f"{key}.from", f"found {drawn} dimensions", f"a {output.type} output takes one")
    if isinstance(output, PoseOutput | TwistOutput):
        poses = [group for group in output.draws if actions[group].meaning is Meaning.POSE]
        if (poses and len(output.draws) != 1) or (not poses and drawn != 6):
            raise FaultyKeyError(
                f"{key}.from", f"found {', '.join(output.draws)}", "wanted one pose group, or x, y, z and three turns"
            )


def _check_all_routed(taken: set[tuple[str, str]], actions: Actions, state: State) -> None:
    for group, action in actions.items():
        if action.meaning is Meaning.UNUSED:
            continue
        for name in action_map(group, actions, state).dimensions:
            if (group, name) not in taken:
                raise FaultyKeyError(
                    f"actions.{group}",
                    f"found {name}, which no output takes",
                    "route it in outputs, or write meaning: unused",
                )


def check_limits(limits: Limits | None, outputs: Mapping[str, OutputTarget], actions: Actions, state: State) -> None:
    """Refuse a joint or pose output without limits, and limits of what is not there."""
    if limits is None:
        return
    cartesian = [name for name, output in outputs.items() if isinstance(output, PoseOutput | TwistOutput)]
    joints = [
        row.robot_name
        for name, output in outputs.items()
        if name not in cartesian
        for row in output_rows(output, actions, state)
    ]
    for kind, found, known in (("joints", limits.joints, joints), ("poses", limits.poses, cartesian)):
        for name in found:
            if name not in known:
                raise FaultyKeyError(
                    f"limits.{kind}.{name}",
                    "found a name that no output sends",
                    f"known are {', '.join(known) or 'none'}",
                )
    for name in cartesian:
        if name not in limits.poses:
            raise FaultyKeyError(f"limits.poses.{name}", "found nothing", "write its limits, or none")
    for name in joints if limits.urdf is None else ():
        if name not in limits.joints:
            raise FaultyKeyError(f"limits.joints.{name}", "found nothing", "write its limits, or none, or a urdf")
