"""What the policy looks at: how much its actions change when a part of what it sees is taken away."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groot_ros.evaluation.columns import ActionColumns
from groot_ros.evaluation.policies import PREDICTION_FAULTS, ReplayablePolicy
from groot_ros.observation import ActionChunk, Observation
from groot_ros.processing.processor import Processor

Array = NDArray[np.float64]
OTHER_SEED = 1_000_003


@dataclass
class _Change:
    """Sums of the absolute changes of one probe, and how often the policy did not answer it."""

    absolute: Array
    probes: int = 0
    failed: int = 0
    fault: str = ""


@dataclass
class Sensitivity:
    """Asks the policy again, with one thing changed and the same seed.

    Attributes:
        policy: The policy.
        columns: The action dimensions.
        seed: Seed of the predictions.
        other_instruction: Another task of the recordings; None where there is only one.
        processor: The processing of a policy whose actions may be relative to the state; None where none is.

    """

    policy: ReplayablePolicy
    columns: ActionColumns
    seed: int
    other_instruction: str | None
    processor: Processor | None = None
    _changes: dict[str, _Change] = field(default_factory=dict)
    _first_state: dict[str, NDArray[np.float32]] | None = None

    def begin(self) -> None:
        """A new episode."""
        self._first_state = None

    def probe(self, observation: Observation) -> bool:
        """Ask about one observation.

        Returns:
            Whether the policy answers to it as it is; if not, nothing was measured.

        """
        try:
            base = self.policy.predict(observation, None, self.seed)
        except PREDICTION_FAULTS:
            return False
        self._compare("other seed", observation, base, observation, self.seed + OTHER_SEED)
        if self.other_instruction is not None and self.other_instruction != observation.instruction:
            changed = replace(observation, instruction=self.other_instruction)
            self._compare("other instruction", observation, base, changed, self.seed)
        for camera, frames in observation.images.items():
            black = replace(observation, images={**observation.images, camera: np.zeros_like(frames)})
            self._compare(f"black {camera}", observation, base, black, self.seed)
        if self._first_state is None:
            self._first_state = observation.state
        else:
            frozen = replace(observation, state=self._first_state)
            self._compare("frozen state", observation, base, frozen, self.seed)
        return True

    def results(self, scale: Array) -> dict[str, Any]:
        """Mean absolute change of the actions by what was changed: in the policy's units by group, and normalised.

        Args:
            scale: Half the trained range of each column ``(width,)``; NaN where it is not known.

        """
        results: dict[str, Any] = {}
        for name, change in sorted(self._changes.items()):
            mean = change.absolute / change.probes if change.probes else np.full(self.columns.width, np.nan)
            normalised = (mean / scale)[np.isfinite(mean) & np.isfinite(scale) & (scale > 0)]
            results[name.replace(" ", "_")] = {
                "probes": change.probes,
                "failed": change.failed,
                "fault": change.fault,
                "change": {
                    group: float(mean[part].mean()) if change.probes else None
                    for group, part in self.columns.slices.items()
                },
                "change_normalised": float(normalised.mean()) if normalised.size else None,
            }
        return results

    def _compare(self, name: str, observation: Observation, base: ActionChunk, changed: Observation, seed: int) -> None:
        """Ask about a changed observation, and note by how much its answer differs from that to the observation."""
        change = self._changes.setdefault(name, _Change(np.zeros(self.columns.width)))
        try:
            other = self.policy.predict(changed, None, seed)
            groups = other.groups
            if changed.state is not observation.state:
                groups = self._said_from(observation, other, changed)
        except PREDICTION_FAULTS as error:
            change.failed += 1
            change.fault = str(error)
            return
        rows = self.columns.difference(
            self.columns.join(groups, other.horizon), self.columns.join(base.groups, base.horizon)
        )
        change.absolute += np.abs(rows).mean(axis=0)
        change.probes += 1

    def _said_from(self, observation: Observation, chunk: ActionChunk, asked: Observation) -> dict[str, Array]:
        """The actions of a chunk as if the same had been said about another observation.

        A relative group is decoded against the state that was asked about. Without this, another state would move its
        actions by as much as the states differ, even if the network did not look at the state at all.
        """
        if self.processor is None:
            return chunk.groups
        said = self.processor.encode_actions(chunk.groups, asked).exact
        return self.processor.decode(said[np.newaxis], [observation])[0]
