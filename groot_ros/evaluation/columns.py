"""The action dimensions of a contract side by side: one column each, and what makes two values of it differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from groot_ros.contract import Contract
from groot_ros.contract.actions import DimensionKind
from groot_ros.contract.outputs import GripperCommandOutput

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ActionColumns:
    """All action dimensions.

    Attributes:
        groups: Action group to its dimension names; groups without names are left out.
        kinds: How each column may be joined in time.
        periods: Length of a full turn of each column that wraps, in the policy's units; infinity elsewhere.
        levels: Column of a gripper to the value between open and closed, where the contract says it; NaN where only the
            range of the values can tell.

    """

    groups: dict[str, tuple[str, ...]]
    kinds: tuple[DimensionKind, ...]
    periods: Array
    levels: dict[int, float]

    @classmethod
    def from_contract(cls, contract: Contract) -> ActionColumns:
        """Read the action groups of a contract."""
        groups: dict[str, tuple[str, ...]] = {}
        kinds: list[DimensionKind] = []
        periods: list[float] = []
        levels: dict[int, float] = {}
        sent = {
            (row.group, row.dimension)
            for name, target in contract.outputs.items()
            if isinstance(target, GripperCommandOutput)
            for row in contract.output_rows(name)
        }
        for group, action in contract.actions.items():
            action_map = contract.action_map(group)
            if not action_map.dimensions:
                continue
            groups[group] = tuple(action_map.dimensions)
            factors = _turn_factors(contract, group)
            for name, kind in zip(action_map.dimensions, action_map.kinds, strict=True):
                column = len(periods)
                periods.append(factors.get(name, np.inf))
                kinds.append(kind)
                if kind is DimensionKind.BINARY and action.open is not None and action.closed is not None:
                    levels[column] = (action.open.policy + action.closed.policy) / 2.0
                elif "gripper" in name or "gripper" in group or (group, name) in sent:
                    levels[column] = np.nan
        return cls(groups, tuple(kinds), np.array(periods), levels)

    @cached_property
    def names(self) -> list[str]:
        """Column names, ``<group>/<dimension>``."""
        return [f"{group}/{name}" for group, names in self.groups.items() for name in names]

    @cached_property
    def slices(self) -> dict[str, slice]:
        """The columns of each group."""
        slices, start = {}, 0
        for group, names in self.groups.items():
            slices[group] = slice(start, start + len(names))
            start += len(names)
        return slices

    @cached_property
    def _wrapped(self) -> NDArray[np.intp]:
        return np.flatnonzero(np.isfinite(self.periods))

    @property
    def width(self) -> int:
        """Number of columns."""
        return len(self.periods)

    def join(self, values: Mapping[str, Array], rows: int) -> Array:
        """Values by group ``(rows, D)`` as ``(rows, width)``; NaN where a group is missing."""
        joined = np.full((rows, self.width), np.nan)
        self.join_into(joined, values)
        return joined

    def join_into(self, joined: Array, values: Mapping[str, Array]) -> None:
        """Write values by group ``(..., D)`` into their columns of ``joined`` ``(..., width)``."""
        for group, columns in self.slices.items():
            if group in values:
                joined[..., columns] = values[group]

    def difference(self, first: Array, second: Array) -> Array:
        """``first - second`` ``(..., width)``, by the shortest arc where a column wraps."""
        error: Array = first - second
        wrapped = self._wrapped
        if wrapped.size:
            period = self.periods[wrapped]
            error[..., wrapped] -= period * np.round(error[..., wrapped] / period)
        return error


def _turn_factors(contract: Contract, group: str) -> dict[str, float]:
    """The full turns of a group's wrapped dimensions in the policy's units."""
    action_map = contract.action_map(group)
    turns = {}
    for name, period in action_map.periods.items():
        column = action_map.dimensions.index(name)
        zero = np.zeros(action_map.robot_width)
        full = zero.copy()
        full[action_map.robot_names.index(name) if name in action_map.robot_names else column] = period
        turns[name] = float(abs(action_map.to_policy(full)[column] - action_map.to_policy(zero)[column]))
    return turns
