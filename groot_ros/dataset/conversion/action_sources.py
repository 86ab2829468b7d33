"""Where the actions of a dataset come from: recorded commands, or, where there are none, later states."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from groot_ros.contract import Contract
from groot_ros.contract.actions import Meaning
from groot_ros.errors import DatasetError

Values = dict[str, NDArray[np.float64]]


@dataclass(frozen=True)
class ActionSources:
    """The action groups of a dataset.

    Attributes:
        dimensions: Group to the names of its dimensions, in the contract's order.
        commanded: Groups whose values are recorded commands.
        from_state: Group to the state group whose later values stand in for commands.
        shift_rows: How many rows later.

    """

    dimensions: dict[str, tuple[str, ...]]
    commanded: tuple[str, ...]
    from_state: dict[str, str]
    shift_rows: int

    @classmethod
    def of(cls, contract: Contract) -> ActionSources:
        """What the contract's ``record`` says.

        Raises:
            DatasetError: An action group has no source.

        """
        shift = contract.record.action_from_state
        dimensions: dict[str, tuple[str, ...]] = {}
        commanded, from_state = [], {}
        for group, action in contract.actions.items():
            names = tuple(contract.action_dimensions(group))
            if group in contract.record.groups:
                commanded.append(group)
            elif action.meaning is Meaning.UNUSED:
                continue
            elif shift is not None:
                from_state[group] = _stand_in(contract, group, names)
            else:
                msg = (
                    f"{contract.path or 'the contract'}: record.{group}: found no source of this action; name the "
                    f"topic of its commands, or write record: {{action_from_state: {{shift_rows: 1}}}}"
                )
                raise DatasetError(msg)
            dimensions[group] = names
        return cls(dimensions, tuple(commanded), from_state, shift.shift_rows if from_state and shift else 0)

    def warning(self) -> str | None:
        """What to tell the person where states stand in for commands."""
        if not self.from_state:
            return None
        return (
            f"the actions of {', '.join(self.from_state)} are the states {self.shift_rows} rows later, not commands "
            f"(record.action_from_state): a policy trained on them does not learn to push"
        )

    def actions(self, commands: Mapping[str, NDArray[np.float64]], later_state: Mapping[str, object]) -> Values:
        """The action of a row.

        Args:
            commands: Commanded groups at the row's time, in the policy's units.
            later_state: State groups `shift_rows` later, ``(D,)``.

        """
        return {
            group: np.asarray(
                later_state[self.from_state[group]] if group in self.from_state else commands[group], np.float64
            )
            for group in self.dimensions
        }


def _stand_in(contract: Contract, group: str, names: tuple[str, ...]) -> str:
    action = contract.actions[group]
    state = action.state or group
    where = f"{contract.path or 'the contract'}: record.action_from_state"
    if action.meaning not in (Meaning.POSITION, Meaning.POSE):
        msg = f"{where}: the action {group} is a {action.meaning.value}, and no state is one; record its commands"
        raise DatasetError(msg)
    if state not in contract.state or tuple(contract.state_dimensions(state)) != names:
        found = ", ".join(contract.state_dimensions(state)) if state in contract.state else "nothing"
        msg = f"{where}: the action {group} has {', '.join(names)}, but the state {state} has {found}"
        raise DatasetError(msg)
    return state
