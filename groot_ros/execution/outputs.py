"""Where the columns of a plan go: which values each output of the contract takes, and where the robot is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from groot_ros.contract import Contract
from groot_ros.contract.actions import ActionGroup, Meaning
from groot_ros.contract.groups import GroupMap
from groot_ros.contract.outputs import OutputTarget
from groot_ros.contract.poses import PoseMap
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
            previous: The robot's value that was decided before, None at the start.

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
        columns: Names ``<key>/<dimension>``, kinds and periods of what it takes.
        indices: Where these stand in the plan, in the order of sending.
        names: The robot's names, one for each column (for a pose x, y, z, qx, qy, qz, qw).
        meaning: What the numbers say.
        levels: The two values of each binary column, by position.

    """

    name: str
    target: OutputTarget
    columns: Columns
    indices: tuple[int, ...]
    names: tuple[str, ...]
    meaning: Meaning
    levels: Mapping[int, BinaryLevels]

    def values(self, rows: Array) -> Array:
        """The output's columns ``(N, J)`` of plan rows ``(N, columns)``."""
        return rows[:, list(self.indices)]


@dataclass(frozen=True)
class Measurement:
    """Where the robot is: plan column name to value, in the robot's units, at one time."""

    stamp_ns: int
    values: Mapping[str, float]

    def of(self, route: Route) -> Array | None:
        """The measured values ``(J,)`` of what an output moves; None where one of them is not measured."""
        if any(name not in self.values for name in route.columns.names):
            return None
        return np.array([self.values[name] for name in route.columns.names], dtype=np.float64)


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
        layout = PlanLayout(tuple(group for group in groups if group.names))
        return cls(contract, layout, tuple(_route(contract, layout, name) for name in contract.outputs))

    def measure(self, state: Mapping[str, NDArray[np.floating]], stamp_ns: int) -> Measurement:
        """Where the robot is, from the state groups of an observation.

        Args:
            state: Modality key to values in the policy's units, ``(T, D)`` with the newest last.
            stamp_ns: When it was measured.

        """
        values: dict[str, float] = {}
        for key, action in self.contract.actions.items():
            group = action.state or key
            if group not in state or group not in self.contract.state:
                continue
            state_map = self.contract.state_map(group)
            if not _invertible(state_map):
                continue
            robot = state_map.to_robot(np.asarray(state[group], dtype=np.float64)[-1])
            values.update({f"{key}/{name}": float(v) for name, v in zip(state_map.robot_names, robot, strict=True)})
        return Measurement(stamp_ns, values)


def _route(contract: Contract, layout: PlanLayout, name: str) -> Route:
    target = contract.outputs[name]
    rows = contract.output_rows(name)
    groups = {row.group for row in rows}
    meanings = {contract.actions[group].meaning for group in groups}
    meaning = meanings.pop()
    if meaning is Meaning.POSE:
        (group,) = groups
        wanted = [(group, column) for column in contract.action_map(group).robot_names]
        names = tuple(column for _, column in wanted)
    else:
        wanted = [(row.group, row.dimension) for row in rows]
        names = tuple(row.robot_name for row in rows)
    indices = tuple(layout.index(*pair) for pair in wanted)
    levels = {}
    for position, (group, _) in enumerate(wanted):
        pair = BinaryLevels.from_contract(contract.actions[group])
        if pair is not None:
            levels[position] = pair
    return Route(name, target, layout.columns.select(indices), indices, names, meaning, levels)


def _invertible(state_map: GroupMap) -> bool:
    """Whether the robot's values can be had from the policy's: a part of a pose cannot be made whole again."""
    return all(not isinstance(part, PoseMap) or set(part.taken) == set(part.whole) for part in state_map.parts)
