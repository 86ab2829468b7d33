"""A backbone folder of our own for tiny checkpoints: a byte-level vocabulary and Qwen3-VL's layout, in small."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from groot_ros.checkpoint.writing import write_json

# Qwen's control tokens in Qwen's order.
_CONTROL_TOKENS = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|object_ref_start|>",
    "<|object_ref_end|>",
    "<|box_start|>",
    "<|box_end|>",
    "<|quad_start|>",
    "<|quad_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|vision_pad|>",
    "<|image_pad|>",
    "<|video_pad|>",
)
_BYTES = 256
_VOCABULARY = 288

_CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message.role + '\\n' }}"
    "{% for part in message.content %}"
    "{{ '<|vision_start|><|image_pad|><|vision_end|>' if part.type == 'image' else part.text }}"
    "{% endfor %}"
    "{{ '<|im_end|>\\n' }}"
    "{% endfor %}"
)


def write_tiny_backbone(directory: Path, *, width: int, layers: int, least_pixels: int) -> dict[str, Any]:
    """Write the folder.

    Args:
        directory: Where; it is created.
        width: Width of the language model and of the vision tower: a multiple of 32.
        layers: Decoder layers.
        least_pixels: Frames of a smaller area are enlarged to it.

    Returns:
        The content of ``config.json``.

    """
    directory.mkdir(parents=True)
    config = _config(width, layers)
    write_json(directory / "config.json", config)
    write_json(directory / "preprocessor_config.json", _preprocessor(least_pixels))
    write_json(
        directory / "tokenizer_config.json",
        {
            "tokenizer_class": "Qwen2Tokenizer",
            "eos_token": "<|im_end|>",
            "pad_token": "<|endoftext|>",
            "padding_side": "left",
            "model_max_length": 8192,
        },
    )
    (directory / "chat_template.jinja").write_text(_CHAT_TEMPLATE, encoding="utf-8")
    _write_tokenizer(directory / "tokenizer.json")
    return config


def _token(name: str) -> int:
    return _BYTES + _CONTROL_TOKENS.index(name)


def _write_tokenizer(path: Path) -> None:
    """Write a tokenizer without merges: every byte of the text is a token, whatever the language."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={letter: index for index, letter in enumerate(alphabet)}, merges=[]))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in _CONTROL_TOKENS])
    tokenizer.save(str(path))


def _preprocessor(least_pixels: int) -> dict[str, Any]:
    return {
        "image_processor_type": "Qwen2VLImageProcessorFast",
        "processor_class": "Qwen3VLProcessor",
        "do_convert_rgb": True,
        "do_resize": True,
        "do_rescale": True,
        "do_normalize": True,
        "resample": 3,
        "rescale_factor": 1 / 255,
        "image_mean": [0.5, 0.5, 0.5],
        "image_std": [0.5, 0.5, 0.5],
        "patch_size": 16,
        "merge_size": 2,
        "temporal_patch_size": 2,
        "size": {"shortest_edge": least_pixels, "longest_edge": 16777216},
    }


def _config(width: int, layers: int) -> dict[str, Any]:
    return {
        "architectures": ["Qwen3VLForConditionalGeneration"],
        "model_type": "qwen3_vl",
        "image_token_id": _token("<|image_pad|>"),
        "video_token_id": _token("<|video_pad|>"),
        "vision_start_token_id": _token("<|vision_start|>"),
        "vision_end_token_id": _token("<|vision_end|>"),
        "tie_word_embeddings": True,
        "text_config": {
            "model_type": "qwen3_vl_text",
            "attention_bias": False,
            "attention_dropout": 0.0,
            "bos_token_id": _token("<|endoftext|>"),
            "eos_token_id": _token("<|im_end|>"),
            "head_dim": 32,
            "hidden_act": "silu",
            "hidden_size": width,
            "intermediate_size": 3 * width,
            "max_position_embeddings": 8192,
            "num_attention_heads": width // 32,
            "num_hidden_layers": layers,
            "num_key_value_heads": 1,
            "rms_norm_eps": 1e-6,
            "rope_scaling": {"mrope_interleaved": True, "mrope_section": [6, 5, 5], "rope_type": "default"},
            "rope_theta": 5000000,
            "tie_word_embeddings": True,
            "vocab_size": _VOCABULARY,
        },
        "vision_config": {
            "model_type": "qwen3_vl",
            "deepstack_visual_indexes": [0, 1, 2],
            "depth": 4,
            "hidden_act": "gelu_pytorch_tanh",
            "hidden_size": width,
            "in_channels": 3,
            "intermediate_size": 4 * width,
            "num_heads": 4,
            "num_position_embeddings": 16,
            "out_hidden_size": width,
            "patch_size": 16,
            "spatial_merge_size": 2,
            "temporal_patch_size": 2,
        },
    }
