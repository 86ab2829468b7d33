"""Training against the original's numbers: loss, gradients and targets by the whole road, and every augmentation."""

from __future__ import annotations

import hashlib
import json
import random
from dataclasses import replace

import numpy as np
import pytest
import torch
from support.golden import GOLDEN, TINY_SINGLE, case_names, load_case
from support.networks import tiny_network
from support.processing import processor_config
from support.training import batch_maker, golden_batch, golden_windows, processor_for, recorded_image_draws

from groot_ros.checkpoint import CheckpointOrigin, open_checkpoint, parse_statistics
from groot_ros.dataset.windows import Window
from groot_ros.model import embeddings
from groot_ros.model.embeddings import transformer_time_frequencies
from groot_ros.observation import Observation
from groot_ros.processing.geometry import CropBox
from groot_ros.processing.processor import Processor
from groot_ros.training.augmentation import CropPlace, ImageDraws
from groot_ros.training.device import DevicePreparation
from groot_ros.training.draws import SampleDraws
from groot_ros.training.network import TrainedNetwork

WHOLE_ROAD = [name for name in case_names("model") if "raw.language" in load_case("model", name)]
WITH_GRADIENTS = [name for name in WHOLE_ROAD if "train.grad_norms" in load_case("model", name)]
CV2_AUGMENTATIONS = case_names("preprocess", "t0[1-5]*")


@pytest.fixture(name="checkpoint", scope="module")
def open_golden():
    return open_checkpoint(TINY_SINGLE)


@pytest.fixture(name="golden_frequency")
def as_the_golden_processor(monkeypatch):
    """The one frequency that the golden files' processor rounded away from the nearest float32 (see test/model)."""

    def frequencies(count, device):
        values = transformer_time_frequencies(count, device)
        values[10] = torch.nextafter(values[10], torch.tensor(1.0))
        return values

    monkeypatch.setattr(embeddings, "transformer_time_frequencies", frequencies)


def noise_free(draws):
    return SampleDraws(1.0, draws, np.zeros((1, 20, 18), np.float32), np.zeros(1, np.float32))


@pytest.mark.parametrize("name", WHOLE_ROAD)
def test_the_targets_and_their_mask_equal_the_original(checkpoint, name):
    case = load_case("model", name)
    batch = golden_batch(checkpoint, case)
    np.testing.assert_allclose(batch["action"].numpy(), case["train.action"], rtol=0, atol=2e-6)
    assert np.array_equal(batch["action_mask"].numpy(), case["train.action_mask"])


@pytest.mark.parametrize("name", WHOLE_ROAD)
def test_the_loss_of_a_recorded_window_equals_the_original(checkpoint, name):
    case = load_case("model", name)
    loss = TrainedNetwork(tiny_network()).eval()(**golden_batch(checkpoint, case))["loss"]
    np.testing.assert_allclose(loss.item(), case["train.loss"], atol=1e-5, rtol=1e-4)


@pytest.mark.usefixtures("golden_frequency")
@pytest.mark.parametrize("name", WITH_GRADIENTS)
def test_the_gradient_norms_of_a_recorded_window_equal_the_original(checkpoint, name):
    """In float64, so that the golden files' rounding is the only one."""
    case = load_case("model", name)
    network = tiny_network(dtype=torch.float64).requires_grad_()
    batch = {
        key: value.double() if value.dtype == torch.float32 and key != "pixel_values" else value
        for key, value in golden_batch(checkpoint, case).items()
    }
    TrainedNetwork(network).eval()(**batch)["loss"].backward()
    norms = {key: value.grad.norm().item() for key, value in network.named_parameters() if value.grad is not None}
    golden = dict(zip(case["train.grad_names"].tolist(), case["train.grad_norms"].tolist(), strict=True))
    assert norms.keys() == golden.keys()
    relative = max(2e-3, 50 * case.meta["float32_vs_float64_max_action_difference"])
    for key, norm in golden.items():
        if not key.endswith("to_k.bias"):  # analytically zero: only rounding is left
            assert norms[key] == pytest.approx(norm, rel=relative, abs=1e-5), key


