"""What the tests of training are made of: golden cases as windows and draws, and small datasets to train on."""

from __future__ import annotations

import numpy as np

from groot_ros.dataset.windows import Window
from groot_ros.observation import ImageInputFormat
from groot_ros.processing.geometry import CropBox
from groot_ros.processing.processor import Processor
from groot_ros.training.augmentation import CropPlace, ImageDraws
from groot_ros.training.batches import BatchMaker
from groot_ros.training.color_jitter import ColorJitter
from groot_ros.training.draws import DrawOptions, SampleDraws
from support.golden import GoldenCase
from support.golden_road import observation


def golden_windows(case: GoldenCase) -> list[Window]:
    """The samples of a case with their actions, as the data road reads them from a dataset."""
    actions = {key: values.astype(np.float64) for key, values in case.raw("action").items()}
    count = len(case["raw.language"]) if "raw.language" in case else 1
    if "raw.language" not in case:
        case.arrays["raw.language"] = np.array(["pick up the cube"])
    return [
        Window(0, row, observation(case, row), {key: values[row] for key, values in actions.items()})
        for row in range(count)
    ]


def given_draws(case: GoldenCase) -> list[SampleDraws]:
    """Noise and time as the case recorded them; nothing else is drawn."""
    return [
        SampleDraws(1.0, ImageDraws((CropPlace(0.0, 0.0),)), noise[None], time[None])
        for noise, time in zip(case["train.noise"], case["train.t"], strict=True)
    ]


def recorded_image_draws(case: GoldenCase) -> ImageDraws:
    """Crop, rotation and colours as a case recorded them."""
    drawn = {entry["cls"]: entry["params"] for entry in case.meta["drawn_parameters"]}
    left, top, right, bottom = drawn["FractionalRandomCrop"]["crop_coords"]
    jitter = drawn.get("ColorJitter")
    return ImageDraws(
        crops=(CropBox(top, left, bottom - top, right - left),),
        rotation_deg=drawn["Rotate"]["angle"] if "Rotate" in drawn else 0.0,
        jitter=ColorJitter(
            **{key: jitter[key] for key in ("brightness", "contrast", "saturation", "hue")},
            order=tuple(jitter["order"]),
        )
        if jitter
        else None,
    )


def batch_maker(processor: Processor, windows: object = (), *, augment: bool = True, **changes: object) -> BatchMaker:
    """A maker of batches with plain options."""
    values = {
        "options": DrawOptions(seed=7, crops=1, action_shape=(20, 18)),
        "state_dropout": 0.0,
        "input_format": ImageInputFormat.UINT8_0_255,
    }
    return BatchMaker(windows, processor, augment=augment, **(values | changes))
