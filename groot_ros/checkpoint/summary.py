"""What a user needs to know of a checkpoint to wire a robot, as plain values: printed as text or as JSON."""

from __future__ import annotations

from math import prod
from typing import Any

from groot_ros.checkpoint.checkpoint import Checkpoint
from groot_ros.checkpoint.embodiments import Embodiment, action_config, is_relative
from groot_ros.checkpoint.parameters import check_parameters, count
from groot_ros.checkpoint.processor_config import ActionFormat, ActionRepresentation, ActionType, ProcessorConfig
from groot_ros.checkpoint.statistics import KeyStatistics
from groot_ros.errors import CheckpointError

_BYTES = {"float32": 4, "bfloat16": 2}


def summarise(checkpoint: Checkpoint) -> dict[str, Any]:
    """Collect everything that can be said without reading a weight.

    Raises:
        CheckpointError: The weight files are missing, damaged, or do not fit the configuration.

    """
    weights = checkpoint.weights()
    shapes = weights.names()
    check_parameters(shapes, checkpoint.config, checkpoint.backbone.config, str(checkpoint.path))
    stored: dict[str, int] = {}
    for name, shape in shapes.items():
        stored[weights[name].dtype] = stored.get(weights[name].dtype, 0) + prod(shape)
    parameters = sum(stored.values())
    return {
        "path": str(checkpoint.path),
        "written_by": checkpoint.origin.value,
        "fps": checkpoint.fps,
        "backbone": str(checkpoint.backbone.directory),
        "network": {
            "parameters": count(shapes),
            "total": parameters,
            "stored_as": stored,
            "memory_bytes": {dtype: size * parameters for dtype, size in _BYTES.items()},
            "action_horizon": checkpoint.config.action_horizon,
            "denoising_steps": checkpoint.config.num_inference_timesteps,
        },
        "tags": {tag: _tag(checkpoint, tag) for tag in checkpoint.tags},
        "tags_that_need_fine_tuning": list(checkpoint.untrained_tags),
    }


def _tag(checkpoint: Checkpoint, tag: str) -> dict[str, Any]:
    """Describe one tag, or say why it cannot be used."""
    try:
        embodiment = checkpoint.embodiment(tag)
    except CheckpointError as error:
        return {"refused": str(error)}
    modalities, processor = embodiment.modalities, checkpoint.processor
    return {
        "projector": embodiment.id,
        "cameras": list(modalities.video.modality_keys),
        "camera_history": list(modalities.video.delta_indices),
        "state_history": list(modalities.state.delta_indices),
        "state": [_state(embodiment, processor, key) for key in modalities.state.modality_keys],
        "actions": [_action(embodiment, processor, key) for key in modalities.action.modality_keys],
        "horizon": embodiment.horizon,
        "language": modalities.language.modality_keys[0],
    }


def _state(embodiment: Embodiment, processor: ProcessorConfig, key: str) -> dict[str, Any]:
    state, statistics = embodiment.modalities.state, embodiment.statistics.state[key]
    if processor.exclude_state:
        normalisation = "excluded"
    elif processor.apply_sincos_state_encoding and key in state.sin_cos_embedding_keys:
        normalisation = "sin/cos"
    else:
        normalisation = _normalisation(processor, mean_std=key in state.mean_std_embedding_keys)
    return {
        "group": key,
        "dimensions": statistics.dimension,
        "normalisation": normalisation,
        **_range(statistics, normalisation),
    }


def _action(embodiment: Embodiment, processor: ProcessorConfig, key: str) -> dict[str, Any]:
    config = action_config(embodiment.modalities, key)
    relative = is_relative(processor, embodiment.modalities, key)
    statistics = embodiment.statistics.relative_action[key] if relative else embodiment.statistics.action[key]
    mean_std = key in embodiment.modalities.action.mean_std_embedding_keys
    # Percentiles do not apply to relative groups.
    normalisation = "min/max" if relative and not mean_std else _normalisation(processor, mean_std=mean_std)
    representation = f"relative to {config.state_key or key}" if relative else "absolute"
    if config.rep is ActionRepresentation.DELTA:
        representation = "delta"
    if config.type is ActionType.EEF:
        pose = {ActionFormat.XYZ_ROT6D: "pose xyz+rot6d", ActionFormat.XYZ_ROTVEC: "pose xyz+rotvec"}
        representation = f"{pose.get(config.format, 'pose')}, {representation}"
    return {
        "group": key,
        "dimensions": embodiment.statistics.action[key].dimension,
        "representation": representation,
        "normalisation": normalisation,
        **_range(statistics, normalisation),
    }


def _normalisation(processor: ProcessorConfig, *, mean_std: bool) -> str:
    if mean_std:
        return "mean/std"
    return "1%/99%" if processor.use_percentiles else "min/max"


def _range(statistics: KeyStatistics, normalisation: str) -> dict[str, list[float]]:
    """Return what maps to -1 and 1, over all rows: a forgotten unit shows here."""
    if normalisation == "1%/99%" and statistics.q01 is not None and statistics.q99 is not None:
        low, high = statistics.q01, statistics.q99
    else:
        low, high = statistics.min, statistics.max
    if low.ndim == 2:
        low, high = low.min(axis=0), high.max(axis=0)
    return {"low": low.tolist(), "high": high.tolist()}
