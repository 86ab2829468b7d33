"""How observations become normalised actions: step by step on a CPU, as captured graphs on a GPU."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import torch
from torch import Tensor

from groot_ros.model.fast import FastNetwork
from groot_ros.model.fast.graph import CapturedStage
from groot_ros.model.fast.network import PreparedFeatures
from groot_ros.model.fast.prompt import PreparedPrompt
from groot_ros.model.sampler import RealTimeChunking, begin
from groot_ros.observation import Observation
from groot_ros.processing.device_processor import Cameras, DeviceProcessor
from groot_ros.processing.processor import Processor

KEPT_GRAPHS = 8
"""Sizes whose graphs are kept: each holds its own memory, and capturing anew takes about as long as a few runs."""


@dataclass(frozen=True)
class Predicted:
    """What a road gives.

    Attributes:
        actions: Normalised, float32 ``(B, H, D)`` on the CPU.
        stage_s: Time of data processing, backbone and action head, seconds.

    """

    actions: Tensor
    stage_s: tuple[float, float, float]


MakePrefixes = Callable[[], Sequence[RealTimeChunking | None]]
"""Makes the prefix of each observation, or None where it has none."""


class Road(Protocol):
    """Observations of equal prompt sizes, noise and prefixes to actions."""

    def __call__(self, observations: Sequence[Observation], noise: Tensor, make_prefixes: MakePrefixes) -> Predicted:
        """Predict; the prefixes are part of the data processing, so they are made inside."""


class DirectRoad:
    """Step by step: for CPUs, where OpenCV's and torch's own resizes are the fastest.

    On a GPU it is there to be compared with. Nothing waits before the actions are fetched, so there only the sum of the
    three times means anything.
    """

    def __init__(self, processor: Processor, network: FastNetwork) -> None:
        self._processor = processor
        self._network = network

    def __call__(self, observations: Sequence[Observation], noise: Tensor, make_prefixes: MakePrefixes) -> Predicted:
        """Predict."""
        moments = [time.perf_counter()]
        inputs = self._processor.prepare(observations)
        prefixes = make_prefixes()
        moments.append(time.perf_counter())
        features = self._network.encode(
            input_ids=inputs.input_ids,
            attention_mask=inputs.attention_mask,
            pixel_values=self._moved(inputs.pixel_values),
            image_grid_thw=inputs.image_grid_thw,
        )
        moments.append(time.perf_counter())
        actions = self._network.sample(features, state=self._moved(inputs.state), noise=noise, rtc=prefixes)
        fetched = actions.float().cpu()
        moments.append(time.perf_counter())
        return Predicted(fetched, (moments[1] - moments[0], moments[2] - moments[1], moments[3] - moments[2]))

    def _moved(self, values: Tensor) -> Tensor:
        """Values where the network reads them; on a CPU, which rounds them where it must, they stay as they are."""
        device = self._network.device
        return values if device.type == "cpu" else values.to(device, self._network.dtype)


class GraphRoad:
    """Three captured stages: images, backbone, action head. Frames go in as uint8, actions come out.

    Nothing waits for the device until the actions are there. What is captured depends on sizes alone: of the batch, the
    images and the prompts. Another instruction of as many tokens runs through the same graphs; another size is captured
    when it first occurs.
    """

    def __init__(self, processor: Processor, network: FastNetwork) -> None:
        self._device = network.device
        self._network = network
        self._processor = DeviceProcessor(processor, self._device, network.dtype)
        self._images: dict[tuple[torch.Size, ...], CapturedStage] = {}
        self._networks: OrderedDict[Hashable, _NetworkStages] = OrderedDict()

    def __call__(self, observations: Sequence[Observation], noise: Tensor, make_prefixes: MakePrefixes) -> Predicted:
        """Predict."""
        clock = _DeviceClock(self._device)
        cameras = self._processor.upload(observations)
        inputs = self._processor.assemble(observations, cameras, self._image_stage(cameras)())
        prompt = self._network.prompts(inputs.input_ids, inputs.attention_mask, inputs.image_grid_thw)
        start, strength = begin(noise.to(self._network.residual), make_prefixes())
        stages = self._stages((prompt, inputs.pixel_values, inputs.state, start, strength))
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

    def _stages(self, values: _InputValues) -> _NetworkStages:
        """The captured network for the sizes of its inputs, which are put where it reads them."""
        form = values[0].form
        stages = self._networks.pop(form, None)
        inputs = _NetworkInputs(self._network, *values[:2]) if stages is None else stages.inputs
        inputs.take(*values)
        if stages is None:
            stages = self._capture(inputs)
        self._networks[form] = stages
        if len(self._networks) > KEPT_GRAPHS:
            self._networks.popitem(last=False)
        return stages

    def _capture(self, inputs: _NetworkInputs) -> _NetworkStages:
        network, prompt = self._network, inputs.prompt
        backbone = CapturedStage(
            lambda: network.encode_prepared(prompt, inputs.pixel_values).hidden_states, self._device
        )
        features = PreparedFeatures(backbone.output, prompt.valid, prompt.image_mask, prompt)
        action_head = CapturedStage(
            lambda: network.denoise(network.conditions(features, inputs.state), inputs.start, inputs.strength),
            self._device,
        )
        return _NetworkStages(inputs, backbone, action_head)


_InputValues = tuple[PreparedPrompt, Tensor, Tensor, Tensor, "Tensor | None"]
"""Prompt, pixel values, state ``(B, T, D)``, start ``(B, H, D)`` and strength, None where every row follows fully."""


class _NetworkInputs:
    """What the captured network reads, at addresses that stay.

    Args:
        network: The network.
        prompt: A prompt of the size that is captured.
        pixel_values: Its pixel values.

    """

    def __init__(self, network: FastNetwork, prompt: PreparedPrompt, pixel_values: Tensor) -> None:
        config, batch = network.config, len(prompt.input_ids)
        zeros = partial(torch.zeros, dtype=network.residual, device=network.device)
        self._taken = prompt
        self.prompt = prompt.copy()
        self.pixel_values = torch.empty_like(pixel_values)
        self.state = zeros((batch, config.state_history_length, config.max_state_dim))
        self.start = zeros((batch, config.action_horizon, config.max_action_dim))
        self.strength = zeros((batch, config.action_horizon, 1))

    def take(
        self, prompt: PreparedPrompt, pixel_values: Tensor, state: Tensor, start: Tensor, strength: Tensor | None
    ) -> None:
        """Put the values of one prediction there."""
        self.pixel_values.copy_(pixel_values)
        if prompt is not self._taken:
            self.prompt.take(prompt)
            self._taken = prompt
        self.state.copy_(state, non_blocking=True)
        self.start.copy_(start)
        if strength is None:
            self.strength.fill_(1)
        else:
            self.strength.copy_(strength)


@dataclass(frozen=True)
class _NetworkStages:
    """The captured network for inputs of one size."""

    inputs: _NetworkInputs
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
