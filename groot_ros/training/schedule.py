"""The learning rate over the steps: a straight rise, then half a cosine."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class CosineSchedule:
    """Share of the largest learning rate at a step.

    Attributes:
        steps: Steps of the whole training.
        warmup_steps: Steps of the rise.
        final_share: At the end.

    """

    steps: int
    warmup_steps: int
    final_share: float

    @classmethod
    def of(cls, steps: int, warmup_ratio: float, final_share: float) -> CosineSchedule:
        """The schedule of a training; the rise takes its share of the steps that are really done, rounded up."""
        return cls(steps, math.ceil(steps * warmup_ratio), final_share)

    def __call__(self, step: int) -> float:
        """The share after ``step`` optimiser steps."""
        if step < self.warmup_steps:
            return step / self.warmup_steps
        progress = min(1.0, (step - self.warmup_steps) / max(1, self.steps - self.warmup_steps))
        return self.final_share + (1.0 - self.final_share) * 0.5 * (1.0 + math.cos(math.pi * progress))
