"""The two sinusoidal embeddings of the denoising time. They differ in spacing and in order: both are part of the weights."""

from __future__ import annotations

import math

import torch
from torch import Tensor

_MAX_PERIOD = 10_000.0


def action_time_embedding(bucket: Tensor, dim: int) -> Tensor:
    """The embedding that joins the noisy actions: sines first, frequencies ``10000 ** (-i / (dim / 2))``.

    Args:
        bucket: int64 ``(B,)``.
        dim: Width of the result.

    Returns:
        float32 ``(B, dim)``.

    """
    half = dim // 2
    angles = _angles(bucket, half, divisor=half)
    return torch.cat([angles.sin(), angles.cos()], dim=-1)


def transformer_time_embedding(bucket: Tensor, dim: int) -> Tensor:
    """The embedding that modulates the transformer: cosines first, frequencies ``10000 ** (-i / (dim / 2 - 1))``.

    Args:
        bucket: int64 ``(B,)``.
        dim: Width of the result.

    Returns:
        float32 ``(B, dim)``.

    """
    half = dim // 2
    angles = _angles(bucket, half, divisor=half - 1)
    return torch.cat([angles.cos(), angles.sin()], dim=-1)


def _angles(bucket: Tensor, count: int, divisor: int) -> Tensor:
    exponents = torch.arange(count, dtype=torch.float32, device=bucket.device) * (-math.log(_MAX_PERIOD) / divisor)
    return bucket[:, None].float() * exponents.exp()