def test_two_noise_draws_of_a_sample_give_the_mean_of_their_losses(checkpoint):
    case = load_case("model", "new_embodiment_b2")
    batch, network = golden_batch(checkpoint, case), TrainedNetwork(tiny_network()).eval()
    other = {**batch, "noise": batch["noise"].flip(-1), "time": batch["time"] * 0.5}
    both = {**batch, **{key: torch.cat([batch[key], other[key]], dim=1) for key in ("noise", "time")}}
    mean = (network(**batch)["loss"] + network(**other)["loss"]) / 2
    torch.testing.assert_close(network(**both)["loss"], mean, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", CV2_AUGMENTATIONS)
def test_the_augmented_images_equal_albumentations_to_the_bit(checkpoint, name):
    case = load_case("preprocess", name)
    maker = batch_maker(processor_for(checkpoint, case))
    batch = maker.make(golden_windows(case), [noise_free(recorded_image_draws(case))])
    frames = torch.stack(batch["images"], dim=2)[0].flatten(0, 1)
    assert np.array_equal(frames.numpy(), case["images_train"])
    np.testing.assert_allclose(batch["state"][0].numpy(), case["in.state"], rtol=0, atol=2e-6)
    np.testing.assert_allclose(batch["action"][0].numpy(), case["in.action"], rtol=0, atol=2e-6)
    assert np.array_equal(batch["action_mask"][0].numpy(), case["in.action_mask"])


def test_the_torch_geometry_crops_every_image_for_itself_as_torchvision_does(checkpoint):
    case = load_case("preprocess", "t06_torchvision_train")
    processor = processor_for(checkpoint, case)
    crop_height, crop_width = processor.geometry.crop_height_width
    height, width = processor.geometry.first_size
    generator = torch.Generator().manual_seed(case.meta["seed"])

    def place(free):
        return int(torch.randint(0, free + 1, (1,), generator=generator))

    crops = tuple(
        CropBox(place(height - crop_height), place(width - crop_width), crop_height, crop_width) for _ in range(2)
    )
    batch = batch_maker(processor).make(golden_windows(case), [noise_free(ImageDraws(crops))])
    preparation = DevicePreparation(processor.geometry, processor.patches)
    found = preparation.pixel_values(batch["images"], batch["crop_boxes"])
    wanted = processor.patches.pixel_values([case["images_train"].transpose(0, 2, 3, 1)])
    assert torch.equal(found, wanted)
    np.testing.assert_allclose(batch["action"][0].numpy(), case["in.action"], rtol=0, atol=2e-6)


def test_the_state_is_dropped_where_the_draw_is_below_the_probability(checkpoint):
    case = load_case("preprocess", "t07_state_dropout")
    processor = processor_for(checkpoint, case)
    height = width = 64
    actions = {
        key: np.zeros((processor.embodiment.horizon, width)) for key, width in processor.action_dimensions.items()
    }
    windows = [
        Window(
            0,
            row,
            Observation(
                images={key: np.zeros((1, height, width, 3), np.uint8) for key in processor.cameras.keys},
                state={key: values[row] for key, values in case.raw("state").items()},
                instruction="pick up the cube",
                stamp_ns=0,
            ),
            actions,
        )
        for row in range(len(case["uniform"]))
    ]
    draws = [
        SampleDraws(
            float(u), ImageDraws((CropPlace(0.5, 0.5),)), np.zeros((1, 20, 18), np.float32), np.zeros(1, np.float32)
        )
        for u in case["uniform"]
    ]
    batch = batch_maker(processor, state_dropout=case.meta["processor_kwargs_overrides"]["state_dropout_prob"]).make(
        windows, draws
    )
    np.testing.assert_allclose(batch["state"].numpy(), case["in.state"], rtol=0, atol=2e-6)
    assert np.array_equal((batch["state"] == 0).all(dim=-1)[:, 0].numpy(), case["dropped"])


def test_lerobots_augmentation_is_reproduced_by_its_draws(checkpoint):
    """train_augment__libero_sim: LeRobot drops states first, and rounds its share of the free rows and columns."""
    with np.load(GOLDEN / "lerobot" / "train_augment__libero_sim.npz") as archive:
        case = {key: archive[key] for key in archive.files}
    folder, tag = GOLDEN / "lerobot", str(case["embodiment_tag"])
    statistics = json.loads((folder / "statistics.json").read_text())
    processor = Processor(
        replace(
            checkpoint,
            origin=CheckpointOrigin.LEROBOT,
            config=replace(checkpoint.config, max_state_dim=132, max_action_dim=132, action_horizon=40),
            processor=processor_config(folder, {}, CheckpointOrigin.LEROBOT),
            statistics=parse_statistics(statistics, "statistics.json"),
        ),
        tag,
    )
    python = random.Random(int(case["python_random_seed"]))
    uniforms = [python.random() for _ in range(9)]
    assert uniforms == case["first_draws"][:9].tolist()
    windows, draws = [], []
    for row, instruction in enumerate(case["raw::language"]):
        observation = Observation(
            images={key: case[f"raw::video.{key}"][row] for key in case["raw_video_keys"]},
            state={key: case[f"raw::state.{key}"][row] for key in case["raw_state_keys"]},
            instruction=str(instruction),
            stamp_ns=0,
        )
        actions = {key: np.zeros((16, width)) for key, width in processor.action_dimensions.items()}
        windows.append(Window(0, row, observation, actions))
        height, width = processor.geometry.shrink(observation.images["image"]).shape[1:3]
        rows, columns = processor.geometry.crop_size(height, width)
        down, across = uniforms[3 + 2 * row : 5 + 2 * row]
        box = CropBox(round(down * (height - rows)), round(across * (width - columns)), rows, columns)
        draws.append(replace(noise_free(ImageDraws((box,))), state_uniform=uniforms[row]))
    batch = batch_maker(processor, state_dropout=0.2).make(windows, draws)
    np.testing.assert_allclose(batch["state"].numpy(), case["in::inputs.state"], rtol=0, atol=2e-6)
    pixels = DevicePreparation(processor.geometry, processor.patches).pixel_values(batch["images"], None).numpy()
    assert pixels.shape == tuple(case["pixel_values_shape"])
    assert np.array_equal(pixels.ravel()[:: -(-pixels.size // len(case["pixel_samples"]))], case["pixel_samples"])
    assert hashlib.sha256(pixels.tobytes()).hexdigest() == str(case["pixel_values_sha256"])
