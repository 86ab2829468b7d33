"""The tiny golden network and its inputs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from groot_ros.checkpoint import ModelConfig, WeightFiles, parse_model_config
from groot_ros.model import GrootN17, VisionLanguageFeatures, load_model
from groot_ros.model.trace import trace_stages
from support.golden import BACKBONE, TINY_SINGLE, GoldenCase

ENCODER_INPUTS = ("input_ids", "attention_mask", "pixel_values", "image_grid_thw")


def model_config(directory: Path = TINY_SINGLE, **overrides: Any) -> ModelConfig:
    """The network's configuration, with switches replaced as the golden files name them."""
    raw = json.loads((directory / "config.json").read_text())
    return parse_model_config(raw | overrides, "config.json")


def backbone_config() -> dict[str, Any]:
    """The backbone's ``config.json``."""
    return json.loads((BACKBONE / "config.json").read_text())


def weights(directory: Path = TINY_SINGLE) -> dict[str, torch.Tensor]:
    """Names and tensors of a checkpoint."""
    return dict(WeightFiles(directory).tensors())


def tiny_network(directory: Path = TINY_SINGLE, dtype: torch.dtype = torch.float32, **overrides: Any) -> GrootN17:
    """The golden network on the CPU."""
    config = model_config(directory, **overrides)
    return load_model(config, backbone_config(), weights(directory).items(), device="cpu", dtype=dtype)


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


def sample(network: GrootN17, inputs: dict[str, torch.Tensor], noise: np.ndarray, **options: Any) -> np.ndarray:
    """The whole network on golden inputs: normalised actions."""
    actions = network.sample(
        encode(network, inputs),
        state=inputs["state"],
        embodiment_id=inputs["embodiment_id"],
        noise=torch.from_numpy(noise),
        **options,
    )
    return actions.numpy()


def traced(network: GrootN17, inputs: dict[str, torch.Tensor], noise: np.ndarray) -> dict[str, np.ndarray]:
    """Every stage of a whole run, and its result as ``actions``."""
    with trace_stages(network) as stages:
        actions = sample(network, inputs, noise)
    return {stage: tensor.numpy() for stage, tensor in stages.items()} | {"actions": actions}


def rounding_by_stage(
    inputs: dict[str, torch.Tensor], noise: np.ndarray, *, runs: int, **overrides: Any
) -> dict[str, float]:
    """How far float32 rounding moves each stage: the largest difference from float64 in a few runs.

    In each run every element of the noise is moved by one unit in the last place, up or down, since one run may be
    lucky. No golden value takes part.
    """
    exact = traced(tiny_network(dtype=torch.float64, **overrides), inputs, noise)
    network = tiny_network(**overrides)
    directions = np.random.default_rng(0).choice(np.array([-np.inf, np.inf], dtype=np.float32), (runs, *noise.shape))
    largest = dict.fromkeys(exact, 0.0)
    for direction in directions:
        for stage, values in traced(network, inputs, np.nextafter(noise, direction)).items():
            largest[stage] = max(largest[stage], float(np.abs(values - exact[stage]).max()))
    return largest
