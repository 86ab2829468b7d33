"""The network's parameters by name and shape, as config.json implies them: known without torch and without weights."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

from groot_ros.checkpoint.config import ModelConfig
from groot_ros.errors import CheckpointError

_TIMESTEP_CHANNELS = 256
_DECODER_LAYER = re.compile(r"backbone\.model\.model\.language_model\.layers\.(\d+)\.")

Parameter = tuple[str, tuple[int, ...]]


def parameter_shapes(config: ModelConfig, backbone: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Return every parameter of the network.

    Args:
        config: The checkpoint's ``config.json``.
        backbone: Content of the backbone's ``config.json``.

    """
    return {
        **dict(_prefixed("backbone.model.model.visual", _vision(backbone["vision_config"]))),
        **dict(_prefixed("backbone.model.model.language_model", _language(backbone["text_config"], config))),
        **dict(_prefixed("action_head", _action_head(config))),
    }


def check_parameters(
    found: Mapping[str, tuple[int, ...]], config: ModelConfig, backbone: Mapping[str, Any], where: str
) -> None:
    """Check that the weight files hold what the configuration implies.

    Args:
        found: Name to shape, as in the files.
        config: The checkpoint's ``config.json``.
        backbone: Content of the backbone's ``config.json``.
        where: The checkpoint, for the message.

    Raises:
        CheckpointError: Tensors are missing, of another shape, or surplus; they are named.

    """
    expected = parameter_shapes(config, backbone)
    faults = {
        "missing": [name for name in expected if name not in found],
        "surplus": [name for name in found if name not in expected and not _is_unneeded(name, config)],
        "of another shape": [
            f"{name} (found {found[name]}, expected {shape})"
            for name, shape in expected.items()
            if found.get(name, shape) != shape
        ],
    }
    parts = [f"{len(names)} {fault}: {_listed(names)}" for fault, names in faults.items() if names]
    if parts:
        msg = f"{where}: the tensors do not fit config.json; {'; '.join(parts)}. Copy or download the files again."
        raise CheckpointError(msg)


def _is_unneeded(name: str, config: ModelConfig) -> bool:
    """Return whether the configuration itself says that a tensor is not used."""
    layer = _DECODER_LAYER.match(name)
    return (
        (layer is not None and int(layer.group(1)) >= config.select_layer)
        or (not config.use_vlln and name.startswith("action_head.vlln."))
        or (config.vl_self_attention_cfg is None and name.startswith("action_head.vl_self_attention."))
        or (not config.add_pos_embed and name.startswith("action_head.position_embedding."))
    )


def _listed(names: list[str], limit: int = 3) -> str:
    return ", ".join(names[:limit]) + (f" and {len(names) - limit} more" if len(names) > limit else "")


def part_of(name: str) -> str:
    """Return which part of the network a parameter belongs to, in a reader's words."""
    for prefix, part in _PARTS:
        if name.startswith(prefix):
            return part
    return "other"


_PARTS = (
    ("backbone.model.model.visual.", "vision tower"),
    ("backbone.model.model.language_model.", "language model"),
    ("action_head.model.", "diffusion transformer"),
    ("action_head.vl", "vision-language adapter"),
    ("action_head.", "state and action projectors"),
)


