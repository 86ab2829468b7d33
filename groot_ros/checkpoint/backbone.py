"""The vision-language backbone's side files: configuration, tokenizer and image processor, without weights."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from groot_ros.checkpoint.fields import Fields, read_json
from groot_ros.checkpoint.hub import BACKBONE_FILES, is_hub_id, obtain
from groot_ros.errors import CheckpointError

BUNDLED = "backbone"


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
    text = Fields(config, str(directory / "config.json"))
    text.inner("text_config").integer("hidden_size", minimum=1)
    text.inner("vision_config").integer("hidden_size", minimum=1)
    whole = (directory / "tokenizer.json").is_file()
    if not whole and not all((directory / name).is_file() for name in ("vocab.json", "merges.txt")):
        msg = f"{directory} has no tokenizer: tokenizer.json, or vocab.json with merges.txt, must be there."
        raise CheckpointError(msg)
    return Backbone(directory, config, read_json(directory / "preprocessor_config.json"))
