"""Frames on their way to the device: the same bytes, in the policy's order, whoever prepares them and when."""

from __future__ import annotations

import itertools
import threading
from dataclasses import replace

import numpy as np
import pytest
import torch
from support.golden import TINY_SINGLE, load_case
from support.networks import tiny_network
from support.training import batch_maker, given_draws, golden_windows
from torch.nn import functional

from groot_ros.checkpoint import open_checkpoint
from groot_ros.checkpoint.writing import processor_config_json
from groot_ros.dataset.reader import open_dataset
from groot_ros.dataset.windows import TrainingWindows
from groot_ros.errors import TrainingError
from groot_ros.observation import ImageInputFormat
from groot_ros.policy import GrootPolicy
from groot_ros.processing.processor import Processor
from groot_ros.training.device import DevicePreparation
from groot_ros.training.device_resize import resize_by_products
from groot_ros.training.draws import DrawOptions
from groot_ros.training.embodiment import window_spec
from groot_ros.training.loader import BatchLoader
from groot_ros.training.network import TrainedNetwork
from groot_ros.training.order import SampleOrder
from groot_ros.training.packing import as_levels, image_input_format, pack_cameras


class FloatPolicy:
    """A policy as they were written before the format was declared."""


class DeclaredFloatPolicy:
    image_input_format = ImageInputFormat.FLOAT32_0_1


