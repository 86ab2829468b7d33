"""What the tests of training are made of: golden cases as windows and draws, and small datasets to train on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from rich.console import Console

from groot_ros.checkpoint import Checkpoint, WeightFiles, write_tiny_checkpoint
from groot_ros.dataset.windows import Window
from groot_ros.observation import ImageInputFormat
from groot_ros.processing.geometry import CropBox
from groot_ros.processing.processor import Processor
from groot_ros.training.augmentation import CropPlace, ImageDraws
from groot_ros.training.batches import BatchMaker
from groot_ros.training.color_jitter import ColorJitter
from groot_ros.training.config import FinetuneConfig
from groot_ros.training.device import DevicePreparation
from groot_ros.training.draws import DrawOptions, SampleDraws
from groot_ros.training.finetune import Outcome, finetune
from support.golden import TINY_SINGLE, GoldenCase
from support.golden_road import observation
from support.processing import processor_config


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


CONTRACT = """
contract_version: 1
robot: so101
embodiment_tag: new_embodiment
rate_hz: 20
cameras: {front: {topic: front/image_raw}, wrist: {topic: wrist/image_raw}}
state:
  single_arm: {topic: joint_states, joints: [shoulder, elbow, wrist]}
  gripper: {topic: joint_states, joints: [gripper]}
actions: {single_arm: {meaning: position}, gripper: {meaning: position}}
outputs: {arm: {type: joint_trajectory, topic: arm/joint_trajectory, from: {single_arm: all, gripper: all}}}
limits: none
policy: {horizon: 8, representation: {single_arm: relative, gripper: absolute}}
"""


def write_base_model(out: Path) -> Path:
    """A base model whose tag is not the one that is trained."""
    ranges = {"single_arm": ((-1.0, 1.0),) * 3, "gripper": ((0.0, 1.0),)}
    return write_tiny_checkpoint(out, state=ranges, actions=ranges, horizon=8, fps=20.0, image_edge=32)


def small_config(dataset: Path, base_model: Path, contract: Path, output: Path, **changes: object) -> FinetuneConfig:
    """A training of a few steps on the CPU."""
    values = {
        "dataset": dataset,
        "base_model": str(base_model),
        "contract": contract,
        "output": output,
        "steps": 4,
        "batch_size": 2,
        "learning_rate": 1e-3,
        "workers": 0,
        "validation": {"episodes": 0},
        "log_every": 1,
        "save_every": 100,
        "report_to": [],
        "check_dataset": "skip",
        "device": "cpu",
    }
    return FinetuneConfig.model_validate(values | changes)


def quiet(config: FinetuneConfig, **options: object) -> Outcome:
    """Train without a word."""
    return finetune(config, console=Console(quiet=True), **options)


def saved_weights(directory: Path) -> dict[str, torch.Tensor]:
    """The weights of a checkpoint folder."""
    return dict(WeightFiles(directory).tensors())


def processor_for(checkpoint: Checkpoint, case: GoldenCase) -> Processor:
    """The processing of a case."""
    config = processor_config(TINY_SINGLE, case.meta.get("processor_kwargs_overrides", {}))
    return Processor(replace(checkpoint, processor=config), case.meta["tag"])


def golden_batch(checkpoint: Checkpoint, case: GoldenCase) -> dict[str, torch.Tensor]:
    """A case by the public data road: windows in, what the network is handed out."""
    processor = processor_for(checkpoint, case)
    batch = batch_maker(processor, augment=False).make(golden_windows(case), given_draws(case))
    preparation = DevicePreparation(processor.geometry, processor.patches)
    pixel_values = preparation.pixel_values(batch.pop("images"), batch.pop("crop_boxes", None))
    return {**batch, "pixel_values": pixel_values}
