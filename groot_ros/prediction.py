"""How one observation becomes normalised actions: step by step on a CPU, as captured graphs on a GPU."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import torch
from torch import Tensor

from groot_ros.model.fast import FastNetwork
from groot_ros.model.fast.graph import CapturedStage
from groot_ros.model.fast.network import PreparedFeatures
from groot_ros.model.fast.prompt import PreparedPrompt
from groot_ros.model.sampler import RealTimeChunking
from groot_ros.observation import Observation
from groot_ros.processing.device_processor import Cameras, DeviceProcessor
from groot_ros.processing.processor import Processor

KEPT_GRAPHS = 4
"""Prompts whose graphs are kept: each holds its own memory, and capturing anew takes about as long as a few runs."""


@dataclass(frozen=True)
class StageTimings:
    """Where the time of one prediction went, seconds; the columns of NVIDIA's own benchmark."""

    data_processing_s: float
    backbone_s: float
    action_head_s: float
    decode_s: float

    @property
    def total_s(self) -> float:
        """End to end, from the observation to physical actions."""
        return self.data_processing_s + self.backbone_s + self.action_head_s + self.decode_s


@dataclass(frozen=True)
class Predicted:
    """What a road gives.

    Attributes:
        actions: Normalised, float32 ``(1, H, D)`` on the CPU.
        stage_s: Time of data processing, backbone and action head, seconds.

    """

    actions: Tensor
    stage_s: tuple[float, float, float]


MakePrefix = Callable[[], RealTimeChunking | None]


class Road(Protocol):
    """Observation, noise and prefix to actions."""

    def __call__(self, observation: Observation, noise: Tensor, make_prefix: MakePrefix) -> Predicted:
        """Predict; the prefix is part of the data processing, so it is made inside."""


class DirectRoad:
    """Step by step: for CPUs, where OpenCV's and torch's own resizes are the fastest."""

    def __init__(self, processor: Processor, network: FastNetwork) -> None:
        self._processor = processor
        self._network = network

    def __call__(self, observation: Observation, noise: Tensor, make_prefix: MakePrefix) -> Predicted:
        """Predict."""
        moments = [time.perf_counter()]
        inputs = self._processor.prepare([observation])
        prefix = make_prefix()
        moments.append(time.perf_counter())
        features = self._network.encode(
            input_ids=inputs.input_ids,
            attention_mask=inputs.attention_mask,
            pixel_values=inputs.pixel_values,
            image_grid_thw=inputs.image_grid_thw,
        )
        moments.append(time.perf_counter())
        actions = self._network.sample(features, state=inputs.state, noise=noise, rtc=prefix).float()
        moments.append(time.perf_counter())
        return Predicted(actions, (moments[1] - moments[0], moments[2] - moments[1], moments[3] - moments[2]))


class GraphRoad:
    """Three captured stages: images, backbone, action head. Frames go in as uint8, actions come out.

    Nothing waits for the device until the actions are there. A new instruction or image size is captured anew.
    """

    def __init__(self, processor: Processor, network: FastNetwork) -> None:
        config, self._device = network.config, network.device
        self._network = network
        self._processor = DeviceProcessor(processor, self._device, network.dtype)
        self._images: dict[tuple[torch.Size, ...], CapturedStage] = {}
        self._networks: OrderedDict[tuple[int, int], _NetworkStages] = OrderedDict()
        zeros = partial(torch.zeros, dtype=network.residual, device=self._device)
        self._state = zeros((1, config.state_history_length, config.max_state_dim))
        self._start = zeros((1, config.action_horizon, config.max_action_dim))
        self._strength = zeros((config.action_horizon, 1))

    def __call__(self, observation: Observation, noise: Tensor, make_prefix: MakePrefix) -> Predicted:
        """Predict."""
        clock = _DeviceClock(self._device)
        cameras = self._processor.upload([observation])
        images = self._image_stage(cameras)
        inputs = self._processor.assemble([observation], cameras, images())
        prompt = self._network.prompts(inputs.input_ids, inputs.attention_mask, inputs.image_grid_thw)
        prefix = make_prefix()
        noise = noise.to(self._network.residual)
        self._state.copy_(inputs.state, non_blocking=True)
        self._start.copy_(noise if prefix is None else prefix.start(noise))
        if prefix is None:
            self._strength.fill_(1)
        else:
            self._strength.copy_(torch.tensor(prefix.velocity_strength(noise.shape[1]))[:, None])
        stages = self._network_stages(prompt, images)
        clock.mark()
        stages.backbone()
        clock.mark()
        actions = stages.action_head()
        clock.mark()
        fetched = actions.float().cpu()  # the one place that waits
        return Predicted(fetched, clock.stages_s())

    def _image_stage(self, cameras: Cameras) -> CapturedStage:
        sizes = tuple(frames.shape for own in cameras for frames in own)
        if sizes not in self._images:
            self._images[sizes] = CapturedStage(lambda: self._processor.pixel_values(cameras), self._device)
        return self._images[sizes]

    def _network_stages(self, prompt: PreparedPrompt, images: CapturedStage) -> _NetworkStages:
        key = (id(prompt), id(images))
        if key in self._networks:
            self._networks.move_to_end(key)
        else:
            self._networks[key] = self._capture(prompt, images.output)
            if len(self._networks) > KEPT_GRAPHS:
                self._networks.popitem(last=False)
        return self._networks[key]

    def _capture(self, prompt: PreparedPrompt, pixel_values: Tensor) -> _NetworkStages:
        network = self._network
        backbone = CapturedStage(lambda: network.encode_prepared(prompt, pixel_values).hidden_states, self._device)
        features = PreparedFeatures(backbone.output, prompt.valid, prompt.image_mask, prompt)
        action_head = CapturedStage(
            lambda: network.denoise(network.conditions(features, self._state), self._start, self._strength),
            self._device,
        )
        return _NetworkStages(prompt, backbone, action_head)


@dataclass(frozen=True)
class _NetworkStages:
    """The captured network for one prompt, which is held so that its identity stays its own."""

    prompt: PreparedPrompt
    backbone: CapturedStage
    action_head: CapturedStage


class _DeviceClock:
    """Time between marks on the device, without waiting for it."""

    def __init__(self, device: torch.device) -> None:
        self._on_gpu = device.type == "cuda"
        self._events: list[torch.cuda.Event] = []
        self._moments: list[float] = []
        self.mark()

    def mark(self) -> None:
        """End a stage."""
        if self._on_gpu:
            event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
            event.record()
            self._events.append(event)
        else:
            self._moments.append(time.perf_counter())

    def stages_s(self) -> tuple[float, float, float]:
        """Seconds of the three stages, once the device has finished."""
        if self._on_gpu:
            first, second, third = (
                start.elapsed_time(end) / 1e3 for start, end in zip(self._events, self._events[1:], strict=False)
            )
        else:
            first, second, third = (end - start for start, end in zip(self._moments, self._moments[1:], strict=False))
        return first, second, third
