"""Where the columns of a plan go: which values each output of the contract takes, and where the robot is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from groot_ros.contract import Contract
from groot_ros.contract.actions import ActionGroup, Meaning
from groot_ros.contract.groups import GroupMap
from groot_ros.contract.outputs import OutputTarget, PoseOutput, TwistOutput
from groot_ros.contract.poses import POSE_DIMENSIONS, PoseMap
from groot_ros.execution.columns import Array, Columns
from groot_ros.execution.layout import GroupLayout, PlanLayout


@dataclass(frozen=True)
class BinaryLevels:
    """The two positions of a gripper: what the policy says, what the robot is sent, and the hysteresis between them."""

    open_policy: float
    closed_policy: float
    open_robot: float
    closed_robot: float
    hysteresis: float

    @classmethod
    def from_contract(cls, action: ActionGroup) -> BinaryLevels | None:
        """The levels of an action group; None for a continuous one."""
        if action.open is None or action.closed is None:
            return None
        return cls(action.open.policy, action.closed.policy, action.open.robot, action.closed.robot, action.hysteresis)

    def decide(self, policy_value: float, previous: float | None) -> float:
        """The robot's value for open or closed, nothing between; near the middle what it was before.

        Args:
            policy_value: What the policy says.
            previous: Where the robot's gripper is or was sent before; None at the start.

        """
        towards_closed = (policy_value - self.open_policy) / (self.closed_policy - self.open_policy)
        threshold = 0.5
        if previous is not None:
            was_closed = abs(previous - self.closed_robot) < abs(previous - self.open_robot)
            threshold += -self.hysteresis if was_closed else self.hysteresis
        return self.closed_robot if towards_closed > threshold else self.open_robot


@dataclass(frozen=True)
class Route:
    """One output of the contract with the plan columns that it takes.

    Attributes:
        name: The output's name in the contract.
        target: What the contract says about it (type, topic, frame, rate).
        columns: Names, kinds and periods of what it takes.
        indices: Where these stand in the plan, in the order of sending.
        names: The robot's names, one for each column (for a pose x, y, z, qx, qy, qz, qw).
        meanings: What each column says; deltas that were integrated are positions.
        levels: The two values of each binary column, by position.
        integrated: Plan columns of the deltas that a pose is integrated from, in the order x, y, z and three turns.

    """

    name: str
    target: OutputTarget
    columns: Columns
    indices: tuple[int, ...]
    names: tuple[str, ...]
    meanings: tuple[Meaning, ...]
    levels: Mapping[int, BinaryLevels]
    integrated: tuple[int, ...] = ()

    @property
    def is_cartesian(self) -> bool:
        """Whether it is a pose or a twist."""
        return isinstance(self.target, PoseOutput | TwistOutput)

    @property
    def is_pose(self) -> bool:
        """Whether its columns are a pose."""
        return self.names == POSE_DIMENSIONS

    @property
    def is_stepped(self) -> bool:
        """Whether it holds plain deltas: then each row is sent once, and nothing lies between two rows."""
        return Meaning.DELTA in self.meanings

    @cached_property
    def rests_at_zero(self) -> NDArray[np.bool_]:
        """Which columns stand still at zero (velocities and deltas) and not where they are, bool ``(J,)``."""
        return np.array([meaning in {Meaning.VELOCITY, Meaning.DELTA} for meaning in self.meanings])

    def values(self, rows: Array) -> Array:
        """The output's columns ``(N, J)`` of plan rows ``(N, columns)``."""
        return rows[:, list(self.indices)]

    def resting(self, values: Array) -> Array:
        """The values ``(J,)`` that hold the robot where ``values`` have brought it."""
        return np.where(self.rests_at_zero, 0.0, values)


@dataclass(frozen=True)
class Measurement:
    """Where the robot is: plan column name to value, in the robot's units, at one time."""

    stamp_ns: int
    values: Mapping[str, float]

    def of(self, route: Route) -> Array | None:
        """Where what an output moves stands ``(J,)``; None where one of them is not measured.

        What stands still at zero (velocities and deltas) is zero: what is measured under its name is a position.
        """
        stands = np.zeros(len(route.names))
        for column in np.flatnonzero(~route.rests_at_zero):
            value = self.values.get(route.columns.names[column])
            if value is None:
                return None
            stands[column] = value
        return stands


