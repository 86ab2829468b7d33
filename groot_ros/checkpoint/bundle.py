"""Makes a checkpoint whole: the backbone's side files go inside it, so that a robot needs neither network nor cache."""

from __future__ import annotations

import shutil
from pathlib import Path

from groot_ros.checkpoint.backbone import BUNDLED
from groot_ros.checkpoint.checkpoint import Checkpoint
from groot_ros.checkpoint.hub import BACKBONE_FILES, CHECKPOINT_FILES
from groot_ros.checkpoint.lerobot import BASE_MODEL
from groot_ros.checkpoint.versions import CheckpointOrigin
from groot_ros.checkpoint.writing import model_config_json, write_json
from groot_ros.errors import CheckpointError


def bundle(checkpoint: Checkpoint, out: Path | None = None) -> Path:
    """Put the backbone's side files into ``backbone/``.

    Args:
        checkpoint: The checkpoint with the backbone that was found for it.
        out: Folder of a whole copy; by default the checkpoint's own folder is completed.

    Returns:
        The folder of the whole checkpoint.

    Raises:
        CheckpointError: ``out`` is not empty, or the files cannot be written.

    """
    target = checkpoint.path if out is None else out
    if out is not None and out.exists() and (not out.is_dir() or any(out.iterdir())):
        msg = f"{out} exists already and is not empty: give another folder, or remove it first."
        raise CheckpointError(msg)
    try:
        if out is not None:
            _copy(checkpoint.path, out, CHECKPOINT_FILES)
        inside = target / BUNDLED
        if not inside.is_dir():
            partial = target / f".{BUNDLED}.partial"
            shutil.rmtree(partial, ignore_errors=True)
            _copy(checkpoint.backbone.directory, partial, BACKBONE_FILES)
            partial.rename(inside)
        if checkpoint.origin is CheckpointOrigin.LEROBOT:
            (target / BASE_MODEL).mkdir(exist_ok=True)
            write_json(target / BASE_MODEL / "config.json", model_config_json(checkpoint.config))
    except OSError as error:
        msg = f"{target} cannot be completed ({error}): give another folder with --output."
        raise CheckpointError(msg) from error
    return target


def _copy(source: Path, target: Path, patterns: tuple[str, ...]) -> None:
    """Copy the files that match, following the links of the hub's cache."""
    for pattern in patterns:
        for file in source.glob(pattern):
            if file.is_file():
                place = target / file.relative_to(source)
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, place)