def frames(cameras, steps, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [
        torch.randint(0, 256, (2, steps, 12, 16, 3), dtype=torch.uint8, generator=generator) for _ in range(cameras)
    ]


@pytest.mark.parametrize(("cameras", "steps"), list(itertools.product((1, 2, 3), (1, 2))))
def test_packing_hands_over_the_very_bytes_of_every_camera_in_order(cameras, steps):
    blocks = frames(cameras, steps)
    packed = pack_cameras(blocks, ImageInputFormat.UINT8_0_255)
    assert [camera.data_ptr() for camera in packed] == [block.data_ptr() for block in blocks]
    assert all(camera.untyped_storage().nbytes() == camera.numel() for camera in packed)
    assert all(camera.shape == (2, steps, 3, 12, 16) and camera.dtype == torch.uint8 for camera in packed)
    assert as_levels(packed[0]) is packed[0]


def test_a_float_policy_still_gets_floats_and_loses_nothing():
    assert image_input_format(FloatPolicy) is ImageInputFormat.FLOAT32_0_1
    assert image_input_format(DeclaredFloatPolicy) is ImageInputFormat.FLOAT32_0_1
    blocks = frames(2, 1)
    floats = pack_cameras(blocks, image_input_format(FloatPolicy))
    assert all(camera.dtype == torch.float32 and camera.min() >= 0 and camera.max() <= 1 for camera in floats)
    for camera, bytes_ in zip(floats, pack_cameras(blocks, ImageInputFormat.UINT8_0_255), strict=True):
        assert torch.equal(as_levels(camera), bytes_)


def test_groot_asks_for_bytes_and_writes_that_into_no_file(base_model):
    assert image_input_format(GrootPolicy) is image_input_format(TrainedNetwork) is ImageInputFormat.UINT8_0_255
    content = str(processor_config_json(open_checkpoint(base_model).processor))
    assert "uint8" not in content
    assert "image_input" not in content


def test_pixels_of_bytes_equal_those_of_the_float_round_trip_and_of_the_policy():
    case = load_case("model", "oxe_droid_b1")  # two cameras, two frames
    processor = Processor(open_checkpoint(TINY_SINGLE), case.meta["tag"])
    preparation = DevicePreparation(processor.geometry, processor.patches)
    windows, draws = golden_windows(case), given_draws(case)
    found = [
        preparation.pixel_values(
            batch_maker(processor, augment=False, input_format=form).make(windows, draws)["images"], None
        )
        for form in ImageInputFormat
    ]
    wanted = processor.prepare([window.observation for window in windows])
    assert torch.equal(found[0], wanted.pixel_values)
    assert torch.equal(found[1], wanted.pixel_values)


def test_the_whole_batch_equals_what_the_policy_prepares():
    case = load_case("model", "new_embodiment_b2")
    processor = Processor(open_checkpoint(TINY_SINGLE), case.meta["tag"])
    windows = golden_windows(case)
    batch = batch_maker(processor, augment=False).make(windows, given_draws(case))
    wanted = processor.prepare([window.observation for window in windows])
    for name in ("input_ids", "attention_mask", "image_grid_thw", "state", "embodiment_id"):
        assert torch.equal(batch[name], getattr(wanted, name)), name


@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic"])
@pytest.mark.parametrize(
    ("before", "after"),
    [((48, 64), (64, 80)), ((64, 96), (64, 64)), ((61, 37), (32, 32)), ((90, 120), (33, 47)), ((32, 32), (32, 64))],
)
def test_the_resize_for_other_devices_equals_the_cpus_to_the_bit(interpolation, before, after):
    generator = torch.Generator().manual_seed(1)
    images = torch.randint(0, 256, (2, 3, *before), dtype=torch.uint8, generator=generator)
    images[0, :, ::2] = 255
    wanted = functional.interpolate(images, size=after, mode=interpolation, antialias=True)
    assert torch.equal(resize_by_products(images, *after, interpolation), wanted)


def test_draws_depend_on_seed_epoch_and_sample_alone():
    options = DrawOptions(seed=3, crops=2, action_shape=(4, 3), rotation_deg=5.0, color_jitter={"hue": 0.1})
    first, again = options.draw(1, 17), options.draw(1, 17)
    assert first.images == again.images
    assert np.array_equal(first.noise, again.noise)
    others = [options.draw(2, 17), options.draw(1, 18), replace(options, seed=4).draw(1, 17)]
    assert all(other.images != first.images and other.state_uniform != first.state_uniform for other in others)


def test_every_pass_shows_every_sample_once_whatever_the_number_of_ranks():
    one = SampleOrder(samples=10, seed=5, batch_size=6)
    two = [SampleOrder(samples=10, seed=5, batch_size=3, rank=rank, ranks=2) for rank in (0, 1)]
    for number in range(7):
        assert one.batch(number) == two[0].batch(number) + two[1].batch(number)
    seen = [one.sample(place) for place in range(30)]
    for epoch in range(3):
        assert sorted(key.number for key in seen[epoch * 10 : epoch * 10 + 10]) == list(range(10))
    assert [key.number for key in seen[:10]] != [key.number for key in seen[10:20]]


@pytest.fixture(name="maker")
def tiny_maker(dataset, base_model):
    checkpoint = open_checkpoint(base_model)
    processor = Processor(checkpoint, "new_embodiment")
    windows = TrainingWindows(open_dataset(dataset), window_spec(processor.embodiment.modalities, None))
    options = DrawOptions.of(checkpoint.processor, checkpoint.config, seed=1, frames=2)
    return batch_maker(processor, windows, options=options)


def loader(maker, **changes):
    values = {"end": 5, "device": torch.device("cpu"), "workers": 0}
    return BatchLoader(maker, SampleOrder(len(maker), 1, 2), **(values | changes))


def test_workers_make_the_same_batches_and_a_later_start_gives_the_rest(maker):
    alone = list(loader(maker))
    for batches in (list(loader(maker, workers=2)), [*alone[:3], *loader(maker, first=lambda: 3)]):
        assert len(batches) == len(alone) == 5
        for one, other in zip(alone, batches, strict=True):
            assert one.keys() == other.keys()
            assert all(torch.equal(value, other[key]) for key, value in one.items())


def test_what_is_wrong_with_a_sample_arrives_as_its_own_sentence(maker):
    original = maker.windows._dataset.tasks.copy()
    maker.windows._dataset.tasks.update(dict.fromkeys(original, "say <|im_end|> now"))
    maker.processor.prompts.formalize_language = False
    try:
        with pytest.raises(TrainingError, match=r"<\|im_end\|> would be read as a control token"):
            list(loader(maker, workers=1))
    finally:
        maker.windows._dataset.tasks.update(original)


def test_leaving_the_loop_early_ends_the_thread(maker):
    for _ in loader(maker):
        break
    assert not [thread for thread in threading.enumerate() if thread.name == "next-batch"]


def test_frozen_parts_keep_their_dropout_off_and_learning_parts_have_it_on():
    network = TrainedNetwork(tiny_network().requires_grad_())
    network.network.action_head.model.requires_grad_(requires_grad=False)
    network.train()
    assert not any(module.training for module in network.network.action_head.model.modules())
    assert network.network.action_head.vl_self_attention.transformer_blocks[0].final_dropout.training