@dataclass(frozen=True)
class CommandMap:
    """The policy's action groups on one side, the robot's outputs on the other, as the contract says."""

    contract: Contract
    layout: PlanLayout
    routes: tuple[Route, ...]

    @classmethod
    def from_contract(cls, contract: Contract) -> CommandMap:
        """Read the routes of a contract."""
        groups = [
            GroupLayout(key, action.meaning, contract.action_map(key)) for key, action in contract.actions.items()
        ]
        integrated = tuple(
            name
            for name, target in contract.outputs.items()
            if isinstance(target, PoseOutput) and _is_integrated(contract, name)
        )
        layout = PlanLayout(tuple(group for group in groups if group.names), integrated)
        return cls(contract, layout, tuple(_route(contract, layout, name) for name in contract.outputs))

    @cached_property
    def integrates(self) -> bool:
        """Whether any deltas are added up to absolute targets."""
        return any(action.integrate for action in self.contract.actions.values())

    @cached_property
    def continuous(self) -> list[int]:
        """The plan columns that are sent as they are: all but those of two-position grippers."""
        return [
            index
            for route in self.routes
            for position, index in enumerate(route.indices)
            if position not in route.levels
        ]

    @cached_property
    def _measured(self) -> list[tuple[str, GroupMap, list[str]]]:
        """The state group of each action group whose values tell where the robot is, with their plan columns."""
        measured = []
        for key, action in self.contract.actions.items():
            group = action.state or key
            if group in self.contract.state:
                state_map = self.contract.state_map(group)
                if _invertible(state_map):
                    measured.append((group, state_map, [f"{key}/{name}" for name in state_map.robot_names]))
        return measured

    def measure(self, state: Mapping[str, NDArray[np.floating]], stamp_ns: int) -> Measurement:
        """Where the robot is, from the state groups of an observation.

        Args:
            state: Modality key to values in the policy's units, ``(T, D)`` with the newest last.
            stamp_ns: When it was measured.

        """
        values: dict[str, float] = {}
        for group, state_map, names in self._measured:
            if group in state:
                robot = state_map.to_robot(np.asarray(state[group], dtype=np.float64)[-1])
                values.update(zip(names, robot.tolist(), strict=True))
        for name in self.layout.integrated_poses:
            # The deltas of a pose start from the pose that their action group names as its state.
            key = self.contract.output_rows(name)[0].group
            values.update(
                {f"{name}/{part}": values[f"{key}/{part}"] for part in POSE_DIMENSIONS if f"{key}/{part}" in values}
            )
        return Measurement(stamp_ns, values)


def _is_integrated(contract: Contract, output: str) -> bool:
    return all(contract.actions[row.group].integrate for row in contract.output_rows(output))


def _route(contract: Contract, layout: PlanLayout, name: str) -> Route:
    target = contract.outputs[name]
    rows = contract.output_rows(name)
    drawn = [(row.group, row.dimension) for row in rows]
    names = tuple(row.robot_name for row in rows)
    integrated: tuple[int, ...] = ()
    if contract.actions[rows[0].group].meaning is Meaning.POSE:
        drawn = [(rows[0].group, column) for column in POSE_DIMENSIONS]
        names = POSE_DIMENSIONS
    elif name in layout.integrated_poses:
        integrated = tuple(layout.index(*pair) for pair in drawn)
        drawn = [(name, column) for column in POSE_DIMENSIONS]
        names = POSE_DIMENSIONS
    indices = tuple(layout.index(*pair) for pair in drawn)
    levels, meanings = {}, []
    for position, (group, _) in enumerate(drawn):
        action = contract.actions.get(group)
        pair = BinaryLevels.from_contract(action) if action is not None else None
        if pair is not None:
            levels[position] = pair
        is_target = action is None or action.integrate
        meanings.append(Meaning.POSITION if is_target else contract.actions[group].meaning)
    columns = layout.columns.select(indices)
    return Route(name, target, columns, indices, names, tuple(meanings), levels, integrated)


def _invertible(state_map: GroupMap) -> bool:
    """Whether the robot's values can be had from the policy's: a part of a pose cannot be made whole again."""
    return all(not isinstance(part, PoseMap) or set(part.taken) == set(part.whole) for part in state_map.parts)
