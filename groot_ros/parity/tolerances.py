"""How far two implementations may be apart, quantity by quantity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Tolerance:
    """``|ours - theirs| <= absolute + relative * |theirs|`` for every element."""

    absolute: float = 0.0
    relative: float = 0.0

    def allowed(self, theirs: NDArray[Any]) -> NDArray[np.float64]:
        """The largest difference that each element may have."""
        allowed: NDArray[np.float64] = self.absolute + self.relative * np.abs(theirs.astype(np.float64))
        return allowed

    def __str__(self) -> str:
        """As it stands in the report."""
        if self == EXACT:
            return "exact"
        relative = f" + {self.relative:.0e} relative" if self.relative else ""
        return f"{self.absolute:.0e}{relative}"


EXACT = Tolerance()


@dataclass(frozen=True)
class Tolerances:
    """The tolerance of every quantity that is not exact by nature, as ids, masks, grids and texts are.

    The defaults are those of the golden files: what rounding alone moves on the tiny network, with a margin, and far
    below what any fault moves.

    Attributes:
        pixel_values: One rounding of a number in float32.
        state: Statistics are float64, the result is float32; also for training targets.
        action_pred: The network amplifies rounding.
        decoded: Physical actions.
        loss: The training loss.
        stage: Within the network, relative to the largest value of a stage.

    """

    pixel_values: Tolerance = Tolerance(1e-6)
    state: Tolerance = Tolerance(2e-6)
    action_pred: Tolerance = Tolerance(3e-4, 1e-3)
    decoded: Tolerance = Tolerance(1e-5, 1e-5)
    loss: Tolerance = Tolerance(1e-5, 1e-4)
    stage: float = 2e-3

    @classmethod
    def same_for_all(cls, absolute: float, relative: float) -> Tolerances:
        """One tolerance for all of them, as users of artifacts of real checkpoints know it."""
        one = Tolerance(absolute, relative)
        return cls(pixel_values=one, state=one, action_pred=one, decoded=one, loss=one)
