"""The two sinusoidal embeddings of the denoising time, which differ in spacing and in order.

The frequencies are part of what the weights have learned, to the last bit: at bucket 750 one unit in the last place of
a frequency moves the angle by 5e-5, and the network may amplify that a hundredfold. So each exponent is rounded to
float32 where it was in training, and exponential, sine and cosine are the correctly rounded ones, which float64 gives
on every processor. The float32 functions of different processors differ in the last place.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

_LOG_MAX_PERIOD = math.log(10_000.0)


def action_time_embedding(bucket: Tensor, dim: int) -> Tensor:
    """The embedding that joins the noisy actions: sines first, frequencies ``10000 ** (-i / (dim / 2))``.

    Args:
        bucket: int64 ``(B,)``.
        dim: Width of the result.

    Returns:
        float32 ``(B, dim)``.

    """
    half = dim // 2
    indices = torch.arange(half, dtype=torch.float32, device=bucket.device)
    exponents = -indices * (torch.full_like(indices, _LOG_MAX_PERIOD) / half)
    angles = _angles(bucket, exponents.double().exp().float())
    return torch.cat([angles.sin(), angles.cos()], dim=-1).float()


def transformer_time_embedding(bucket: Tensor, dim: int) -> Tensor:
    """The embedding that modulates the transformer: cosines first, frequencies ``10000 ** (-i / (dim / 2 - 1))``.

    Args:
        bucket: int64 ``(B,)``.
        dim: Width of the result.

    Returns:
        float32 ``(B, dim)``.

    """
    half = dim // 2
    angles = _angles(bucket, transformer_time_frequencies(half, bucket.device))
    return torch.cat([angles.cos(), angles.sin()], dim=-1).float()


def transformer_time_frequencies(count: int, device: torch.device) -> Tensor:
    """The frequencies of the embedding that modulates the transformer, float32 ``(count,)``."""
    indices = torch.arange(count, dtype=torch.float32, device=device)
    return (-_LOG_MAX_PERIOD * indices / (count - 1)).double().exp().float()


def _angles(bucket: Tensor, frequencies: Tensor) -> Tensor:
    """Angles as float32 values, in float64 for the functions that follow."""
    return (bucket[:, None].float() * frequencies).double()
