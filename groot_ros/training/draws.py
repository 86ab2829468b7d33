"""What is random about one training sample, drawn from (seed, epoch, number): the same in any worker, on any rank."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from groot_ros.checkpoint import ModelConfig, ProcessorConfig
from groot_ros.errors import TrainingError
from groot_ros.training.augmentation import CropPlace, ImageDraws
from groot_ros.training.color_jitter import ColorJitter


@dataclass(frozen=True)
class SampleDraws:
    """What was drawn for one sample.

    Attributes:
        state_uniform: Place of the state's dropout, 0 to 1: the state is dropped where it is below the probability.
        images: Crop, rotation and colours.
        noise: Start of the flow, float32 ``(K, action_horizon, max_action_dim)``, for K losses of the same sample.
        time: Place on the flow from 0 (noise) to 1 (actions), float32 ``(K,)``.

    """

    state_uniform: float
    images: ImageDraws
    noise: NDArray[np.float32]
    time: NDArray[np.float32]


@dataclass(frozen=True)
class DrawOptions:
    """From what is drawn.

    Attributes:
        seed: Seed of the training.
        crops: Number of crop places: 1, or one for each frame of each camera.
        action_shape: ``(action_horizon, max_action_dim)``.
        noise_draws: Noise and time are drawn so often for each sample.
        beta: Both parameters of the distribution of the time.
        time_scale: The largest time.
        rotation_deg: Largest turn to either side.
        color_jitter: Largest change of brightness, contrast, saturation and hue; empty for none.

    """

    seed: int
    crops: int
    action_shape: tuple[int, int]
    noise_draws: int = 1
    beta: tuple[float, float] = (1.5, 1.0)
    time_scale: float = 0.999
    rotation_deg: float = 0.0
    color_jitter: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(
        cls, processor: ProcessorConfig, config: ModelConfig, *, seed: int, frames: int, noise_draws: int = 1
    ) -> DrawOptions:
        """The options of a checkpoint.

        Args:
            processor: How it augments.
            config: How it draws noise and time.
            seed: Seed of the training.
            frames: Frames of one sample, of all cameras.
            noise_draws: Losses of each sample.

        Raises:
            TrainingError: Rotation or jitter is asked for with the torch geometry, whose arithmetic we do not have.

        """
        if not processor.use_albumentations and (processor.random_rotation_angle or processor.color_jitter_params):
            msg = (
                "processing: random_rotation_angle and color_jitter_params are only available with use_albumentations, "
                "which this checkpoint does not use; set both to null, or use_albumentations to true"
            )
            raise TrainingError(msg)
        return cls(
            seed=seed,
            crops=1 if processor.use_albumentations else frames,
            action_shape=(config.action_horizon, config.max_action_dim),
            noise_draws=noise_draws,
            beta=(config.noise_beta_alpha, config.noise_beta_beta),
            time_scale=config.noise_s,
            rotation_deg=float(processor.random_rotation_angle or 0.0),
            color_jitter=dict(processor.color_jitter_params or {}),
        )

    def draw(self, epoch: int, number: int) -> SampleDraws:
        """Draw for sample ``number`` in pass ``epoch`` through the data."""
        random = np.random.default_rng([self.seed, epoch, number])
        state_uniform = float(random.random())
        crops = tuple(CropPlace(*random.random(2)) for _ in range(self.crops))
        rotation = float(random.uniform(-self.rotation_deg, self.rotation_deg)) if self.rotation_deg else 0.0
        jitter = self._jitter(random) if self.color_jitter else None
        noise = random.standard_normal((self.noise_draws, *self.action_shape), dtype=np.float32)
        time = (1.0 - random.beta(*self.beta, size=self.noise_draws)) * self.time_scale
        return SampleDraws(state_uniform, ImageDraws(crops, rotation, jitter), noise, time.astype(np.float32))

    def _jitter(self, random: np.random.Generator) -> ColorJitter:
        def factor(name: str) -> float:
            strength = self.color_jitter.get(name, 0.0)
            return float(random.uniform(max(0.0, 1.0 - strength), 1.0 + strength))

        hue = self.color_jitter.get("hue", 0.0)
        return ColorJitter(
            brightness=factor("brightness"),
            contrast=factor("contrast"),
            saturation=factor("saturation"),
            hue=float(random.uniform(-hue, hue)),
            order=tuple(int(place) for place in random.permutation(4)),
        )
