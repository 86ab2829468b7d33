"""Makes a checkpoint whole: the backbone's side files go inside it, so that a robot needs neither network nor cache."""

from __future__ import annotations

import shutil
from pathlib import Path

from groot_ros.checkpoint.backbone import BUNDLED
from groot_ros.checkpoint.checkpoint import Checkpoint
from groot_ros.checkpoint.fields import read_json
from groot_ros.checkpoint.hub import BACKBONE_FILES, CHECKPOINT_FILES
from groot_ros.checkpoint.lerobot import BASE_MODEL
from groot_ros.checkpoint.versions import CheckpointOrigin
from groot_ros.checkpoint.weights import INDEX
from groot_ros.checkpoint.writing import model_config_json, write_json
from groot_ros.errors import CheckpointError

WEIGHTS = "model*.safetensors"


def bundle(checkpoint: Checkpoint, out: Path | None = None, *, half: bool = False) -> Path:
    """Put the backbone's side files into ``backbone/``.

    Args:
        checkpoint: The checkpoint with the backbone that was found for it.
        out: Folder of a whole copy; by default the checkpoint's own folder is completed.
        half: Write the copy's float32 weights as bfloat16, which halves them; on CUDA a policy computes in it anyway.

    Returns:
        The folder of the whole checkpoint.

    Raises:
        CheckpointError: ``out`` is not empty, or the files cannot be written.

    """
    if half and out is None:
        msg = "Weights are made smaller in a copy only, so that nothing is lost: give its folder with --output."
        raise CheckpointError(msg)
    target = checkpoint.path if out is None else out
    if out is not None and out.exists() and (not out.is_dir() or any(out.iterdir())):
        msg = f"{out} exists already and is not empty: give another folder, or remove it first."
        raise CheckpointError(msg)
    try:
        if out is not None:
            _copy(checkpoint.path, out, CHECKPOINT_FILES)
            if half:
                _halve(out)
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


def _halve(directory: Path) -> None:
    """Rewrite float32 weights as bfloat16, file by file, under their names."""
    import torch
    from safetensors.torch import load_file, save_file

    total = 0
    for file in sorted(directory.glob(WEIGHTS)):
        tensors = load_file(file)
        for name, tensor in tensors.items():
            if tensor.dtype == torch.float32:
                tensors[name] = tensor.to(torch.bfloat16)
            total += tensors[name].nbytes
        mode = file.stat().st_mode
        file.unlink()
        save_file(tensors, file, metadata={"format": "pt"})
        file.chmod(mode)  # the library lets only its user read the file
    if (index := directory / INDEX).is_file():
        content = read_json(index)
        content["metadata"] = {**content.get("metadata", {}), "total_size": total}
        write_json(index, content)
