"""The pictures that a person looks at show what the network sees."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
import pytest
from support.training import batch_maker

from groot_ros.checkpoint import open_checkpoint
from groot_ros.dataset.reader import open_dataset
from groot_ros.dataset.windows import TrainingWindows
from groot_ros.errors import TrainingError
from groot_ros.processing.geometry import CropBox
from groot_ros.processing.images_torch import TorchGeometry
from groot_ros.processing.processor import Processor
from groot_ros.training.draws import DrawOptions
from groot_ros.training.embodiment import window_spec
from groot_ros.training.pictures import write_camera_pictures


@pytest.fixture(name="makers")
def torch_geometry_makers(dataset, base_model):
    """Of the training and of the policy, with crops that differ."""
    base = open_checkpoint(base_model)
    config = replace(
        base.processor,
        use_albumentations=False,
        crop_fraction=None,
        shortest_image_edge=None,
        color_jitter_params=None,
        image_target_size=(32, 40),
        image_crop_size=(20, 24),
    )
    checkpoint = replace(base, processor=config)
    processor = Processor(checkpoint, "new_embodiment")
    windows = TrainingWindows(open_dataset(dataset), window_spec(processor.embodiment.modalities, None))
    frames = len(processor.cameras.keys) * processor.cameras.history
    options = DrawOptions.of(config, checkpoint.config, seed=1, frames=frames)
    return [batch_maker(processor, windows, options=options, augment=augment) for augment in (True, False)]


def test_with_the_torch_geometry_the_pictures_show_the_crops_of_training_and_policy(makers, tmp_path):
    maker = makers[0]
    geometry, cameras = maker.processor.geometry, maker.processor.cameras
    assert isinstance(geometry, TorchGeometry)
    middle = len(maker.windows) // 2
    window, draw = maker.windows[middle], maker.options.draw(0, middle)
    height, width = geometry.final_size
    for place, path in enumerate(write_camera_pictures(*makers, tmp_path / "cameras")):
        picture = cv2.imread(str(path))[..., ::-1]
        assert picture.shape == (height, width + 8 + width, 3)
        frame = cameras.ordered(window.observation.images)[place][-1:]
        for each, shown in zip(makers, (picture[:, :width], picture[:, -width:]), strict=True):
            box = each.make([window], [draw])["crop_boxes"][place, 0, -1].tolist()
            np.testing.assert_array_equal(shown, geometry(frame, CropBox(*box, *geometry.crop_height_width))[0])
        assert not np.array_equal(picture[:, :width], picture[:, -width:])


def test_a_picture_that_cannot_be_written_is_said(makers, tmp_path, monkeypatch):
    monkeypatch.setattr(cv2, "imwrite", lambda *_arguments: False)
    with pytest.raises(TrainingError, match=r"\.png: the picture could not be written"):
        write_camera_pictures(*makers, tmp_path / "cameras")
