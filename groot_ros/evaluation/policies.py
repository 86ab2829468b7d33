"""Policies that need no weights: the recording itself, with or without a known error, and the two baselines."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from groot_ros.contract import Contract
from groot_ros.contract.actions import Meaning
from groot_ros.errors import ObservationError, ProcessingError
from groot_ros.evaluation.episode import Episode
from groot_ros.observation import NANOSECONDS_PER_SECOND, ActionChunk, Observation
from groot_ros.policy import StageTimings

Array = NDArray[np.float64]

PREDICTION_FAULTS = (ObservationError, ProcessingError)
"""What one observation may do to a prediction: it gives no chunk, and the replay goes on, as the policy node does."""


class ReplayablePolicy(Protocol):
    """What the replay wants of a policy; `groot_ros.policy.GrootPolicy` is one."""

    @property
    def horizon(self) -> int:
        """Rows of a chunk."""

    @property
    def last_timings(self) -> StageTimings | None:
        """Where the time of the last prediction went; None where nothing was measured."""

    def predict(
        self,
        observation: Observation,
        previous_chunk: ActionChunk | None = None,
        seed: int | None = None,
        *,
        frozen_rows: int = 0,
        ramp_rate: float = 6.0,
    ) -> ActionChunk:
        """Predict the actions that follow an observation."""

    def rollout(self, chunk: ActionChunk, previous: ActionChunk | None = None) -> ActionChunk:
        """The chunk as the robot takes it."""

    def unrolled(self, prefix: ActionChunk, chunk: ActionChunk) -> ActionChunk:
        """A prefix whose transformed groups say again what the policy said."""


class DebugPolicy(ABC):
    """A policy that looks at no picture and answers at once.

    Args:
        contract: The action groups, and the time between two rows.
        horizon: Rows of a chunk.

    """

    last_timings: StageTimings | None = None

    def __init__(self, contract: Contract, horizon: int) -> None:
        self.contract = contract
        self.horizon = horizon
        names = {group: contract.action_dimensions(group) for group in contract.actions}
        self.names = {group: dimensions for group, dimensions in names.items() if dimensions}
        self._episode: Episode | None = None
        period_ns = NANOSECONDS_PER_SECOND / contract.rate_hz
        self._offsets_ns = np.rint(np.arange(horizon) * period_ns).astype(np.int64)
        self._measured = {group: _measured(contract, group, dimensions) for group, dimensions in self.names.items()}

    def begin(self, episode: Episode) -> None:
        """Note what is being played."""
        self._episode = episode

    @abstractmethod
    def rows(self, observation: Observation, times_ns: NDArray[np.int64]) -> dict[str, Array]:
        """The actions ``(H, D)`` by group for the times of the rows."""

    def predict(
        self,
        observation: Observation,
        previous_chunk: ActionChunk | None = None,  # noqa: ARG002 - as GrootPolicy's
        seed: int | None = None,  # noqa: ARG002
        *,
        frozen_rows: int = 0,  # noqa: ARG002
        ramp_rate: float = 6.0,  # noqa: ARG002
    ) -> ActionChunk:
        """See `ReplayablePolicy.predict`."""
        rows = self.rows(observation, observation.stamp_ns + self._offsets_ns)
        return ActionChunk(observation.stamp_ns, self.contract.period_s, rows, self.names)

    def rollout(self, chunk: ActionChunk, previous: ActionChunk | None = None) -> ActionChunk:  # noqa: ARG002
        """See `ReplayablePolicy.rollout`."""
        return chunk

    def unrolled(self, prefix: ActionChunk, chunk: ActionChunk) -> ActionChunk:  # noqa: ARG002
        """See `ReplayablePolicy.unrolled`."""
        return prefix

    @property
    def episode(self) -> Episode:
        """What is being played."""
        if self._episode is None:
            msg = "call begin() with the episode first"
            raise RuntimeError(msg)
        return self._episode

    def standing(self, observation: Observation) -> dict[str, Array]:
        """The actions ``(D,)`` by group that leave the robot where it is; NaN where that is not known."""
        values = {}
        for group, dimensions in self.names.items():
            if self.contract.actions[group].meaning in {Meaning.VELOCITY, Meaning.DELTA}:
                values[group] = np.zeros(len(dimensions))
                continue
            values[group] = np.full(len(dimensions), np.nan)
            state_group, known, columns = self._measured[group]
            if state_group in observation.state:
                values[group][known] = observation.state[state_group][-1, columns]
        return values


def _measured(contract: Contract, group: str, dimensions: Sequence[str]) -> tuple[str, list[int], list[int]]:
    """The state group of an action group, which of its dimensions that has, and where they stand in it."""
    state_group = contract.actions[group].state or group
    names = contract.state_dimensions(state_group) if state_group in contract.state else []
    known = [row for row, name in enumerate(dimensions) if name in names]
    return state_group, known, [names.index(dimensions[row]) for row in known]


class RecordedActions(DebugPolicy):
    """Replays the recording itself, for debugging without weights: its error is zero by construction.

    Args:
        contract: The action groups.
        horizon: Rows of a chunk.
        error: Added to the actions of a group, in the policy's units: a number, ``(D,)`` or ``(H, D)``.

    """

    def __init__(self, contract: Contract, horizon: int, error: Mapping[str, float | Array] | None = None) -> None:
        super().__init__(contract, horizon)
        self._error = dict(error or {})

    def rows(self, observation: Observation, times_ns: NDArray[np.int64]) -> dict[str, Array]:
        """See `DebugPolicy.rows`; beyond the end of the recording its last row, before its start its first."""
        demonstration = self.episode.demonstration(times_ns)
        known = np.flatnonzero(demonstration.known)
        if not known.size:
            values = {group: _alike(row, len(times_ns)) for group, row in self.standing(observation).items()}
        elif len(known) < len(times_ns):
            every = np.arange(len(times_ns))
            nearest = known[np.clip(np.searchsorted(known, every), 0, len(known) - 1)]
            chosen = np.where(demonstration.known, every, nearest)
            values = {group: demonstration.values[group][chosen] for group in self.names}
        else:
            values = demonstration.values
        return {group: values[group] + self._error.get(group, 0.0) for group in self.names}


class HoldStill(DebugPolicy):
    """The first baseline: stay where the robot is."""

    def rows(self, observation: Observation, times_ns: NDArray[np.int64]) -> dict[str, Array]:
        """See `DebugPolicy.rows`."""
        return {group: _alike(values, len(times_ns)) for group, values in self.standing(observation).items()}


class RepeatLastAction(DebugPolicy):
    """The second baseline: go on with the action that was commanded one row before the observation."""

    def rows(self, observation: Observation, times_ns: NDArray[np.int64]) -> dict[str, Array]:
        """See `DebugPolicy.rows`; at the start of a recording, where none was commanded yet, it holds still."""
        before = np.array([observation.stamp_ns - self.contract.period_ns], np.int64)
        demonstration = self.episode.demonstration(before)
        standing = self.standing(observation)
        rows = {}
        for group in self.names:
            values = demonstration.values[group][0]
            rows[group] = _alike(np.where(np.isfinite(values), values, standing[group]), len(times_ns))
        return rows


def without_images(observation: Observation) -> Observation:
    """The observation for a policy that looks at no picture."""
    return replace(observation, images={}, image_stamps_ns={})


def _alike(row: Array, count: int) -> Array:
    """Rows ``(count, D)`` that are all alike."""
    return np.repeat(row[np.newaxis], count, axis=0)
