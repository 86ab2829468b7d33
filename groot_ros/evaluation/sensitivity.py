"""What the policy looks at: how much its actions change when a part of what it sees is taken away."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groot_ros.evaluation.columns import ActionColumns
from groot_ros.evaluation.policies import ReplayablePolicy
from groot_ros.observation import ActionChunk, Observation

Array = NDArray[np.float64]
OTHER_SEED = 1_000_003


@dataclass
class _Change:
    """Sums of the absolute changes of one probe."""

    absolute: Array
    probes: int = 0


@dataclass
class Sensitivity:
    """Asks the policy again, with one thing changed and the same seed.

    Attributes:
        policy: The policy.
        columns: The action dimensions.
        seed: Seed of the predictions.
        other_instruction: Another task of the recordings; None where there is only one.

    """

    policy: ReplayablePolicy
    columns: ActionColumns
    seed: int
    other_instruction: str | None
    _changes: dict[str, _Change] = field(default_factory=dict)
    _first_state: dict[str, NDArray[np.float32]] | None = None

    def begin(self) -> None:
        """A new episode."""
        self._first_state = None

    def probe(self, observation: Observation) -> None:
        """Ask about one observation."""
        base = self._predict(observation, self.seed)
        self._compare("other seed", base, self._predict(observation, self.seed + OTHER_SEED))
        if self.other_instruction is not None and self.other_instruction != observation.instruction:
            changed = replace(observation, instruction=self.other_instruction)
            self._compare("other instruction", base, self._predict(changed, self.seed))
        for camera, frames in observation.images.items():
            black = {**observation.images, camera: np.zeros_like(frames)}
            self._compare(f"black {camera}", base, self._predict(replace(observation, images=black), self.seed))
        if self._first_state is None:
            self._first_state = observation.state
        else:
            frozen = replace(observation, state=self._first_state)
            self._compare("frozen state", base, self._predict(frozen, self.seed))

    def results(self, scale: Array) -> dict[str, Any]:
        """Mean absolute change of the actions by what was changed: in the policy's units by group, and normalised.

        Args:
            scale: Half the trained range of each column ``(width,)``; NaN where it is not known.

        """
        results: dict[str, Any] = {}
        for name, change in sorted(self._changes.items()):
            mean = change.absolute / change.probes
            normalised = (mean / scale)[np.isfinite(scale) & (scale > 0)]
            results[name.replace(" ", "_")] = {
                "probes": change.probes,
                "change": {group: float(mean[part].mean()) for group, part in self.columns.slices.items()},
                "change_normalised": float(normalised.mean()) if normalised.size else None,
            }
        return results

    def _predict(self, observation: Observation, seed: int) -> ActionChunk:
        return self.policy.predict(observation, None, seed)

    def _compare(self, name: str, base: ActionChunk, other: ActionChunk) -> None:
        rows = self.columns.difference(
            self.columns.join(other.groups, other.horizon), self.columns.join(base.groups, base.horizon)
        )
        change = self._changes.setdefault(name, _Change(np.zeros(self.columns.width)))
        change.absolute += np.abs(rows).mean(axis=0)
        change.probes += 1
