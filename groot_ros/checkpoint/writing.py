"""Typed metadata back into the files that NVIDIA's code, and ours, reads: the inverse of the parsers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from groot_ros.checkpoint.checkpoint import OWN_FILE
from groot_ros.checkpoint.config import ModelConfig
from groot_ros.checkpoint.processor_config import ActionConfig, EmbodimentModalities, ModalityConfig, ProcessorConfig
from groot_ros.checkpoint.statistics import KeyStatistics, TagStatistics

MODALITIES = ("video", "state", "action", "language")


def write_metadata(
    directory: Path,
    *,
    config: ModelConfig,
    processor: ProcessorConfig,
    statistics: Mapping[str, TagStatistics],
    embodiment_ids: Mapping[str, int],
    fps: float | None,
    contract: Mapping[str, Any] | None = None,
) -> None:
    """Write every file of a checkpoint but its weights and its backbone folder.

    Args:
        directory: An existing folder.
        config: The network.
        processor: How observations become model inputs.
        statistics: Embodiment tag to the numbers of normalisation.
        embodiment_ids: Embodiment tag to the number of its projector.
        fps: Rows of action a second in the training data; a policy refuses to run at another rate.
        contract: The robot contract of the training, as read from its YAML, for the record.

    """
    write_json(directory / "config.json", model_config_json(config))
    write_json(directory / "processor_config.json", processor_config_json(processor))
    write_json(directory / "statistics.json", statistics_json(statistics))
    write_json(directory / "embodiment_id.json", dict(embodiment_ids))
    own: dict[str, Any] = {} if fps is None else {"fps": fps}
    if contract is not None:
        own["contract"] = dict(contract)
    if own:
        write_json(directory / OWN_FILE, own)


def write_json(path: Path, data: object) -> None:
    """Write a JSON file whole or not at all."""
    temporary = path.with_name(f".{path.name}.partial")
    temporary.write_text(json.dumps(data, indent=2, allow_nan=False) + "\n", encoding="utf-8")
    temporary.replace(path)


def model_config_json(config: ModelConfig) -> dict[str, Any]:
    """Return the content of ``config.json``."""
    head = {"architectures": ["Gr00tN1d7"], "model_type": "Gr00tN1d7", "backbone_model_type": "qwen"}
    data = {**head, **asdict(config)}
    # The original's code makes no difference between an absent key and null here, but its class has no such field.
    if config.vl_self_attention_cfg is None:
        del data["vl_self_attention_cfg"]
    return data


def processor_config_json(processor: ProcessorConfig) -> dict[str, Any]:
    """Return the content of ``processor_config.json``."""
    kwargs = asdict(processor)
    kwargs["modality_configs"] = {
        tag: _embodiment_json(modalities) for tag, modalities in processor.modality_configs.items()
    }
    for key in ("image_crop_size", "image_target_size"):
        kwargs[key] = None if kwargs[key] is None else list(kwargs[key])
    kwargs["model_type"] = "qwen"
    return {"processor_class": "Gr00tN1d7Processor", "processor_kwargs": kwargs}


def statistics_json(statistics: Mapping[str, TagStatistics]) -> dict[str, Any]:
    """Return the content of ``statistics.json``."""
    return {
        tag: {
            modality: {key: _key_json(values) for key, values in getattr(entry, modality).items()}
            for modality in ("state", "action", "relative_action")
        }
        for tag, entry in statistics.items()
    }


def _embodiment_json(modalities: EmbodimentModalities) -> dict[str, Any]:
    return {name: _modality_json(getattr(modalities, name)) for name in MODALITIES}


def _modality_json(modality: ModalityConfig) -> dict[str, Any]:
    return {
        "delta_indices": list(modality.delta_indices),
        "modality_keys": list(modality.modality_keys),
        "sin_cos_embedding_keys": list(modality.sin_cos_embedding_keys) or None,
        "mean_std_embedding_keys": list(modality.mean_std_embedding_keys) or None,
        "action_configs": None
        if modality.action_configs is None
        else [_action_json(config) for config in modality.action_configs],
    }


def _action_json(config: ActionConfig) -> dict[str, Any]:
    return {
        "rep": config.rep.name,
        "type": config.type.name,
        "format": config.format.name,
        "state_key": config.state_key,
    }


def _key_json(statistics: KeyStatistics) -> dict[str, Any]:
    values = {name: getattr(statistics, name) for name in ("min", "max", "mean", "std", "q01", "q99")}
    return {name: array.tolist() for name, array in values.items() if array is not None}
