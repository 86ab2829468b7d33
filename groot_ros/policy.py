"""GrootPolicy: a checkpoint, its processing and its network behind one call, observation in, action chunk out."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from groot_ros.checkpoint import Checkpoint, Embodiment, open_checkpoint
from groot_ros.choices import DTYPES, agreed_rate, select_device, select_dtype
from groot_ros.model.fast import FastNetwork, load_fast
from groot_ros.model.sampler import RealTimeChunking
from groot_ros.observation import NANOSECONDS_PER_SECOND, ActionChunk, ImageInputFormat, Observation
from groot_ros.prediction import DirectRoad, GraphRoad, Road
from groot_ros.prefix import chunking_prefix
from groot_ros.processing.processor import Processor
from groot_ros.processing.rollout import RolloutTransform, rollout_transform
from groot_ros.requests import Prediction, PredictionRequest, PrefixReport, StageTimings
from groot_ros.versions import warn_where_untested

__all__ = [
    "DTYPES",
    "GrootPolicy",
    "Prediction",
    "PredictionRequest",
    "PrefixReport",
    "StageTimings",
    "agreed_rate",
    "select_device",
    "select_dtype",
]


class GrootPolicy:
    """A GR00T N1.7 policy for one embodiment.

    One instance serves one thread at a time. It holds no state of the robot: what is relative is decoded against the
    observation that produced it.
    """

    image_input_format: ClassVar[ImageInputFormat] = ImageInputFormat.UINT8_0_255

    def __init__(
        self,
        checkpoint: Checkpoint,
        processor: Processor,
        network: FastNetwork,
        *,
        rate_hz: float,
        rollout: RolloutTransform,
    ) -> None:
        self.checkpoint = checkpoint
        self.processor = processor
        self.network = network
        self.rate_hz = rate_hz
        self._rollout = rollout
        self._road: Road = (GraphRoad if self.device.type == "cuda" else DirectRoad)(processor, network)
        self._action_names = self._numbered_names()
        self._generator = torch.Generator(device=self.device)
        self._generator.seed()
        self.last_timings: StageTimings | None = None
        self.last_prefix = PrefixReport()

    @classmethod
    def from_checkpoint(
        cls,
        path: str | Path,
        embodiment_tag: str,
        *,
        device: str = "auto",
        dtype: str | None = None,
        rate_hz: float | None = None,
        backbone: Path | None = None,
        allow_download: bool = False,
        action_decode_transform: str = "auto",
    ) -> GrootPolicy:
        """Load a policy.

        Args:
            path: A checkpoint directory, or a hub id (then ``allow_download`` must be True).
            embodiment_tag: Which of the checkpoint's embodiments to be.
            device: ``auto`` (CUDA where there is one, else CPU), ``cuda``, ``cuda:N`` or ``cpu``.
            dtype: ``float32`` or ``bfloat16``; by default bfloat16 on CUDA, as the original, and float32 on the CPU.
            rate_hz: Rows a second. Needed where the checkpoint does not record the rate that it was trained at.
            backbone: Directory with the backbone's config, tokenizer and preprocessor, where the checkpoint has none.
            allow_download: Whether files may be fetched from the hub.
            action_decode_transform: Rollout transform of the tag: ``auto``, ``none`` or ``libero``.

        Raises:
            CheckpointError: The checkpoint is not what it should be, or does not know the tag or its rate.
            DeviceError: The device is not there.

        """
        warn_where_untested()
        checkpoint = open_checkpoint(path, backbone=backbone, allow_download=allow_download)
        target = select_device(device)
        number_type = select_dtype(dtype, target)
        processor = Processor(checkpoint, embodiment_tag)
        weights = checkpoint.weights()
        network = load_fast(
            checkpoint.config,
            checkpoint.backbone.config,
            lambda rows: weights.tensors(rows=rows),
            processor.embodiment.id,
            device=target,
            dtype=number_type,
        )
        return cls(
            checkpoint,
            processor,
            network,
            rate_hz=agreed_rate(checkpoint, rate_hz),
            rollout=rollout_transform(action_decode_transform, embodiment_tag),
        )

    @property
    def embodiment(self) -> Embodiment:
        """The embodiment that this policy is."""
        return self.processor.embodiment

    @property
    def device(self) -> torch.device:
        """Where the network lives."""
        return self.network.device

    @property
    def dtype(self) -> torch.dtype:
        """The number type of the network's weights."""
        return self.network.dtype

    @property
    def horizon(self) -> int:
        """Rows of a chunk."""
        return len(self.embodiment.modalities.action.delta_indices)

    def predict(
        self,
        observation: Observation,
        previous_chunk: ActionChunk | None = None,
        seed: int | None = None,
        *,
        frozen_rows: int = 0,
        ramp_rate: float = 6.0,
    ) -> ActionChunk:
        """Predict the actions that follow an observation.

        Args:
            observation: What the robot sees and is told.
            previous_chunk: The untransformed chunk that is being executed. Its rows from the observation's stamp on
                become the prefix of real-time chunking, expressed anew against this observation.
            seed: Seed of the noise that denoising starts from; None draws it from the policy's own generator.
            frozen_rows: Rows of the prefix that will have been executed before the new chunk can take over.
            ramp_rate: How fast the rows after the frozen ones become free.

        Returns:
            The decoded chunk in the policy's physical units, before the rollout transform.

        Raises:
            ObservationError: The observation does not fit the embodiment.
            ProcessingError: The actions cannot be decoded.

        """
        request = PredictionRequest(observation, previous_chunk, seed, frozen_rows, ramp_rate)
        prediction = self.predict_batch([request])[0]
        self.last_timings, self.last_prefix = prediction.timings, prediction.prefix
        return prediction.chunk

    @torch.inference_mode()
    def predict_batch(self, requests: Sequence[PredictionRequest]) -> list[Prediction]:
        """Predict for several robots; each gets what it would get alone, up to the rounding of sums.

        Requests whose prompts have one size run through the network together, those of other sizes after them: beside
        a longer prompt a shorter one would have to be padded, and the network reads padding, so its numbers change.

        Raises:
            ObservationError: An observation does not fit the embodiment.
            ProcessingError: The actions cannot be decoded.

        """
        answers: dict[int, Prediction] = {}
        for places in self.together([request.observation for request in requests]):
            answers.update(zip(places, self._predict_together([requests[place] for place in places]), strict=True))
        return [answers[place] for place in range(len(requests))]

    def together(self, observations: Sequence[Observation]) -> list[list[int]]:
        """Places of the observations that can run through the network together, without padding."""
        if len(observations) == 1:
            return [[0]]
        groups: dict[tuple[int, int], list[int]] = {}
        for place, observation in enumerate(observations):
            groups.setdefault(self.processor.prompt_size(observation), []).append(place)
        return list(groups.values())

    def name_actions(self, names: Mapping[str, Sequence[str]]) -> None:
        """Name the dimensions of action groups in the chunks to come, as the robot contract does.

        A group without names keeps its numbers.

        Raises:
            ValueError: A group has another number of dimensions.

        """
        self._action_names = self.checked_names(names)

    def checked_names(self, names: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
        """Names for all dimensions of the action groups; a group without names gets numbers.

        Raises:
            ValueError: A group has another number of dimensions.

        """
        for key, given in names.items():
            if given and len(given) != self.processor.action_dimensions[key]:
                msg = (
                    f"action group {key!r}: {len(given)} names, but {self.processor.action_dimensions[key]} dimensions"
                )
                raise ValueError(msg)
        return {key: list(names.get(key, ())) or numbered for key, numbered in self._numbered_names().items()}

    def rollout(self, chunk: ActionChunk, previous: ActionChunk | None = None) -> ActionChunk:
        """The chunk as the robot takes it: with the rollout transform of the tag (LIBERO's gripper), rows as before.

        Args:
            chunk: As predicted.
            previous: What this method gave for the chunk that is being executed; where the transform keeps the row
                before (a gripper at exactly 0.5), its row before the first one of this chunk counts.

        """
        row_before = None
        if previous is not None:
            elapsed_s = (chunk.stamp_ns - previous.stamp_ns) / NANOSECONDS_PER_SECOND
            row = min(round(elapsed_s / previous.period_s), previous.horizon) - 1
            if row >= 0:
                row_before = {key: values[row] for key, values in previous.groups.items()}
        return replace(chunk, groups=self._rollout(chunk.groups, row_before))

    def unrolled(self, prefix: ActionChunk, chunk: ActionChunk) -> ActionChunk:
        """A prefix of real-time chunking whose transformed groups say again what the policy said.

        Args:
            prefix: Rows that are still to come, cut from what the robot is sent.
            chunk: The predicted chunk that they come from.

        """
        changed = self._rollout.changed_groups
        if not changed:
            return prefix
        first = (prefix.stamp_ns - chunk.stamp_ns) / NANOSECONDS_PER_SECOND / chunk.period_s
        rows = np.clip(np.round(first + np.arange(prefix.horizon)), 0, chunk.horizon - 1).astype(np.intp)
        return replace(prefix, groups={**prefix.groups, **{key: chunk.groups[key][rows] for key in changed}})

    def noise(self, batch: int, seed: int | None = None) -> Tensor:
        """The noise that denoising starts from, ``(batch, horizon, action dimension)``.

        A seed gives what the original gives after ``torch.manual_seed(seed)`` on the same device and number type.
        """
        config = self.checkpoint.config
        generator = self._generator
        if seed is not None:
            generator = torch.Generator(device=self.device)
            generator.manual_seed(seed)
        return torch.randn(
            (batch, config.action_horizon, config.max_action_dim),
            generator=generator,
            device=self.device,
            dtype=self.dtype,
        )

    def _predict_together(self, requests: Sequence[PredictionRequest]) -> list[Prediction]:
        observations = [request.observation for request in requests]
        reports: list[PrefixReport] = []

        def prefixes() -> list[RealTimeChunking | None]:
            made = [
                chunking_prefix(request, self.processor, rate_hz=self.rate_hz, horizon=self.horizon, dtype=self.dtype)
                for request in requests
            ]
            reports.extend(report for _, report in made)
            return [chunking for chunking, _ in made]

        noise = torch.cat([self.noise(1, request.seed) for request in requests])
        predicted = self._road(observations, noise, prefixes)
        start = time.perf_counter()
        decoded = self.processor.decode(predicted.actions.numpy(), observations)
        timings = StageTimings(*predicted.stage_s, decode_s=time.perf_counter() - start)
        return [
            Prediction(
                ActionChunk(
                    stamp_ns=request.observation.stamp_ns,
                    period_s=1.0 / self.rate_hz,
                    groups=groups,
                    names=self._action_names if request.names is None else self.checked_names(request.names),
                ),
                timings,
                report,
            )
            for request, groups, report in zip(requests, decoded, reports, strict=True)
        ]

    def _numbered_names(self) -> dict[str, list[str]]:
        widths = self.processor.action_dimensions
        return {key: [str(index) for index in range(width)] for key, width in widths.items()}
