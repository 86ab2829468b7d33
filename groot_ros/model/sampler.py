"""From noise to actions: Euler integration of the velocity field, with real-time chunking."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from groot_ros.errors import ModelError


@dataclass(frozen=True, eq=False)
class RealTimeChunking:
    """Starts a chunk from the rows of the previous one that are still to come, so that both agree where they meet.

    Attributes:
        previous: The previous chunk, normalised with the current reference state, ``(B, h, max_action_dim)`` with
            ``h >= action_horizon``.
        action_horizon: End of the part of ``previous`` that counts: its last ``overlap_steps`` rows are taken over.
        overlap_steps: First rows of the new chunk that start from the previous one.
        frozen_steps: First rows that keep the previous values exactly.
        ramp_rate: How quickly the freedom of the overlapping rows grows after the frozen ones. At 0 it does not
            grow: all overlapping rows are frozen.

    Raises:
        ModelError: The numbers contradict each other.

    """

    previous: Tensor
    action_horizon: int
    overlap_steps: int
    frozen_steps: int
    ramp_rate: float

    def __post_init__(self) -> None:
        """Refuse numbers that contradict each other."""
        if not 0 <= self.frozen_steps <= self.overlap_steps:
            msg = (
                f"Real-time chunking with frozen_steps {self.frozen_steps} and overlap_steps {self.overlap_steps}: "
                "frozen_steps must lie between 0 and overlap_steps, or rows of pure noise would be executed."
            )
            raise ModelError(msg)
        if not self.overlap_steps <= self.action_horizon <= self.previous.shape[1]:
            msg = (
                f"Real-time chunking with overlap_steps {self.overlap_steps} and action_horizon {self.action_horizon} "
                f"on a previous chunk of {self.previous.shape[1]} rows: overlap_steps must not exceed action_horizon, "
                "nor action_horizon the rows of the previous chunk."
            )
            raise ModelError(msg)
        if not (math.isfinite(self.ramp_rate) and self.ramp_rate >= 0):
            msg = f"Real-time chunking with ramp_rate {self.ramp_rate}: it must be a finite number, 0 or above."
            raise ModelError(msg)

    def start(self, noise: Tensor) -> Tensor:
        """The noise with its first rows replaced by those of the previous chunk, ``(B, H, D)``."""
        first = self.action_horizon - self.overlap_steps
        rows = self.previous[:, first : self.action_horizon].to(noise)
        expected = (noise.shape[0], self.overlap_steps, noise.shape[2])
        if self.overlap_steps > noise.shape[1] or rows.shape != expected:
            msg = (
                f"Real-time chunking: the previous chunk {tuple(self.previous.shape)} with an overlap of "
                f"{self.overlap_steps} rows does not fit a new chunk {tuple(noise.shape)} (batch, rows, dimensions)."
            )
            raise ModelError(msg)
        return torch.cat([rows, noise[:, self.overlap_steps :]], dim=1)

    def velocity_strength(self, horizon: int) -> list[float]:
        """Factor on the velocity of each of ``horizon`` rows: 0 where frozen, rising over the overlap, then 1."""
        ramp_steps = self.overlap_steps - self.frozen_steps
        end = -math.expm1(-self.ramp_rate)
        ramp = [
            -math.expm1(-self.ramp_rate * step / (ramp_steps + 1)) / end if end > 0 else 0.0
            for step in range(1, ramp_steps + 1)
        ]
        return [0.0] * self.frozen_steps + ramp + [1.0] * (horizon - self.overlap_steps)


Chunking = RealTimeChunking | Sequence[RealTimeChunking | None]
"""One previous chunk for the whole batch, or one, or none, for each of its samples."""


def begin(noise: Tensor, rtc: Chunking | None) -> tuple[Tensor, Tensor | None]:
    """Where the integration starts, and how much of the velocity each row follows.

    Args:
        noise: Standard normal, ``(B, H, D)``.
        rtc: Rows of previous chunks to start from. Each sample of a sequence gets what it would get alone.

    Returns:
        The start ``(B, H, D)``, and the strength ``(H, 1)`` or ``(B, H, 1)``; None where every row follows fully.

    Raises:
        ModelError: A previous chunk does not fit, or there is not one entry a sample.

    """
    if rtc is None:
        return noise, None
    if isinstance(rtc, RealTimeChunking):
        return rtc.start(noise), _strength(rtc, noise)
    if len(rtc) != len(noise):
        msg = f"Real-time chunking has {len(rtc)} entries for a batch of {len(noise)}: one is needed for each sample."
        raise ModelError(msg)
    if all(chunking is None for chunking in rtc):
        return noise, None
    own = [noise[row : row + 1] for row in range(len(noise))]
    starts = [alone if chunking is None else chunking.start(alone) for alone, chunking in zip(own, rtc, strict=True)]
    strengths = [
        noise.new_ones(noise.shape[1], 1) if chunking is None else _strength(chunking, noise) for chunking in rtc
    ]
    return torch.cat(starts), torch.stack(strengths)


def _strength(rtc: RealTimeChunking, noise: Tensor) -> Tensor:
    return noise.new_tensor(rtc.velocity_strength(noise.shape[1]))[:, None]


def integrate(
    velocity: Callable[[Tensor, Tensor], Tensor],
    noise: Tensor,
    *,
    steps: int,
    num_timestep_buckets: int,
    rtc: Chunking | None = None,
) -> Tensor:
    """Follow the velocity field from noise to actions.

    Args:
        velocity: ``velocity(actions (B, H, D), bucket int64 (B,)) -> (B, H, D)``.
        noise: Start of the integration, ``(B, H, D)``. Padded rows and dimensions take part and need noise too.
        steps: Number of Euler steps.
        num_timestep_buckets: Into how many buckets the time from 0 to 1 is divided.
        rtc: Rows of previous chunks to start from, see `begin`.

    Returns:
        Normalised actions, ``(B, H, D)``.

    Raises:
        ModelError: No steps, or a previous chunk that does not fit.

    """
    if steps < 1:
        msg = f"The number of denoising steps is {steps}; it must be 1 or more."
        raise ModelError(msg)
    actions, strength = begin(noise, rtc)
    for step in range(steps):
        bucket = torch.full((noise.shape[0],), int(step / steps * num_timestep_buckets), device=noise.device)
        change = velocity(actions, bucket) / steps
        actions = actions + (change if strength is None else change * strength)
    return actions
