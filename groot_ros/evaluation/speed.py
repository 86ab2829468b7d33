"""How fast a policy predicts on this machine, in the columns that NVIDIA publishes."""

from __future__ import annotations

import resource
from dataclasses import dataclass

import numpy as np
import torch

from groot_ros.observation import Observation
from groot_ros.policy import GrootPolicy, StageTimings

COLUMNS = ("data_processing", "backbone", "action_head", "decode", "end_to_end")
WARM_UP_RUNS = 3
"""The first runs allocate, prepare the prompt and, on a GPU, capture the graphs."""


@dataclass(frozen=True)
class SpeedReport:
    """Times of a policy's predictions.

    Attributes:
        device: Where it ran, in words.
        dtype: Number type of the weights.
        times_s: Seconds of every counted run, by column.
        warm_up_s: Seconds of the first runs, end to end.
        peak_memory_bytes: The most memory since the process began: of the GPU where there is one, else of the process.

    """

    device: str
    dtype: str
    times_s: dict[str, tuple[float, ...]]
    warm_up_s: tuple[float, ...]
    peak_memory_bytes: int

    def summary(self) -> dict[str, dict[str, float]]:
        """Minimum, median and 95th percentile of every column, milliseconds."""
        return {
            column: {
                "minimum_ms": min(times) * 1e3,
                "median_ms": float(np.median(times)) * 1e3,
                "p95_ms": float(np.percentile(times, 95)) * 1e3,
            }
            for column, times in self.times_s.items()
        }

    @property
    def rate_hz(self) -> float:
        """Predictions a second, from the median."""
        return 1e3 / self.summary()["end_to_end"]["median_ms"]


def measure_speed(
    policy: GrootPolicy, *, runs: int, frame_size: tuple[int, int], instruction: str = "pick up the cube"
) -> SpeedReport:
    """Predict again and again from frames of noise, new ones each time, and the mean state.

    Args:
        policy: The policy.
        runs: Predictions that count.
        frame_size: Height and width of every camera, pixels.
        instruction: The task.

    """
    warm_up = [_predict(policy, frame_size, instruction, run).total_s for run in range(WARM_UP_RUNS)]
    timings = [_predict(policy, frame_size, instruction, WARM_UP_RUNS + run) for run in range(runs)]
    return SpeedReport(
        device=_device_in_words(policy.device),
        dtype=str(policy.dtype).removeprefix("torch."),
        times_s={
            "data_processing": tuple(timing.data_processing_s for timing in timings),
            "backbone": tuple(timing.backbone_s for timing in timings),
            "action_head": tuple(timing.action_head_s for timing in timings),
            "decode": tuple(timing.decode_s for timing in timings),
            "end_to_end": tuple(timing.total_s for timing in timings),
        },
        warm_up_s=tuple(warm_up),
        peak_memory_bytes=_peak_memory(policy.device),
    )


def _predict(policy: GrootPolicy, frame_size: tuple[int, int], instruction: str, seed: int) -> StageTimings:
    policy.predict(_observation(policy, frame_size, instruction, seed), seed=seed)
    assert policy.last_timings is not None
    return policy.last_timings


def _observation(policy: GrootPolicy, frame_size: tuple[int, int], instruction: str, seed: int) -> Observation:
    modalities, statistics = policy.embodiment.modalities, policy.embodiment.statistics
    frames, rows = len(modalities.video.delta_indices), len(modalities.state.delta_indices)
    random = np.random.default_rng(seed)
    return Observation(
        images={
            key: random.integers(0, 256, (frames, *frame_size, 3), dtype=np.uint8)
            for key in modalities.video.modality_keys
        },
        state={
            key: np.tile(statistics.state[key].mean.astype(np.float32), (rows, 1))
            for key in modalities.state.modality_keys
        },
        instruction=instruction,
        stamp_ns=0,
    )


def _device_in_words(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"CPU, {torch.get_num_threads()} threads"


def _peak_memory(device: torch.device) -> int:
    if device.type == "cuda":
        return int(torch.cuda.max_memory_allocated(device))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
