"""The backbone's ``config.json``: Qwen3-VL's sizes, read strictly, so that no library default stands in for a key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from transformers.models.qwen3_vl.configuration_qwen3_vl import Qwen3VLTextConfig, Qwen3VLVisionConfig

from groot_ros.errors import ModelError

_TEXT_KEYS = (
    "hidden_size",
    "intermediate_size",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "vocab_size",
    "hidden_act",
    "rms_norm_eps",
)
_VISION_KEYS = (
    "depth",
    "hidden_size",
    "intermediate_size",
    "num_heads",
    "hidden_act",
    "in_channels",
    "patch_size",
    "temporal_patch_size",
    "spatial_merge_size",
    "out_hidden_size",
    "num_position_embeddings",
    "deepstack_visual_indexes",
)


@dataclass(frozen=True)
class BackboneConfig:
    """What the backbone needs to know.

    Attributes:
        text: Sizes of a decoder layer, in transformers' own type.
        vision: Sizes of the vision tower, in transformers' own type.
        num_text_layers: Decoder layers of the whole language model, of which N1.7 keeps the first ``select_layer``.
        image_token_id: The token that stands for one merged image patch.
        rope_theta: Base of the rotary position embedding of the text.
        mrope_section: Frequencies given to the temporal, height and width axes.

    """

    text: Qwen3VLTextConfig
    vision: Qwen3VLVisionConfig
    num_text_layers: int
    image_token_id: int
    rope_theta: float
    mrope_section: tuple[int, int, int]


def parse_backbone_config(raw: Mapping[str, Any]) -> BackboneConfig:
    """Read the backbone's ``config.json`` as transformers 4.57 to 5.x write it.

    Args:
        raw: The parsed file.

    Raises:
        ModelError: A key is missing, or the file describes another kind of network.

    """
    if raw.get("model_type") != "qwen3_vl":
        msg = f"The backbone's config.json has model_type {raw.get('model_type')!r}; GR00T N1.7 needs 'qwen3_vl'."
        raise ModelError(msg)
    text = _required(raw, "text_config", "")
    vision = _required(raw, "vision_config", "")
    # transformers 5 writes one table "rope_parameters", 4.57 a table "rope_scaling" and "rope_theta" beside it.
    rope = {"rope_theta": text.get("rope_theta"), **(text.get("rope_parameters") or text.get("rope_scaling") or {})}
    if rope.get("rope_type", "default") != "default" or rope.get("mrope_interleaved") is not True:
        msg = (
            f"text_config of the backbone's config.json asks for rotary positions {rope}; "
            "only rope_type 'default' with mrope_interleaved true is known."
        )
        raise ModelError(msg)
    text_config = Qwen3VLTextConfig(
        **{key: _required(text, key, "text_config.") for key in _TEXT_KEYS},
        attention_bias=text.get("attention_bias", False),
        attention_dropout=text.get("attention_dropout", 0.0),
    )
    vision_config = Qwen3VLVisionConfig(**{key: _required(vision, key, "vision_config.") for key in _VISION_KEYS})
    # Part of the result, not only of the speed: a query without any valid key must give zero, as this kernel does.
    text_config._attn_implementation = "sdpa"
    vision_config._attn_implementation = "sdpa"
    if rope["rope_theta"] is None:
        msg = "The backbone's config.json has no text_config.rope_theta; take the file of the original backbone."
        raise ModelError(msg)
    return BackboneConfig(
        text=text_config,
        vision=vision_config,
        num_text_layers=_required(text, "num_hidden_layers", "text_config."),
        image_token_id=_required(raw, "image_token_id", ""),
        rope_theta=float(rope["rope_theta"]),
        mrope_section=tuple(_required(rope, "mrope_section", "text_config.rope_scaling.")),
    )


def _required(table: Mapping[str, Any], key: str, where: str) -> Any:  # noqa: ANN401 - JSON values
    if key not in table:
        msg = f"The backbone's config.json has no {where}{key}; take the file of the original backbone."
        raise ModelError(msg)
    return table[key]
