"""Qwen's resize and patches: what the network is handed for an image."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.golden import BACKBONE, GOLDEN

from groot_ros.errors import CheckpointError, ProcessingError
from groot_ros.processing.patches import PatchEncoder

PREPROCESSOR = json.loads((BACKBONE / "preprocessor_config.json").read_text())
PROMPTS = json.loads((GOLDEN / "tokenizer" / "prompts.json").read_text())


@pytest.fixture(name="encoder")
def make_encoder():
    return PatchEncoder.from_preprocessor(PREPROCESSOR)


def test_grids_of_the_original_for_many_image_sizes(encoder):
    compared = 0
    for case in PROMPTS["cases"]:
        if "error" in case:
            continue
        for (height, width), grid in zip(case["image_sizes_hw"], case["image_grid_thw"], strict=True):
            assert list(encoder.grid(height, width)) == grid
            compared += 1
    assert compared > 100


@pytest.mark.parametrize(("size", "tokens"), [((256, 256), 64), ((256, 340), 88), ((256, 455), 112)])
def test_tokens_of_the_released_sizes(encoder, size, tokens):
    assert encoder.tokens(*size) == tokens


def test_every_one_of_the_256_levels_is_normalised_exactly_in_float32(encoder):
    frames = np.zeros((1, 256, 256, 3), dtype=np.uint8)
    frames[..., 0] = np.arange(256, dtype=np.uint8)
    found = encoder.pixel_values([frames]).numpy()
    levels = np.arange(256, dtype=np.uint8)
    wanted = (levels.astype(np.float32) - np.float32(127.5)) / np.float32(127.5)
    red = found.reshape(-1, 3, 2, 16, 16)[:, 0]
    assert np.array_equal(np.unique(red), wanted)


def test_patches_that_share_a_token_lie_side_by_side_and_a_still_image_is_repeated_in_time(encoder):
    rows, columns = np.mgrid[0:256, 0:256] // 16
    frames = np.repeat((rows * 16 + columns).astype(np.uint8)[None, :, :, None], 3, axis=3)
    found = encoder.pixel_values([frames]).numpy().reshape(-1, 3, 2, 16, 16)
    patch_of_row = np.rint(found[:, 0, 0, 0, 0] * 127.5 + 127.5).astype(int)
    assert patch_of_row[:8].tolist() == [0, 1, 16, 17, 2, 3, 18, 19]
    assert np.array_equal(found[:, :, 0], found[:, :, 1])


@settings(deadline=None, max_examples=200)
@given(st.integers(1, 4000), st.integers(1, 4000))
def test_a_resized_image_is_whole_tokens_within_the_pixel_limits(height, width):
    encoder = PatchEncoder.from_preprocessor(PREPROCESSOR)
    if max(height, width) > 200 * min(height, width):
        with pytest.raises(ProcessingError, match="at most 200 times"):
            encoder.resized_size(height, width)
        return
    new_height, new_width = encoder.resized_size(height, width)
    assert new_height % 32 == 0
    assert new_width % 32 == 0
    assert 65536 <= new_height * new_width <= 16777216


def test_an_image_beyond_the_largest_area_is_shrunk():
    encoder = PatchEncoder.from_preprocessor({**PREPROCESSOR, "max_pixels": 128 * 128, "min_pixels": 32 * 32})
    assert encoder.resized_size(480, 640) == (96, 128)


def test_pixel_limits_beside_size_win_over_it():
    encoder = PatchEncoder.from_preprocessor({**PREPROCESSOR, "min_pixels": 1024, "max_pixels": 4096})
    assert (encoder.min_pixels, encoder.max_pixels) == (1024, 4096)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"image_mean": [0.48, 0.45, 0.4]}, r"image_mean is \[0.48, 0.45, 0.4\]; .* need \[0.5, 0.5, 0.5\]"),
        ({"image_std": None}, "image_std is None"),
        ({"resample": 2}, "resample is 2; .* need 3"),
        ({"patch_size": None}, "patch_size is None; a whole number of at least 1 is needed"),
        ({"size": None}, "min_pixels is None"),
    ],
)
def test_a_preprocessor_that_would_compute_something_else_is_refused(change, sentence):
    with pytest.raises(CheckpointError, match=sentence):
        PatchEncoder.from_preprocessor({**PREPROCESSOR, **change})


def test_samples_of_different_sizes_follow_each_other(encoder):
    small = np.random.default_rng(0).integers(0, 256, (2, 256, 256, 3), dtype=np.uint8)
    wide = np.random.default_rng(1).integers(0, 256, (1, 256, 340, 3), dtype=np.uint8)
    together = encoder.pixel_values([small, wide]).numpy()
    assert together.shape == (2 * 256 + 352, 1536)
    assert np.array_equal(together[:512], encoder.pixel_values([small]).numpy())
    assert np.array_equal(together[512:], encoder.pixel_values([wide]).numpy())
