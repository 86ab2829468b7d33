"""How good the policy is on episodes that it did not see: its loss, and its errors in physical units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from groot_ros.dataset.reader import Dataset
from groot_ros.dataset.windows import TrainingWindows
from groot_ros.errors import TrainingError
from groot_ros.training.batches import BatchMaker
from groot_ros.training.config import Validation
from groot_ros.training.device import DevicePreparation
from groot_ros.training.network import TrainedNetwork

VALIDATION_EPOCH = 2**31  # of the draws: none that training reaches


@dataclass(frozen=True)
class Scores:
    """Sums over some windows.

    Attributes:
        windows: Their number.
        loss: Sum of their losses.
        absolute: Action group to the sum of the mean absolute errors of its chunks, physical units.
        squared: The same of the mean squared errors.

    """

    windows: int
    loss: float
    absolute: dict[str, float]
    squared: dict[str, float]


def held_out_episodes(dataset: Dataset, validation: Validation) -> tuple[int, ...]:
    """The episodes that are not trained on; none for a share of 0, and never all by a share.

    Raises:
        TrainingError: The dataset has no episode of a number, or the numbers are those of all.

    """
    count = len(dataset.episodes)
    if isinstance(validation.episodes, tuple):
        unknown = [str(episode) for episode in validation.episodes if not 0 <= episode < count]
        if unknown:
            msg = (
                f"validation.episodes: {dataset.root} has no episode {', '.join(unknown)}; its {count} episodes are "
                f"numbered from 0 to {count - 1}"
            )
            raise TrainingError(msg)
        if len(set(validation.episodes)) == count:
            msg = f"validation.episodes: all {count} episodes of {dataset.root} are held out; leave some to train on"
            raise TrainingError(msg)
        return validation.episodes
    number = min(round(validation.episodes * count), max(0, count - 1))
    if number == 0 and validation.episodes > 0.0 and count > 1:
        number = 1
    return tuple(int(episode) for episode in np.linspace(0, count - 1, number + 2)[1:-1].round()) if number else ()


def spread_windows(windows: TrainingWindows, count: int) -> list[int]:
    """Numbers of ``count`` windows, spread evenly."""
    return sorted({int(number) for number in np.linspace(0, len(windows) - 1, min(count, len(windows))).round()})


@torch.no_grad()
def scores(
    network: TrainedNetwork, maker: BatchMaker, numbers: Sequence[int], *, batch_size: int, device: torch.device
) -> Scores:
    """Look at some windows, the same draws each time.

    Args:
        network: In evaluation mode.
        maker: Without augmentation.
        numbers: Windows.
        batch_size: Windows at a time.
        device: Where the network is.

    """
    processor = maker.processor
    preparation = DevicePreparation(processor.geometry, processor.patches)
    loss, absolute, squared = (
        0.0,
        dict.fromkeys(processor.action_dimensions, 0.0),
        dict.fromkeys(processor.action_dimensions, 0.0),
    )
    for start in range(0, len(numbers), batch_size):
        chosen = numbers[start : start + batch_size]
        windows = [maker.windows[number] for number in chosen]
        batch = maker.make(windows, [maker.options.draw(VALIDATION_EPOCH, number) for number in chosen])
        images = tuple(camera.to(device) for camera in batch.pop("images"))
        pixel_values = preparation.pixel_values(images, batch.pop("crop_boxes", None))
        batch = {"pixel_values": pixel_values, **{key: value.to(device) for key, value in batch.items()}}
        loss += float(network(**batch)["loss"]) * len(chosen)
        features = network.network.encode(
            **{key: batch[key] for key in ("input_ids", "attention_mask", "image_grid_thw")},
            pixel_values=pixel_values.to(network.network.dtype),
        )
        sampled = network.network.sample(
            features, state=batch["state"], embodiment_id=batch["embodiment_id"], noise=batch["noise"][:, 0]
        )
        predicted = processor.decode(sampled.float().cpu().numpy(), [window.observation for window in windows])
        for window, chunk in zip(windows, predicted, strict=True):
            for key, values in chunk.items():
                if values.shape[-1]:
                    error = values - window.actions[key]
                    absolute[key] += float(np.abs(error).mean())
                    squared[key] += float(np.square(error).mean())
    return Scores(len(numbers), loss, absolute, squared)
