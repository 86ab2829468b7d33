"""The tiny golden network and its inputs."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import safe_open

from groot_ros.checkpoint.config import DiTConfig, ModelConfig, VLSelfAttentionConfig
from groot_ros.model import GrootN17, VisionLanguageFeatures, load_model
from support.golden import BACKBONE, TINY_SINGLE, GoldenCase

ENCODER_INPUTS = ("input_ids", "attention_mask", "pixel_values", "image_grid_thw")


def model_config(directory: Path = TINY_SINGLE, **overrides: Any) -> ModelConfig:
    """The network's configuration, with switches replaced as the golden files name them."""
    raw = json.loads((directory / "config.json").read_text()) | overrides
    raw["diffusion_model_cfg"] = DiTConfig(**raw["diffusion_model_cfg"])
    if raw["vl_self_attention_cfg"] is not None:
        raw["vl_self_attention_cfg"] = VLSelfAttentionConfig(**raw["vl_self_attention_cfg"])
    known = {field.name for field in dataclasses.fields(ModelConfig)}
    return ModelConfig(**{key: value for key, value in raw.items() if key in known})


def backbone_config() -> dict[str, Any]:
    """The backbone's ``config.json``."""
    return json.loads((BACKBONE / "config.json").read_text())


def weights(directory: Path = TINY_SINGLE) -> Iterator[tuple[str, torch.Tensor]]:
    """Names and tensors of a checkpoint."""
    for path in sorted(directory.glob("*.safetensors")):
        with safe_open(path, "pt") as file:
            for name in file.keys():  # noqa: SIM118 - not a dictionary
                yield name, file.get_tensor(name)


def tiny_network(directory: Path = TINY_SINGLE, dtype: torch.dtype = torch.float32, **overrides: Any) -> GrootN17:
    """The golden network on the CPU."""
    return load_model(
        model_config(directory, **overrides), backbone_config(), weights(directory), device="cpu", dtype=dtype
    )


def golden_inputs(case: GoldenCase) -> dict[str, torch.Tensor]:
    """The arrays ``in.*`` of a case as tensors; pixels from their lossless bytes where they are stored that way."""
    inputs = {
        key: torch.from_numpy(case[f"in.{key}"])
        for key in ("input_ids", "attention_mask", "image_grid_thw", "state", "embodiment_id")
    }
    if "in.pixel_values" in case:
        pixels = case["in.pixel_values"]
    else:
        pixels = (case["in.pixel_values.u8"].astype(np.float32) - np.float32(127.5)) / np.float32(127.5)
    return {**inputs, "pixel_values": torch.from_numpy(pixels)}


def encode(network: GrootN17, inputs: dict[str, torch.Tensor]) -> VisionLanguageFeatures:
    """The backbone on golden inputs."""
    return network.encode(**{key: inputs[key] for key in ENCODER_INPUTS})
