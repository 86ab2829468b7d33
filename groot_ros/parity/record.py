"""Write this implementation's own values as an artifact: to compare two machines, devices or versions of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from groot_ros.model.model import GrootN17
from groot_ros.model.sampler import RealTimeChunking
from groot_ros.model.trace import trace_stages
from groot_ros.observation import Observation
from groot_ros.parity.check import sample, to_numpy
from groot_ros.parity.report import versions_here
from groot_ros.processing.processor import Processor

Array = NDArray[Any]

_INPUTS = ("input_ids", "attention_mask", "pixel_values", "image_grid_thw", "state", "embodiment_id")


def record_artifact(
    processor: Processor, network: GrootN17, observations: Sequence[Observation], *, seed: int, stages: bool = True
) -> dict[str, Array]:
    """Compute what the producers compute, with our own code.

    Args:
        processor: Of the tag.
        network: Of the same checkpoint.
        observations: One a sample.
        seed: Of the noise.
        stages: Whether the values between the stages of the network are kept too.

    Returns:
        The arrays of an artifact; see the producers for their names.

    """
    first = observations[0]
    inputs = processor.prepare(observations)
    placed = inputs.to(network.device, network.dtype)
    torch.manual_seed(seed)
    shape = (len(observations), network.config.action_horizon, network.config.max_action_dim)
    noise = torch.randn(shape).to(network.device)
    with torch.inference_mode(), trace_stages(network) as trace:
        features, action_pred = sample(network, placed, noise)
        traced = {name: to_numpy(tensor) for name, tensor in trace.items()} if stages else {}
    decoded = processor.actions.decode(action_pred, [observation.state for observation in observations])
    overlap = max(1, processor.actions.horizon // 2)
    chunking = RealTimeChunking(torch.from_numpy(action_pred), processor.actions.horizon, overlap, overlap // 3, 6.0)
    with torch.inference_mode():
        chunked = network.sample(
            features, state=placed.state, embodiment_id=placed.embodiment_id, noise=noise, rtc=chunking
        )
    return {
        "embodiment_tag": np.array(processor.embodiment.tag),
        "seed": np.array(seed),
        "device": np.array(str(network.device)),
        "producer": np.array("groot_ros"),
        "versions": np.array(json.dumps(versions_here())),
        "raw::language": np.array([observation.instruction for observation in observations]),
        **{f"raw::video.{key}": np.stack([each.images[key] for each in observations]) for key in first.images},
        **{f"raw::state.{key}": np.stack([each.state[key] for each in observations]) for key in first.state},
        **{f"in::inputs.{name}": to_numpy(getattr(inputs, name)) for name in _INPUTS},
        "stage::images": np.stack([processor.frames(observation) for observation in observations]),
        **{f"stage::{name}": values for name, values in traced.items()},
        "initial_noise": to_numpy(noise),
        "action_pred": action_pred,
        **{f"decoded::{key}": values for key, values in decoded.items()},
        "rtc::previous": action_pred,
        "rtc::action_horizon": np.array(chunking.action_horizon),
        "rtc::rtc_overlap_steps": np.array(chunking.overlap_steps),
        "rtc::rtc_frozen_steps": np.array(chunking.frozen_steps),
        "rtc::rtc_ramp_rate": np.array(chunking.ramp_rate),
        "rtc::action_pred": to_numpy(chunked),
    }
