"""Puts the tensors of a checkpoint into the network: every one named, none left out, none invented."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from groot_ros.checkpoint.config import ModelConfig
from groot_ros.errors import ModelError
from groot_ros.model.model import GrootN17

_LM_HEAD = "backbone.model.lm_head.weight"
_DECODER_LAYER = re.compile(r"backbone\.model\.model\.language_model\.layers\.(\d+)\.")


def load_model(
    config: ModelConfig,
    backbone_config: Mapping[str, Any],
    tensors: Iterable[tuple[str, Tensor]],
    *,
    device: torch.device | str,
    dtype: torch.dtype,
    given_away: bool = False,
) -> GrootN17:
    """Build the network and fill it, one tensor at a time: the peak is the network plus one tensor.

    Args:
        config: The checkpoint's ``config.json``.
        backbone_config: The backbone's parsed ``config.json``.
        tensors: Names and values of the checkpoint. They are copied, so the files may change afterwards.
        device: Where the weights go.
        dtype: Type of the weights; what is sensitive to it (positions, rotary angles) is computed in float32 anyway.
        given_away: Whether tensors of the right type become the weights themselves, not copies of them.

    Returns:
        The network in evaluation mode, its parameters without gradients.

    Raises:
        ModelError: Tensors are missing, surplus, given twice, of another shape, or hold values that are not finite.

    """
    with torch.device("meta"):
        model = GrootN17(config, backbone_config)
    expected = {name: parameter.shape for name, parameter in model.named_parameters()}
    loaded: dict[str, Tensor] = {}
    surplus: list[str] = []
    for name, tensor in tensors:
        if name in expected:
            if name in loaded:
                msg = f"The checkpoint holds the tensor {name} twice."
                raise ModelError(msg)
            _require_shape(name, tensor, expected[name])
            loaded[name] = tensor.to(device=device, dtype=dtype, copy=not given_away)
            _require_finite(name, loaded[name])
        elif not _is_unneeded(name, model):
            surplus.append(name)
    missing = [name for name in expected if name not in loaded]
    if missing or surplus:
        parts = [
            f"{len(names)} {kind}: {_listed(names)}"
            for kind, names in (("missing", missing), ("surplus", surplus))
            if names
        ]
        msg = f"The tensors of the checkpoint do not fit its config.json; {'; '.join(parts)}."
        raise ModelError(msg)
    model.load_state_dict(loaded, assign=True)
    return model.requires_grad_(requires_grad=False).eval()


def _require_shape(name: str, tensor: Tensor, shape: torch.Size) -> None:
    if tensor.shape != shape:
        msg = f"The tensor {name} has shape {tuple(tensor.shape)}; config.json asks for {tuple(shape)}."
        raise ModelError(msg)


def _require_finite(name: str, tensor: Tensor) -> None:
    # One pass: NaN and infinity both show in the extremes.
    if tensor.numel() and not all(bool(extreme.isfinite()) for extreme in tensor.aminmax()):
        msg = f"The tensor {name} holds values that are not finite; the file is damaged or training diverged."
        raise ModelError(msg)


def _is_unneeded(name: str, model: GrootN17) -> bool:
    """Whether the configuration itself says that this tensor is not used."""
    config = model.config
    layer = _DECODER_LAYER.match(name)
    return (
        name == _LM_HEAD
        or (layer is not None and config.select_layer <= int(layer[1]) < model.backbone.config.num_text_layers)
        or (not config.use_vlln and name.startswith("action_head.vlln."))
        or (config.vl_self_attention_cfg is None and name.startswith("action_head.vl_self_attention."))
        or (not config.add_pos_embed and name == "action_head.position_embedding.weight")
    )


def _listed(names: list[str], limit: int = 5) -> str:
    shown = ", ".join(sorted(names)[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"
