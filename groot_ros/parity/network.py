"""The network of a checkpoint, for a comparison."""

from __future__ import annotations

import torch

from groot_ros.checkpoint import Checkpoint
from groot_ros.model.loading import load_model
from groot_ros.model.model import GrootN17
from groot_ros.policy import select_dtype


def load_network(checkpoint: Checkpoint, device: torch.device, dtype: str) -> GrootN17:
    """Load it, without the reduced precision that GPUs use for float32 by default."""
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    return load_model(
        checkpoint.config,
        checkpoint.backbone.config,
        checkpoint.weights().tensors(),
        device=device,
        dtype=select_dtype(dtype, device),
    )
