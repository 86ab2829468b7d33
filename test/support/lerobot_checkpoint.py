"""Checkpoints as LeRobot saves them, made out of the golden one: pipeline files and prefixed weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file

from support.golden import TINY_SINGLE

PACK = "groot_n1_7_pack_inputs_v1"
ENCODE = "groot_n1_7_vlm_encode_v1"
DECODE = "groot_n1_7_action_decode_v1"
UNPACK = "groot_action_unpack_unnormalize_v2"


def write_lerobot_checkpoint(directory: Path, tag: str = "new_embodiment", *, grouped: bool = True) -> Path:
    """Write a LeRobot-trained checkpoint of the golden network.

    Args:
        directory: Where; it must not exist.
        tag: The embodiment tag, as in the golden file.
        grouped: Statistics by group, as from a base checkpoint or for relative actions; otherwise one vector of state
            and one of actions with a data set's own statistics.

    """
    directory.mkdir(parents=True)
    kwargs = json.loads((TINY_SINGLE / "processor_config.json").read_text())["processor_kwargs"]
    statistics = json.loads((TINY_SINGLE / "statistics.json").read_text())[tag]
    modalities = kwargs["modality_configs"][tag]
    cameras = modalities["video"]["modality_keys"]
    rows = len(modalities["action"]["delta_indices"])
    widths = {name: sum(len(entry["min"]) for entry in statistics[name].values()) for name in ("state", "action")}
    features = {f"observation.images.{camera}": {"type": "VISUAL", "shape": [3, 48, 64]} for camera in cameras}
    _write(
        directory / "config.json",
        {
            "type": "groot",
            "base_model_path": str(TINY_SINGLE),
            "embodiment_tag": tag,
            "input_features": {**features, "observation.state": {"type": "STATE", "shape": [widths["state"]]}},
            "output_features": {"action": {"type": "ACTION", "shape": [widths["action"]]}},
            "num_inference_timesteps": None,
            "chunk_size": rows,
        },
    )
    pack: dict[str, Any] = {
        "state_horizon": 1,
        "action_horizon": kwargs["max_action_horizon"],
        "valid_action_horizon": rows,
        "video_horizon": 1,
        "max_state_dim": kwargs["max_state_dim"],
        "max_action_dim": kwargs["max_action_dim"],
        "language_key": "task",
        "formalize_language": True,
        "embodiment_tag": tag,
        "embodiment_mapping": json.loads((TINY_SINGLE / "embodiment_id.json").read_text()),
        "normalize_min_max": True,
        "state_dropout_prob": 0.0,
        "clip_outliers": True,
        "use_percentiles": False,
        "video_modality_keys": cameras if grouped else None,
        "raw_stats": statistics if grouped else None,
        "modality_config": modalities if grouped else None,
    }
    encode = {key: kwargs[key] for key in ("shortest_image_edge", "crop_fraction", "use_albumentations", "model_name")}
    encode.update(image_target_size=[256, 256], image_crop_size=[230, 230], letter_box_transform=False, device="cpu")
    unpack = {
        "env_action_dim": widths["action"],
        "normalize_min_max": True,
        "clip_normalized_action": True,
        "libero_gripper_action": False,
        "libero_gripper_binarize": True,
    }
    decode = {
        "env_action_dim": widths["action"],
        "raw_stats": statistics,
        "modality_config": modalities,
        "use_percentiles": False,
        "use_relative_action": True,
        "action_decode_transform": None,
    }
    _write_pipeline(
        directory,
        "policy_preprocessor",
        [
            ("rename_observations_processor", {"rename_map": {}}, None),
            ("to_batch_processor", {}, None),
            (PACK, pack, _flat(statistics)),
            (ENCODE, encode, None),
            ("device_processor", {"device": "cpu", "float_dtype": None}, None),
        ],
    )
    _write_pipeline(
        directory,
        "policy_postprocessor",
        [
            (DECODE, decode, None) if grouped else (UNPACK, unpack, _flat(statistics)),
            ("device_processor", {"device": "cpu", "float_dtype": None}, None),
        ],
    )
    weights = load_file(TINY_SINGLE / "model.safetensors")
    save_file({f"_groot_model.{name}": tensor for name, tensor in weights.items()}, directory / "model.safetensors")
    return directory


def _write(path: Path, data: object) -> None:
    path.write_text(json.dumps(data))


def _flat(statistics: dict[str, Any]) -> dict[str, np.ndarray]:
    return {
        f"{feature}.{name}": np.concatenate([entry[name] for entry in statistics[modality].values()]).astype(np.float32)
        for modality, feature in (("state", "observation.state"), ("action", "action"))
        for name in ("min", "max", "mean", "std", "q01", "q99")
    }


def _write_pipeline(directory: Path, name: str, steps: list[tuple[str, Any, dict[str, np.ndarray] | None]]) -> None:
    entries = []
    for index, (step, config, state) in enumerate(steps):
        entry = {"registry_name": step, "config": config}
        if state is not None:
            entry["state_file"] = f"{name}_step_{index}_{step}.safetensors"
            save_file(state, directory / entry["state_file"])
        entries.append(entry)
    _write(directory / f"{name}.json", {"name": name, "steps": entries})
