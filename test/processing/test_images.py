"""The shape of frames: the same pixels as the original for both paths, both authors and every odd size."""

from __future__ import annotations

import hashlib
import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.golden import TINY_SINGLE, load_case
from support.processing import IMAGE_CASES, processor_config

from groot_ros.checkpoint import CheckpointOrigin, ProcessorConfig
from groot_ros.errors import CheckpointError
from groot_ros.processing.geometry import CropBox
from groot_ros.processing.images import image_geometry
from groot_ros.processing.images_cv2 import Cv2Geometry
from groot_ros.processing.images_torch import TorchGeometry
from groot_ros.processing.letterbox import letterbox
from groot_ros.processing.storage import channels_first

NVIDIA, LEROBOT = CheckpointOrigin.NVIDIA, CheckpointOrigin.LEROBOT
CV2 = Cv2Geometry(shortest_edge=64, crop_fraction=0.95)
TORCH = TorchGeometry((64, 80), (58, 50), (64, 80), "bilinear", rounded_offset=True)
GEOMETRIES = pytest.mark.parametrize(
    "geometry", [CV2, TORCH, replace(CV2, letter_box=True)], ids=["cv2", "torch", "letterbox"]
)


def noise(height, width, count=1, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (count, height, width, 3), dtype=np.uint8)


@pytest.mark.parametrize(("folder", "name"), IMAGE_CASES)
def test_the_original_gives_the_same_pixels(folder, name):
    case = load_case(folder, name)
    config = processor_config(TINY_SINGLE, case.meta["processor_kwargs_overrides"])
    geometry = image_geometry(config, NVIDIA)
    views = config.modality_configs[case.meta["tag"]].video.modality_keys
    batch = []
    for sample in range(case.meta["batch"]):
        cameras = [geometry(case[f"raw.video.{view}"][sample]) for view in views]
        batch.append([camera[step] for step in range(len(cameras[0])) for camera in cameras])
    found = np.stack([np.stack(images) for images in batch]).transpose(0, 1, 4, 2, 3)
    if "images_eval" in case:
        assert np.array_equal(found, case["images_eval"])
    else:
        digest = hashlib.sha256(np.ascontiguousarray(found).tobytes()).hexdigest()
        assert digest == str(case["images_eval.sha256"])


def test_released_geometry_of_a_640x480_camera():
    geometry = image_geometry(ProcessorConfig(use_albumentations=True), NVIDIA)
    assert geometry.shrink(noise(480, 640)).shape == (1, 256, 341, 3)
    assert geometry.center_box(256, 341) == CropBox(top=6, left=9, height=243, width=323)
    assert geometry(noise(480, 640)).shape == (1, 256, 340, 3)


@GEOMETRIES
def test_a_given_crop_box_is_used_and_the_centre_is_the_default(geometry):
    frames = noise(90, 120)
    shrunk = geometry.shrink(frames)
    center = geometry.center_box(*shrunk.shape[1:3])
    assert geometry.crop_size(*shrunk.shape[1:3]) == (center.height, center.width)
    corner = replace(center, top=0, left=0)
    assert np.array_equal(geometry(frames), geometry(frames, center))
    assert np.array_equal(geometry(frames, corner), geometry.enlarge(shrunk[:, : center.height, : center.width]))
    assert not np.array_equal(geometry(frames), geometry(frames, corner))


@GEOMETRIES
def test_frames_of_a_message_are_read_where_they_lie(geometry):
    """Read-only bytes, rows longer than the image, mirrored or BGR views: all give what a plain copy gives."""
    padded = noise(90, 133, count=2)
    padded.flags.writeable = False
    inside = padded[:, :, :120]
    views = [inside, inside[:, ::-1], inside[:, :, ::-1], inside[..., ::-1]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for view in views:
            assert np.array_equal(geometry(view), geometry(view.copy()))


def test_a_tensor_of_frames_shares_their_storage():
    for frames in (noise(8, 6), noise(8, 6)[:, :, 2:]):
        frames.flags.writeable = False
        assert channels_first(frames).data_ptr() == frames.ctypes.data


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 40), st.integers(1, 40))
def test_letterbox_keeps_the_frame_and_adds_only_black(height, width):
    frames = np.maximum(noise(height, width), 1)
    square = letterbox(frames)
    edge = max(height, width)
    top, left = (edge - height) // 2, (edge - width) // 2
    assert square.shape == (1, edge, edge, 3)
    assert np.array_equal(square[:, top : top + height, left : left + width], frames)
    assert np.count_nonzero(square) == frames.size


