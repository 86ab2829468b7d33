"""What a robot is told to do at the times of rows, in the policy's units: gathered, and turned many rows at a time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from groot_ros.execution.executor import Executor
from groot_ros.execution.outputs import Route

Array = NDArray[np.float64]


class SentRows:
    """Rows of all outputs.

    Args:
        executor: Whose commands.

    """

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._routes = executor.map.routes
        self._layout = executor.map.layout
        self._stamps_ns: list[int] = []
        self._sent: list[list[Array | None]] = [[] for _ in self._routes]

    def __len__(self) -> int:
        """How many rows wait to be taken."""
        return len(self._stamps_ns)

    def note(self, row_ns: int) -> None:
        """Note what the outputs are told to be doing at a row's time."""
        self._stamps_ns.append(row_ns)
        for route, sent in zip(self._routes, self._sent, strict=True):
            sent.append(self._executor.commanded(route.name, row_ns))

    def take(self) -> tuple[NDArray[np.int64], dict[str, Array]]:
        """The rows since the last call: times ``(N,)``, and action group to values ``(N, D)``; NaN for nothing sent."""
        stamps_ns = np.array(self._stamps_ns, np.int64)
        rows = np.full((len(stamps_ns), len(self._layout.columns.names)), np.nan)
        for route, sent in zip(self._routes, self._sent, strict=True):
            _put(rows, route, sent)
            sent.clear()
        self._stamps_ns = []
        values, start = {}, 0
        for group in self._layout.groups:
            part = rows[:, start : start + len(group.columns.names)]
            start += part.shape[1]
            known = ~np.isnan(part).any(axis=1)
            values[group.key] = np.full((len(rows), len(group.names)), np.nan)
            values[group.key][known] = group.from_columns(part[known])
        return stamps_ns, values


def _put(rows: Array, route: Route, sent: list[Array | None]) -> None:
    """Write what an output was sent into the columns of the plan; a gripper's two levels in the policy's units."""
    known = [row for row, values in enumerate(sent) if values is not None]
    if not known:
        return
    values = np.array([sent[row] for row in known])
    for position, levels in route.levels.items():
        value = values[:, position]
        is_open = np.abs(value - levels.open_robot) <= np.abs(value - levels.closed_robot)
        values[:, position] = np.where(is_open, levels.open_policy, levels.closed_policy)
    rows[np.ix_(known, route.indices)] = values
