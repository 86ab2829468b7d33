"""A checkpoint to a prepared network: one embodiment's projectors are read, the others stay on the disk."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from groot_ros.checkpoint.config import ModelConfig
from groot_ros.errors import ModelError
from groot_ros.model.fast.layers import can_pack
from groot_ros.model.fast.network import FastNetwork
from groot_ros.model.loading import load_model

_SPECIFIC_LAYERS = (
    "state_encoder.layer1",
    "state_encoder.layer2",
    "action_encoder.W1",
    "action_encoder.W2",
    "action_encoder.W3",
    "action_decoder.layer1",
    "action_decoder.layer2",
)

ReadTensors = Callable[[Mapping[str, int]], Iterable[tuple[str, Tensor]]]
"""Reads a checkpoint; of the tensors that the mapping names only that row."""


def load_fast(
    config: ModelConfig,
    backbone_config: Mapping[str, Any],
    read: ReadTensors,
    embodiment_id: int,
    *,
    device: torch.device | str,
    dtype: torch.dtype,
) -> FastNetwork:
    """Load and prepare a network for one embodiment.

    Args:
        config: The checkpoint's ``config.json``.
        backbone_config: The backbone's parsed ``config.json``.
        read: Reads the tensors, or maps them.
        embodiment_id: Whose projectors to read.
        device: Where the weights go.
        dtype: Type of the weights.

    Raises:
        ModelError: There is no such embodiment, or the tensors do not fit.

    """
    if not 0 <= embodiment_id < config.max_num_embodiments:
        msg = f"embodiment_id is {embodiment_id}; this network has projectors 0 to {config.max_num_embodiments - 1}."
        raise ModelError(msg)
    rows = {f"action_head.{layer}.{part}": embodiment_id for layer in _SPECIFIC_LAYERS for part in ("W", "b")}
    # What is packed is read once more anyway, when it is first needed; everything else gets memory of its own here.
    may_stay_in_the_file = torch.device(device).type == "cpu" and can_pack(dtype)
    network = load_model(
        replace(config, max_num_embodiments=1),
        backbone_config,
        read(rows),
        device=device,
        dtype=dtype,
        given_away=may_stay_in_the_file,
    )
    return FastNetwork(network, 0)