def count(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
    """Return the number of parameters by part, in the order of the computation."""
    counts = {part: 0 for _, part in _PARTS}
    for name, shape in shapes.items():
        counts[part_of(name)] = counts.get(part_of(name), 0) + prod(shape)
    return {part: number for part, number in counts.items() if number}


def _prefixed(prefix: str, parameters: Iterator[Parameter]) -> Iterator[Parameter]:
    for name, shape in parameters:
        yield f"{prefix}.{name}", shape


def _linear(name: str, inputs: int, outputs: int) -> Iterator[Parameter]:
    yield f"{name}.weight", (outputs, inputs)
    yield f"{name}.bias", (outputs,)


def _norm(name: str, width: int) -> Iterator[Parameter]:
    yield f"{name}.weight", (width,)
    yield f"{name}.bias", (width,)


def _vision(vision: Mapping[str, Any]) -> Iterator[Parameter]:
    width, patch = vision["hidden_size"], vision["patch_size"]
    merged = width * vision["spatial_merge_size"] ** 2
    patch_shape = (vision.get("in_channels", 3), vision["temporal_patch_size"], patch, patch)
    yield "patch_embed.proj.weight", (width, *patch_shape)
    yield "patch_embed.proj.bias", (width,)
    yield "pos_embed.weight", (vision["num_position_embeddings"], width)
    for index in range(vision["depth"]):
        block = f"blocks.{index}"
        yield from _norm(f"{block}.norm1", width)
        yield from _norm(f"{block}.norm2", width)
        yield from _linear(f"{block}.attn.qkv", width, 3 * width)
        yield from _linear(f"{block}.attn.proj", width, width)
        yield from _linear(f"{block}.mlp.linear_fc1", width, vision["intermediate_size"])
        yield from _linear(f"{block}.mlp.linear_fc2", vision["intermediate_size"], width)
    mergers = [("merger", width)]
    mergers += [(f"deepstack_merger_list.{index}", merged) for index in range(len(vision["deepstack_visual_indexes"]))]
    for merger, norm_width in mergers:
        yield from _norm(f"{merger}.norm", norm_width)
        yield from _linear(f"{merger}.linear_fc1", merged, merged)
        yield from _linear(f"{merger}.linear_fc2", merged, vision["out_hidden_size"])


def _language(text: Mapping[str, Any], config: ModelConfig) -> Iterator[Parameter]:
    width, head = text["hidden_size"], text["head_dim"]
    queries, values = text["num_attention_heads"] * head, text["num_key_value_heads"] * head
    yield "embed_tokens.weight", (text["vocab_size"], width)
    for index in range(min(config.select_layer, text["num_hidden_layers"])):
        layer = f"layers.{index}"
        yield f"{layer}.self_attn.q_proj.weight", (queries, width)
        yield f"{layer}.self_attn.k_proj.weight", (values, width)
        yield f"{layer}.self_attn.v_proj.weight", (values, width)
        yield f"{layer}.self_attn.o_proj.weight", (width, queries)
        yield f"{layer}.self_attn.q_norm.weight", (head,)
        yield f"{layer}.self_attn.k_norm.weight", (head,)
        yield f"{layer}.mlp.gate_proj.weight", (text["intermediate_size"], width)
        yield f"{layer}.mlp.up_proj.weight", (text["intermediate_size"], width)
        yield f"{layer}.mlp.down_proj.weight", (width, text["intermediate_size"])
        yield f"{layer}.input_layernorm.weight", (width,)
        yield f"{layer}.post_attention_layernorm.weight", (width,)
    yield "norm.weight", (width,)


def _attention_and_feed_forward(block: str, width: int, keys: int) -> Iterator[Parameter]:
    yield from _linear(f"{block}.attn1.to_q", width, width)
    yield from _linear(f"{block}.attn1.to_k", keys, width)
    yield from _linear(f"{block}.attn1.to_v", keys, width)
    yield from _linear(f"{block}.attn1.to_out.0", width, width)
    yield from _linear(f"{block}.ff.net.0.proj", width, 4 * width)
    yield from _linear(f"{block}.ff.net.2", 4 * width, width)


def _category_specific(name: str, projectors: int, inputs: int, outputs: int) -> Iterator[Parameter]:
    yield f"{name}.W", (projectors, inputs, outputs)
    yield f"{name}.b", (projectors, outputs)


def _action_head(config: ModelConfig) -> Iterator[Parameter]:
    dit, width, hidden = config.diffusion_model_cfg, config.input_embedding_dim, config.hidden_size
    features, projectors = config.backbone_embedding_dim, config.max_num_embodiments
    yield from _linear("model.timestep_encoder.timestep_embedder.linear_1", _TIMESTEP_CHANNELS, width)
    yield from _linear("model.timestep_encoder.timestep_embedder.linear_2", width, width)
    for index in range(dit.num_layers):
        block = f"model.transformer_blocks.{index}"
        yield from _linear(f"{block}.norm1.linear", width, 2 * width)
        yield from _attention_and_feed_forward(block, width, width if index % 2 else features)
    yield from _linear("model.proj_out_1", width, 2 * width)
    yield from _linear("model.proj_out_2", width, dit.output_dim)
    state_inputs = config.max_state_dim * config.state_history_length
    yield from _category_specific("state_encoder.layer1", projectors, state_inputs, hidden)
    yield from _category_specific("state_encoder.layer2", projectors, hidden, width)
    yield from _category_specific("action_encoder.W1", projectors, config.max_action_dim, width)
    yield from _category_specific("action_encoder.W2", projectors, 2 * width, width)
    yield from _category_specific("action_encoder.W3", projectors, width, width)
    yield from _category_specific("action_decoder.layer1", projectors, hidden, hidden)
    yield from _category_specific("action_decoder.layer2", projectors, hidden, config.max_action_dim)
    if config.use_vlln:
        yield from _norm("vlln", features)
    if config.vl_self_attention_cfg is not None:
        for index in range(config.vl_self_attention_cfg.num_layers):
            block = f"vl_self_attention.transformer_blocks.{index}"
            yield from _norm(f"{block}.norm1", features)
            yield from _attention_and_feed_forward(block, features, features)
            yield from _norm(f"{block}.norm3", features)
    if config.add_pos_embed:
        yield "position_embedding.weight", (config.max_seq_len, width)
