"""The vision-language backbone's side files: configuration, tokenizer and image processor, without weights."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from groot_ros.checkpoint.config import ModelConfig
from groot_ros.checkpoint.fields import Fields, read_json
from groot_ros.checkpoint.hub import BACKBONE_FILES, is_hub_id, obtain
from groot_ros.errors import CheckpointError

BUNDLED = "backbone"

_TEXT_SIZES = (
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "vocab_size",
)
_VISION_SIZES = (
    "hidden_size",
    "intermediate_size",
    "depth",
    "num_heads",
    "patch_size",
    "temporal_patch_size",
    "spatial_merge_size",
    "out_hidden_size",
    "num_position_embeddings",
)


@dataclass(frozen=True)
class Backbone:
    """The folder with the backbone's side files.

    Attributes:
        directory: Where the tokenizer's files lie.
        config: Content of ``config.json``.
        preprocessor: Content of ``preprocessor_config.json``.

    """

    directory: Path
    config: dict[str, Any]
    preprocessor: dict[str, Any]


def find_backbone(checkpoint: Path, model_name: str, *, given: Path | None, allow_download: bool) -> Backbone:
    """Find the backbone's side files.

    Looked up in this order: the folder ``given``; ``backbone/`` inside the checkpoint; ``model_name`` as a path
    relative to the folder that contains the checkpoint; the hub's cache on this machine; the hub, if allowed.

    Args:
        checkpoint: The checkpoint's folder.
        model_name: What the checkpoint's configuration says.
        given: The user's choice, or None.
        allow_download: Whether the hub may be asked.

    Raises:
        CheckpointError: They are nowhere, or not complete.

    """
    if given is not None:
        return open_backbone(given)
    for candidate in (checkpoint / BUNDLED, checkpoint.parent / model_name):
        if candidate.is_dir():
            return open_backbone(candidate)
    place = f"{checkpoint / BUNDLED} or {checkpoint.parent / model_name}"
    if not is_hub_id(model_name):
        msg = f"The backbone {model_name} of {checkpoint} was not found at {place}: give its folder as `backbone`."
        raise CheckpointError(msg)
    return open_backbone(
        obtain(
            model_name,
            BACKBONE_FILES,
            allow_download=allow_download,
            purpose=f"tokenizer and image processor of the backbone (looked for first at {place})",
        )
    )


def open_backbone(directory: Path) -> Backbone:
    """Read the side files from a folder.

    Raises:
        CheckpointError: A file is missing or damaged, or the model is not of the Qwen3-VL family.

    """
    if not directory.is_dir():
        msg = f"The backbone folder {directory} is missing: it must hold tokenizer and image processor of Qwen3-VL."
        raise CheckpointError(msg)
    config = read_json(directory / "config.json")
    if config.get("model_type") != "qwen3_vl":
        msg = f"{directory / 'config.json'}: model_type is {config.get('model_type')!r}, but must be 'qwen3_vl'."
        raise CheckpointError(msg)
    fields = Fields(config, str(directory / "config.json"))
    text, vision = fields.inner("text_config"), fields.inner("vision_config")
    for part, keys in ((text, _TEXT_SIZES), (vision, _VISION_SIZES)):
        for key in keys:
            part.integer(key, minimum=1)
    if not isinstance(vision.value("deepstack_visual_indexes"), list):
        vision.refuse("deepstack_visual_indexes", "a list of layers of the vision tower")
    whole = (directory / "tokenizer.json").is_file()
    if not whole and not all((directory / name).is_file() for name in ("vocab.json", "merges.txt")):
        msg = f"{directory} has no tokenizer: tokenizer.json, or vocab.json with merges.txt, must be there."
        raise CheckpointError(msg)
    return Backbone(directory, config, _preprocessor(directory))


def check_backbone(backbone: Backbone, config: ModelConfig) -> None:
    """Check that the backbone is the one that the network was trained with, as far as its sizes tell.

    Raises:
        CheckpointError: It is narrower, wider or has too few layers.

    """
    text = backbone.config["text_config"]
    where = f"The backbone {backbone.directory} does not belong to this checkpoint"
    if text["hidden_size"] != config.backbone_embedding_dim:
        msg = (
            f"{where}: its hidden_size is {text['hidden_size']}, but backbone_embedding_dim is "
            f"{config.backbone_embedding_dim}. Give the folder of {config.model_name}."
        )
        raise CheckpointError(msg)
    if text["num_hidden_layers"] < config.select_layer:
        msg = (
            f"{where}: it has {text['num_hidden_layers']} layers, but select_layer is {config.select_layer}. "
            f"Give the folder of {config.model_name}."
        )
        raise CheckpointError(msg)


def _preprocessor(directory: Path) -> dict[str, Any]:
    """Read the image processor: transformers 4 gives it a file, transformers 5 a place in ``processor_config.json``."""
    alone, combined = directory / "preprocessor_config.json", directory / "processor_config.json"
    if not alone.is_file() and combined.is_file():
        return Fields(read_json(combined), str(combined)).inner("image_processor").content
    return read_json(alone)
