"""The weights that a training begins with, and those that it saves."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from groot_ros.checkpoint import Checkpoint, ModelConfig, bundle, parse_model_config, write_metadata
from groot_ros.checkpoint.parameters import parameter_shapes
from groot_ros.checkpoint.tiny import initial_parameter
from groot_ros.checkpoint.weights import SINGLE
from groot_ros.checkpoint.writing import model_config_json
from groot_ros.contract import Contract
from groot_ros.errors import TrainingError
from groot_ros.model.loading import load_model
from groot_ros.model.model import GrootN17
from groot_ros.training.config import FromScratch, Tune
from groot_ros.training.embodiment import Target

CONTRACT_FILE = "contract.yaml"


def initial_network(target: Target, device: torch.device, dtype: torch.dtype, scratch: FromScratch | None) -> GrootN17:
    """The network with the base model's weights, or with new random ones.

    Args:
        target: What is trained.
        device: Where.
        dtype: Of the weights.
        scratch: How new weights are drawn; None for the base model's.

    """
    checkpoint = target.checkpoint
    if scratch is None:
        tensors = checkpoint.weights().tensors()
        return load_model(checkpoint.config, checkpoint.backbone.config, tensors, device=device, dtype=dtype)
    random = np.random.default_rng(scratch.seed)
    shapes = parameter_shapes(checkpoint.config, checkpoint.backbone.config)
    drawn = ((name, torch.from_numpy(initial_parameter(name, shape, random))) for name, shape in shapes.items())
    return load_model(checkpoint.config, checkpoint.backbone.config, drawn, device=device, dtype=dtype)


def scratch_checkpoint(base: Checkpoint, scratch: FromScratch | None) -> Checkpoint:
    """The base model's description with another network, where new weights are drawn anyway.

    Raises:
        TrainingError: A key of the network is unknown.
        CheckpointError: A value is wrong, or the dimensions contradict each other.

    """
    if scratch is None or not scratch.network:
        return base
    content = model_config_json(base.config)
    allowed = [field.name for field in fields(ModelConfig) if field.name != "model_name"]
    unknown = [key for key in scratch.network if key not in allowed]
    if unknown:
        msg = f"from_scratch.network: found {', '.join(unknown)}; allowed are {', '.join(allowed)}"
        raise TrainingError(msg)
    for key, value in scratch.network.items():
        content[key] = {**content[key], **value} if isinstance(value, dict) and content.get(key) else value
    config = parse_model_config(content, "from_scratch.network")
    processor = replace(
        base.processor,
        max_state_dim=config.max_state_dim,
        max_action_dim=config.max_action_dim,
        max_action_horizon=config.action_horizon,
    )
    return replace(base, config=config, processor=processor)


def write_checkpoint(
    directory: Path, target: Target, weights: Mapping[str, Tensor], *, tune: Tune, contract: Contract | None
) -> None:
    """Write a whole checkpoint in NVIDIA's layout, the backbone's side files and the contract included.

    Args:
        directory: Its folder; what lies there is replaced.
        target: Everything but the weights.
        weights: By the checkpoint's names; written in the number type that they have.
        tune: What was tuned, for the record.
        contract: Copied beside it.

    """
    from safetensors.torch import save_file

    directory.mkdir(parents=True, exist_ok=True)
    checkpoint = target.checkpoint
    config = replace(
        checkpoint.config,
        tune_llm=tune.llm,
        tune_visual=tune.visual,
        tune_top_llm_layers=tune.top_llm_layers,
        tune_projector=tune.projector,
        tune_diffusion_model=tune.diffusion_model,
        tune_vlln=tune.vlln,
    )
    partial = directory / f".{SINGLE}.partial"
    tensors = {name: value.detach().to("cpu").contiguous() for name, value in weights.items()}
    save_file(tensors, partial, metadata={"format": "pt"})
    write_metadata(
        directory,
        config=config,
        processor=checkpoint.processor,
        statistics=checkpoint.statistics,
        embodiment_ids=checkpoint.embodiment_ids,
        fps=checkpoint.fps,
        contract=contract.model_dump(mode="json", by_alias=True) if contract else None,
    )
    if contract is not None and contract.path is not None and contract.path.is_file():
        shutil.copyfile(contract.path, directory / CONTRACT_FILE)
    partial.chmod((directory / "config.json").stat().st_mode)  # the library lets only its user read the file
    partial.replace(directory / SINGLE)
    bundle(replace(checkpoint, path=directory))
