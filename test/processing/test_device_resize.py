"""The resizes made of tensor operations: the same bits as the libraries that checkpoints were trained with."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from groot_ros.processing.device_resize import resize_antialias, resize_area
from groot_ros.processing.images_torch import resize_uint8
from groot_ros.processing.resize_tables import OpenCVMode, antialias_taps, area_taps, linear_taps, opencv_mode

CONTENTS = ("noise", "extremes", "near_white", "smooth")
MOST_PIXELS_FAST = 400_000


def frames(content: str, height: int, width: int, seed: int = 0, count: int = 1) -> np.ndarray:
    random = np.random.default_rng(seed)
    shape = (count, height, width, 3)
    if content == "noise":
        return random.integers(0, 256, shape, dtype=np.uint8)
    if content == "smooth":
        rows, columns = np.mgrid[0:height, 0:width]
        waves = np.stack([np.sin(rows / 31 + c) + np.cos(columns / 17 - c) for c in range(3)], axis=-1)
        return np.repeat(np.clip(127.5 + 60 * waves, 0, 255).astype(np.uint8)[None], count, axis=0)
    return random.choice(np.array([0, 255] if content == "extremes" else [254, 255], dtype=np.uint8), shape)


def assert_as_opencv(content: str, source: tuple[int, int], target: tuple[int, int], seed: int = 0) -> None:
    images = frames(content, *source, seed)
    wanted = cv2.resize(images[0], target[::-1], interpolation=cv2.INTER_AREA).reshape(*target, 3)
    found = resize_area(torch.from_numpy(images), *target)[0].numpy()
    assert np.array_equal(found, wanted), (
        f"OpenCV {cv2.__version__} gives other pixels for {content} {source} -> {target}: "
        f"{np.count_nonzero(found != wanted)} of {found.size} values. Either its arithmetic has changed in this "
        "release, or this build was made for processors with fused multiply-add"
    )


def assert_as_torch(content: str, source: tuple[int, int], target: tuple[int, int], interpolation: str) -> None:
    images = frames(content, *source)
    wanted = resize_uint8(images, *target, interpolation)
    found = resize_antialias(torch.from_numpy(images), *target, interpolation).numpy()
    assert np.array_equal(found, wanted)


def sizes(largest: int) -> st.SearchStrategy[tuple[int, int]]:
    side = st.one_of(st.integers(1, 16), st.integers(16, largest))
    return st.tuples(side, side).filter(lambda size: size[0] * size[1] <= MOST_PIXELS_FAST)


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(CONTENTS), sizes(2160), sizes(600), st.integers(0, 1000))
@example("noise", (480, 640), (256, 341), 0)
@example("smooth", (243, 323), (256, 340), 0)
@example("noise", (16, 16), (16, 394), 0)  # a pixel whose place falls below a whole number in doubles
@example("noise", (98, 98 * 3), (1, 3), 0)  # 1 / (1 / 98) is not 98: an area average, not a sum of whole cells
def test_any_resize_gives_the_pixels_of_opencv(content, source, target, seed):
    assert_as_opencv(content, source, target, seed)


@settings(deadline=None, max_examples=30)
@given(st.sampled_from(CONTENTS), sizes(60), st.tuples(st.integers(1, 20), st.integers(1, 20)))
@example("extremes", (40, 50), (2, 2))  # half goes up where 2x2 pixels become one
@example("noise", (3, 3), (1, 49))
def test_whole_factors_give_the_pixels_of_opencv(content, target, factors):
    source = (target[0] * factors[0], target[1] * factors[1])
    assert_as_opencv(content, source, target)


@settings(deadline=None, max_examples=30)
@given(st.sampled_from(CONTENTS), sizes(900), sizes(600), st.sampled_from(["bilinear", "bicubic"]))
@example("noise", (256, 340), (256, 352), "bicubic")
@example("extremes", (224, 224), (256, 256), "bicubic")  # both axes: clamped to 8 bits between the passes
def test_any_antialiased_resize_gives_the_pixels_of_torch_on_the_cpu(content, source, target, interpolation):
    assert_as_torch(content, source, target, interpolation)


@pytest.mark.parametrize(
    ("source", "target", "mode"),
    [
        ((480, 640), (480, 640), OpenCVMode.COPY),
        ((480, 640), (240, 160), OpenCVMode.WHOLE),
        ((480, 640), (480, 320), OpenCVMode.WHOLE),
        ((480, 640), (256, 341), OpenCVMode.AREA),
        ((49, 98), (1, 2), OpenCVMode.AREA),
        ((480, 640), (481, 320), OpenCVMode.LINEAR),
    ],
)
def test_which_arithmetic_opencv_takes(source, target, mode):
    assert opencv_mode(source, target) is mode


@settings(deadline=None)
@given(st.integers(1, 400), st.integers(1, 400))
def test_the_weights_of_a_pixel_are_all_there(source, target):
    assert np.all(linear_taps(source, target, is_row_axis=True).weights.sum(axis=0) == 2048)
    if target <= source:
        assert np.allclose(area_taps(source, target).weights.sum(axis=0), 1.0, atol=3e-3)
    for interpolation in ("bilinear", "bicubic"):
        taps = antialias_taps(source, target, interpolation)
        assert np.all(np.abs(taps.weights.sum(axis=0) - (1 << taps.precision)) <= len(taps.weights))
        assert taps.sources.min() >= 0
        assert taps.sources.max() < source


def test_a_batch_gives_what_each_frame_gives_alone_and_views_need_no_copy():
    batch = frames("noise", 100, 130, count=3)
    wide = torch.from_numpy(batch)[:, 3:90, 5:120]
    for resize in (resize_area, lambda x, h, w: resize_antialias(x, h, w, "bicubic")):
        for height, width in ((40, 60), (29, 23), (200, 220), (87, 90)):
            together = resize(wide, height, width)
            for row in range(3):
                assert torch.equal(together[row], resize(wide[row : row + 1].contiguous(), height, width)[0])


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", range(8))
def test_a_thousand_resizes_give_the_pixels_of_the_libraries(seed):
    random = np.random.default_rng(seed)
    for _ in range(125):
        largest = int(random.choice([24, 200, 800, 2160]))
        source = tuple(int(n) for n in random.integers(1, largest + 1, 2))
        kind = random.integers(4)
        if kind == 0:  # shrink
            target = tuple(int(random.integers(1, side + 1)) for side in source)
        elif kind == 1:  # enlarge up to fourfold
            target = tuple(int(random.integers(side, min(4 * side, side + 800) + 1)) for side in source)
        elif kind == 2:  # whole factors
            target = tuple(max(1, side // int(random.integers(1, 120))) for side in source)
            factors = [side // new for side, new in zip(source, target, strict=True)]
            source = tuple(new * factor for new, factor in zip(target, factors, strict=True))
        else:  # one axis up, the other down
            target = tuple(int(n) for n in random.integers(1, 600, 2))
        content = CONTENTS[random.integers(len(CONTENTS))]
        assert_as_opencv(content, source, target, seed)
        assert_as_torch(content, source, target, ("bilinear", "bicubic")[random.integers(2)])
