"""The two sinusoidal embeddings of the denoising time, which differ in spacing and in order.

The frequencies are part of what the weights have learned, to the last bit: at bucket 750 one unit in the last place of
a frequency moves the angle by 5e-5, and the network may amplify that a hundredfold. So each exponent is rounded to
float32 where it was in training, and its exponential is the correctly rounded one, which float64 gives on every device
and in every release of torch. The float32 exponentials of these differ in the last place.
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
    angles = _angles(bucket, -indices * (torch.full_like(indices, _LOG_MAX_PERIOD) / half))
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
    indices = torch.arange(half, dtype=torch.float32, device=bucket.device)
    angles = _angles(bucket, -_LOG_MAX_PERIOD * indices / (half - 1))
    return torch.cat([angles.cos(), angles.sin()], dim=-1)


def _angles(bucket: Tensor, exponents: Tensor) -> Tensor:
    return bucket[:, None].float() * exponents.double().exp().float()
