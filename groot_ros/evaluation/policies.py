"""Policies that need no weights: the recording itself, with or without a known error, and the two baselines."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from groot_ros.contract import Contract
from groot_ros.contract.actions import Meaning
from groot_ros.evaluation.episode import Episode
from groot_ros.observation import NANOSECONDS_PER_SECOND, ActionChunk, Observation
from groot_ros.policy import StageTimings

Array = NDArray[np.float64]


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
        period_ns = NANOSECONDS_PER_SECOND / self.contract.rate_hz
        times_ns = observation.stamp_ns + np.rint(np.arange(self.horizon) * period_ns).astype(np.int64)
        return ActionChunk(observation.stamp_ns, self.contract.period_s, self.rows(observation, times_ns), self.names)

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
            action = self.contract.actions[group]
            state_group = action.state or group
            values[group] = np.full(len(dimensions), np.nan)
            if action.meaning in {Meaning.VELOCITY, Meaning.DELTA}:
                values[group] = np.zeros(len(dimensions))
            elif state_group in self.contract.state and state_group in observation.state:
                measured = dict(
                    zip(self.contract.state_dimensions(state_group), observation.state[state_group][-1], strict=True)
                )
                values[group] = np.array([float(measured.get(name, np.nan)) for name in dimensions])
        return values


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
        standing = self.standing(observation)
        rows = {}
        for group in self.names:
            values = demonstration.values[group]
            if known.size:
                nearest = known[np.clip(np.searchsorted(known, np.arange(len(values))), 0, len(known) - 1)]
                values = values[np.where(demonstration.known, np.arange(len(values)), nearest)]
            else:
                values = np.tile(standing[group], (len(values), 1))
            rows[group] = values + self._error.get(group, 0.0)
        return rows


class HoldStill(DebugPolicy):
    """The first baseline: stay where the robot is."""

    def rows(self, observation: Observation, times_ns: NDArray[np.int64]) -> dict[str, Array]:
        """See `DebugPolicy.rows`."""
        return {group: np.tile(values, (len(times_ns), 1)) for group, values in self.standing(observation).items()}


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
            rows[group] = np.tile(np.where(np.isfinite(values), values, standing[group]), (len(times_ns), 1))
        return rows


def without_images(observation: Observation) -> Observation:
    """The observation for a policy that looks at no picture."""
    return replace(observation, images={}, image_stamps_ns={})
