"""Pictures that a person looks at: what the network sees before the first step, and how the training went."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

from groot_ros.errors import TrainingError
from groot_ros.processing.geometry import CropBox
from groot_ros.processing.images_torch import TorchGeometry
from groot_ros.training.batches import Batch, BatchMaker
from groot_ros.training.packing import as_levels

Picture = NDArray[np.uint8]


def write_camera_pictures(maker: BatchMaker, evaluation: BatchMaker, directory: Path) -> list[Path]:
    """Write one picture a camera: the newest frame of a sample as training and as the policy see it, side by side.

    Args:
        maker: Of the training.
        evaluation: Without augmentation.
        directory: Where ``<camera>.png`` go.

    Raises:
        TrainingError: A picture cannot be written.

    """
    directory.mkdir(parents=True, exist_ok=True)
    middle = len(maker.windows) // 2
    window, draw = maker.windows[middle], maker.options.draw(0, middle)
    seen = [each.make([window], [draw]) for each in (maker, evaluation)]
    paths = []
    for place, camera in enumerate(maker.processor.cameras.keys):
        pair = [_newest(each, batch, place) for each, batch in zip((maker, evaluation), seen, strict=True)]
        height = max(picture.shape[0] for picture in pair)
        gap = np.full((height, 8, 3), 255, np.uint8)
        together = np.concatenate([_as_high(pair[0], height), gap, _as_high(pair[1], height)], axis=1)
        path = directory / f"{camera}.png"
        if not cv2.imwrite(str(path), np.ascontiguousarray(together[..., ::-1])):
            msg = f"{path}: the picture could not be written; is the disk full, or the folder not yours?"
            raise TrainingError(msg)
        paths.append(path)
    return paths


def _newest(maker: BatchMaker, batch: Batch, camera: int) -> Picture:
    """The newest frame, shaped here where the device would shape it (torch geometry)."""
    frame: Picture = as_levels(batch["images"][camera][0, -1]).permute(1, 2, 0).numpy()
    geometry = maker.processor.geometry
    if not isinstance(geometry, TorchGeometry):
        return frame
    top, left = batch["crop_boxes"][camera, 0, -1].tolist()
    shaped: Picture = geometry(frame[None], CropBox(top, left, *geometry.crop_height_width))[0]
    return shaped


def _as_high(picture: Picture, height: int) -> Picture:
    below = height - picture.shape[0]
    return np.pad(picture, ((0, below), (0, 0), (0, 0)), constant_values=255)


def write_curves(history: Sequence[dict[str, float]], path: Path) -> None:
    """Plot the loss of training and validation and the errors of every action group over the steps."""
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    FigureCanvasAgg(figure)
    losses, errors = figure.subplots(1, 2)
    for key, label in (("loss", "training"), ("eval_loss", "held-out episodes")):
        points = [(entry["step"], entry[key]) for entry in history if key in entry]
        if points:
            losses.plot(*zip(*points, strict=True), label=label)
    losses.set(xlabel="step", ylabel="flow-matching loss", yscale="log")
    losses.legend()
    groups = sorted({key for entry in history for key in entry if key.startswith("eval_") and key.endswith("_mae")})
    for key in groups:
        points = [(entry["step"], entry[key]) for entry in history if key in entry]
        errors.plot(*zip(*points, strict=True), label=key.removeprefix("eval_").removesuffix("_mae"))
    errors.set(xlabel="step", ylabel="mean absolute error of a chunk,\npolicy units")
    if groups:
        errors.legend()
    figure.savefig(path, dpi=110)
