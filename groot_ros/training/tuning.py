"""What of the network learns: whole parts, or low-rank adapters in their linear layers."""

from __future__ import annotations

import re
from collections.abc import Mapping

from torch import Tensor, nn

from groot_ros.errors import TrainingError
from groot_ros.model.model import GrootN17
from groot_ros.training.config import Lora, Tune

_LANGUAGE = "backbone.model.model.language_model."
_VISUAL = "backbone.model.model.visual."
_HEAD = "action_head."
# What the network computes past the last kept layer takes no part in its output.
_UNUSED = f"{_LANGUAGE}norm."
_PARTS = {
    "llm": (_LANGUAGE,),
    "visual": (_VISUAL,),
    "projector": tuple(
        _HEAD + name for name in ("state_encoder.", "action_encoder.", "action_decoder.", "position_embedding.")
    ),
    "diffusion_model": (f"{_HEAD}model.",),
    "vlln": (f"{_HEAD}vlln.", f"{_HEAD}vl_self_attention."),
}


def set_tuned(network: GrootN17, tune: Tune, lora: Lora | None = None) -> None:
    """Switch gradients on for what is tuned and off for everything else.

    Raises:
        TrainingError: Nothing would learn, or there are fewer language layers than asked for.

    """
    layers = network.config.select_layer
    if tune.top_llm_layers > layers:
        msg = f"tune.top_llm_layers is {tune.top_llm_layers}, but the network has {layers} language layers"
        raise TrainingError(msg)
    prefixes = [
        prefix
        for part, names in _PARTS.items()
        if getattr(tune, part) and (lora is None or part not in lora.parts)
        for prefix in names
    ]
    prefixes += [f"{_LANGUAGE}layers.{index}." for index in range(layers - tune.top_llm_layers, layers)]
    for name, parameter in network.named_parameters():
        parameter.requires_grad = name.startswith(tuple(prefixes)) and not name.startswith(_UNUSED)
    if lora is None and not any(parameter.requires_grad for parameter in network.parameters()):
        msg = "tune: nothing of the network would learn; switch on at least one part, or give lora"
        raise TrainingError(msg)


def add_adapters(network: GrootN17, lora: Lora) -> None:
    """Put adapters into the linear layers of some parts; their own weights stay frozen.

    Raises:
        TrainingError: peft is not installed, or a part has no linear layer.

    """
    try:
        from peft import LoraConfig, inject_adapter_in_model
    except ImportError as error:
        msg = f"lora needs peft, which cannot be imported ({error}); pip install -r requirements/train.txt"
        raise TrainingError(msg) from error
    prefixes = tuple(prefix for part in lora.parts for prefix in _PARTS[part])
    targets = [
        name for name, module in network.named_modules() if isinstance(module, nn.Linear) and name.startswith(prefixes)
    ]
    if not targets:
        msg = f"lora.parts: {', '.join(lora.parts)} of this network have no linear layer"
        raise TrainingError(msg)
    learning = [name for name, parameter in network.named_parameters() if parameter.requires_grad]
    config = LoraConfig(
        r=lora.rank,
        lora_alpha=lora.alpha,  # type: ignore[arg-type] # any number works
        lora_dropout=lora.dropout,
        target_modules=f"^({'|'.join(re.escape(name) for name in targets)})$",
    )
    inject_adapter_in_model(config, network)
    for name, parameter in network.named_parameters():  # peft freezes everything else
        if name in learning:
            parameter.requires_grad = True


def merged_weights(weights: Mapping[str, Tensor], lora: Lora | None) -> dict[str, Tensor]:
    """Weights by the checkpoint's names: adapters are added to the weights that they adapt.

    Args:
        weights: The state of the network, with or without adapters.
        lora: The adapters' strength; None where there are none.

    """
    if lora is None:
        return dict(weights)
    merged = {}
    for name, value in weights.items():
        if ".lora_" in name:
            continue
        if not name.endswith(".base_layer.weight"):
            merged[name.replace(".base_layer.", ".")] = value
            continue
        layer = name.removesuffix(".base_layer.weight")
        down, up = weights[f"{layer}.lora_A.default.weight"], weights[f"{layer}.lora_B.default.weight"]
        change = (up.float() @ down.float()) * (lora.alpha / lora.rank)
        merged[f"{layer}.weight"] = (value.float() + change.to(value.device)).to(value.dtype)
    return merged


def has_decay(name: str, parameter: Tensor) -> bool:
    """Whether a parameter decays: weights do; biases, norms and other vectors do not."""
    return parameter.ndim > 1 and not name.endswith((".bias", ".b"))