@settings(deadline=None, max_examples=60)
@given(st.integers(2, 300), st.integers(2, 300), st.integers(2, 80), st.floats(0.05, 1.0))
def test_the_cv2_geometry_gives_any_camera_the_wanted_shortest_edge(height, width, edge, fraction):
    if max(height, width) > 20 * min(height, width):
        return
    found = Cv2Geometry(edge, fraction)(noise(height, width))
    assert min(found.shape[1:3]) == edge


class TestWhoWroteTheCheckpoint:
    def test_absent_keys_of_nvidia_mean_edge_256_and_crop_095(self):
        assert image_geometry(ProcessorConfig(use_albumentations=True), NVIDIA) == Cv2Geometry(256, 0.95)

    def test_lerobot_without_target_size_means_256_and_230_whatever_else_is_written(self):
        changes = {"image_target_size": None, "shortest_image_edge": 128, "crop_fraction": 0.5}
        assert image_geometry(processor_config(TINY_SINGLE, changes, LEROBOT), LEROBOT) == Cv2Geometry(256, 230 / 256)

    def test_lerobot_with_target_size_keeps_edge_and_fraction(self):
        config = ProcessorConfig(use_albumentations=True, image_target_size=(224, 224), image_crop_size=(200, 200))
        assert image_geometry(config, LEROBOT) == Cv2Geometry(256, 0.95)
        bare = replace(config, shortest_image_edge=None, crop_fraction=None)
        assert image_geometry(bare, LEROBOT) == Cv2Geometry(224, 200 / 224)
        assert image_geometry(replace(bare, image_crop_size=None), LEROBOT) == Cv2Geometry(224, 1.0)

    def test_the_torch_path_is_bilinear_for_nvidia_and_bicubic_for_lerobot(self):
        config = ProcessorConfig(
            use_albumentations=False,
            image_target_size=(64, 80),
            image_crop_size=(57, 50),
            shortest_image_edge=None,
            crop_fraction=None,
        )
        assert image_geometry(config, NVIDIA) == TorchGeometry((64, 80), (57, 50), (64, 80), "bilinear", True)
        assert image_geometry(config, LEROBOT) == TorchGeometry((64, 64), (57, 57), (64, 80), "bicubic", False)

    @pytest.mark.parametrize("name", ["a19_torchvision_no_target_error", "a20_albumentations_no_size_error"])
    def test_sizes_that_the_original_misses_are_named(self, name):
        changes = load_case("preprocess", name).meta["processor_kwargs_overrides"]
        with pytest.raises(CheckpointError, match=r"processor_config.json: .*image_target_size"):
            image_geometry(processor_config(TINY_SINGLE, changes), NVIDIA)

    @pytest.mark.parametrize(
        ("changes", "sentence"),
        [
            ({"shortest_image_edge": None}, "null for shortest_image_edge and image_target_size, so the size"),
            ({"crop_fraction": None}, "null for crop_fraction and image_crop_size"),
            ({"crop_fraction": 1.5}, "the crop keeps 1.5 of each side"),
            ({"crop_fraction": 0.0}, "the crop keeps 0 of each side"),
            (
                {"use_albumentations": False, "image_target_size": (64, 64)},
                "processor_config.json: null for image_crop_size",
            ),
            (
                {"use_albumentations": False, "image_target_size": (64, 64), "image_crop_size": (32, 65)},
                r"image_crop_size \(32, 65\) does not fit into image_target_size \(64, 64\)",
            ),
        ],
    )
    def test_sizes_that_fit_nothing_are_refused(self, changes, sentence):
        config = replace(ProcessorConfig(use_albumentations=True), **changes)
        with pytest.raises(CheckpointError, match=sentence):
            image_geometry(config, NVIDIA)
