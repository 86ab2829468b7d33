"""Images made on the device: the inputs of the network are those of the CPU's road, bit by bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from support.golden import TINY_SINGLE, load_case
from support.golden_road import observation
from support.processing import IMAGE_CASES, processor_config

from groot_ros.checkpoint import CheckpointOrigin, open_checkpoint, write_tiny_checkpoint
from groot_ros.errors import ObservationError
from groot_ros.observation import Observation
from groot_ros.processing.device_geometry import DeviceGeometry, DeviceImages, normalized_levels
from groot_ros.processing.device_processor import DeviceProcessor
from groot_ros.processing.geometry import ImageGeometry
from groot_ros.processing.images import image_geometry
from groot_ros.processing.images_cv2 import Cv2Geometry
from groot_ros.processing.images_torch import TorchGeometry
from groot_ros.processing.processor import Processor
from groot_ros.processing.upload import FrameUpload

CPU = torch.device("cpu")
CAMERA_SIZES = [(480, 640), (360, 640), (720, 1280), (600, 800), (256, 256), (101, 173), (224, 224), (64, 48)]
GEOMETRIES = [
    Cv2Geometry(256, 0.95),
    Cv2Geometry(224, 230 / 256, letter_box=True),
    TorchGeometry((256, 256), (230, 230), (256, 256), "bilinear", rounded_offset=True),
    TorchGeometry((256, 256), (243, 243), (224, 224), "bicubic", rounded_offset=False, letter_box=True),
]


def noise(height: int, width: int, count: int = 1, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (count, height, width, 3), dtype=np.uint8)


@pytest.fixture(name="processor", scope="module")
def make_processor(tmp_path_factory) -> Processor:
    directory = tmp_path_factory.mktemp("tiny") / "checkpoint"
    write_tiny_checkpoint(directory, embodiment_tag="new_embodiment")
    return Processor(open_checkpoint(directory), "new_embodiment")


def seen(front: np.ndarray, wrist: np.ndarray, instruction: str = "pick up the cube") -> Observation:
    state = {"single_arm": np.array([[0.1, 0.2]], np.float32), "gripper": np.array([[0.3]], np.float32)}
    return Observation({"front": front, "wrist": wrist}, state, instruction, stamp_ns=0)


def assert_same_inputs(processor: Processor, observations: list[Observation], dtype: torch.dtype = torch.float32):
    wanted = processor.prepare(observations).to("cpu", dtype)
    found = DeviceProcessor(processor, CPU, dtype).prepare(observations).to("cpu", dtype)
    for name, tensor in vars(wanted).items():
        assert torch.equal(getattr(found, name), tensor), name


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=lambda geometry: type(geometry).__name__)
@pytest.mark.parametrize("size", CAMERA_SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_every_geometry_gives_the_same_pixels_on_the_device(geometry: ImageGeometry, size: tuple[int, int]):
    frames = noise(*size, count=2)
    found = DeviceGeometry(geometry)(torch.from_numpy(frames)).numpy()
    assert np.array_equal(found, geometry(frames))
    assert geometry.size(*size) == found.shape[1:3]


@pytest.mark.parametrize(("folder", "name"), IMAGE_CASES)
def test_the_original_gives_the_same_pixels_as_the_device(folder: str, name: str):
    case = load_case(folder, name)
    geometry = image_geometry(
        processor_config(TINY_SINGLE, case.meta["processor_kwargs_overrides"]), CheckpointOrigin.NVIDIA
    )
    for frames in case.raw("video").values():
        for sample in frames:
            assert np.array_equal(DeviceGeometry(geometry)(torch.from_numpy(sample)).numpy(), geometry(sample))


def test_another_geometry_is_refused_when_it_is_made():
    class Mirror(Cv2Geometry.__mro__[1]):
        shrink = enlarge = center_box = size = None

    with pytest.raises(TypeError, match="Mirror has no form for a device"):
        DeviceGeometry(Mirror())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_an_observation_becomes_the_same_inputs(processor: Processor, dtype: torch.dtype):
    assert_same_inputs(processor, [seen(noise(480, 640), noise(480, 640, seed=1))], dtype)


def test_cameras_of_other_sizes_and_a_batch_of_robots_become_the_same_inputs(processor: Processor):
    square = [seen(noise(96, 96, seed=row), noise(64, 64, seed=9 + row), "go " * (row + 1)) for row in range(3)]
    assert_same_inputs(processor, square)
    wide = seen(noise(96, 128), noise(96, 128, seed=4))
    assert_same_inputs(processor, [square[0], wide])


def test_a_history_of_frames_keeps_the_network_s_order():
    case = load_case("model", "oxe_droid_b1")
    checkpoint = open_checkpoint(TINY_SINGLE)
    processor = Processor(checkpoint, case.meta["tag"])
    assert len(processor.embodiment.modalities.video.delta_indices) == 2
    assert_same_inputs(processor, [observation(case)])


def test_read_only_and_mirrored_frames_are_taken_as_they_are(processor: Processor):
    front = noise(96, 128)
    front.flags.writeable = False
    assert_same_inputs(processor, [seen(front, noise(96, 128)[:, :, ::-1])])


def test_cameras_that_end_at_different_sizes_are_refused_with_the_same_sentence(processor: Processor):
    odd = seen(noise(96, 128), noise(96, 96))
    sentences = []
    for prepare in (processor.prepare, DeviceProcessor(processor, CPU, torch.float32).prepare):
        with pytest.raises(ObservationError) as refusal:
            prepare([odd])
        sentences.append(str(refusal.value))
    assert sentences[0] == sentences[1]
    assert "front 96x128 becomes 64x85, wrist 96x96 becomes 64x64" in sentences[0]


def test_control_tokens_and_wrong_frames_are_refused_as_ever(processor: Processor):
    device = DeviceProcessor(processor, CPU, torch.float32)
    with pytest.raises(ObservationError, match="must be uint8"):
        device.prepare([seen(noise(64, 64).astype(np.float32), noise(64, 64))])
    with pytest.raises(ObservationError, match="a batch needs at least one"):
        device.prepare([])


def test_every_level_is_normalised_as_on_the_cpu():
    levels = np.arange(256, dtype=np.float32)
    wanted = (levels - np.float32(127.5)) / np.float32(127.5)
    assert np.array_equal(normalized_levels(torch.float32, CPU).numpy(), wanted)
    assert torch.equal(normalized_levels(torch.bfloat16, CPU), torch.from_numpy(wanted).bfloat16())


def test_frames_of_one_size_go_through_the_geometry_together(processor: Processor, monkeypatch: pytest.MonkeyPatch):
    images = DeviceImages(processor.geometry, processor.patches, torch.float32)
    batches = []
    shape = images._geometry
    monkeypatch.setattr(images, "_geometry", lambda frames: batches.append(len(frames)) or shape(frames))
    images.shaped([torch.from_numpy(noise(*size, count=2)) for size in ((96, 96), (64, 64), (96, 96))])
    assert batches == [4, 2]


def test_uploads_to_one_place_use_the_same_memory_again():
    upload = FrameUpload(CPU)
    first = upload("front", noise(8, 6))
    address = first.data_ptr()
    other = upload("wrist", noise(8, 6, seed=1))
    second = upload("front", noise(8, 6, seed=2))
    assert second.data_ptr() == address != other.data_ptr()
    assert np.array_equal(second.numpy(), noise(8, 6, seed=2))
    assert np.array_equal(other.numpy(), noise(8, 6, seed=1))


def test_a_changed_frame_changes_the_pixels(processor: Processor):
    device = DeviceProcessor(processor, CPU, torch.float32)
    before = device.prepare([seen(noise(96, 96), noise(96, 96))]).pixel_values.clone()
    after = device.prepare([seen(noise(96, 96, seed=5), noise(96, 96))]).pixel_values
    assert not torch.equal(before, after)


def test_a_geometry_differs_from_another(processor: Processor):
    frames = torch.from_numpy(noise(96, 96))
    other = replace(processor.geometry, crop_fraction=0.5)
    assert not torch.equal(DeviceGeometry(processor.geometry)(frames), DeviceGeometry(other)(frames))
