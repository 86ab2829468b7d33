"""Which image geometry a checkpoint was trained with: it follows its processor file and who wrote it."""

from __future__ import annotations

from groot_ros.checkpoint import CheckpointOrigin, ProcessorConfig
from groot_ros.errors import CheckpointError
from groot_ros.processing.geometry import ImageGeometry
from groot_ros.processing.images_cv2 import Cv2Geometry
from groot_ros.processing.images_torch import TorchGeometry


def image_geometry(config: ProcessorConfig, origin: CheckpointOrigin) -> ImageGeometry:
    """The geometry of a checkpoint.

    The cv2 path is the same for both authors: the edge, or else the target's height; the crop fraction, or else crop
    over target height. On the torch path NVIDIA squashes to the target and crops it, bilinearly; LeRobot squashes to
    a square of the edge, crops a fraction of it and enlarges to the target, bicubically.

    Raises:
        CheckpointError: The file does not say which size the frames shall have.

    """
    if config.use_albumentations:
        return Cv2Geometry(_edge(config), _crop_fraction(config, origin), config.letter_box_transform)
    if origin is CheckpointOrigin.LEROBOT:
        return _lerobot_torch_geometry(config, origin)
    return _nvidia_torch_geometry(config)


def _nvidia_torch_geometry(config: ProcessorConfig) -> TorchGeometry:
    target = _size(config.image_target_size, "image_target_size")
    crop = _size(config.image_crop_size, "image_crop_size")
    if crop[0] > target[0] or crop[1] > target[1]:
        msg = f"processor_config.json: image_crop_size {crop} does not fit into image_target_size {target}"
        raise CheckpointError(msg)
    return TorchGeometry(
        first_size=target,
        crop_height_width=crop,
        final_size=target,
        interpolation="bilinear",
        rounded_offset=True,
        letter_box=config.letter_box_transform,
    )


def _lerobot_torch_geometry(config: ProcessorConfig, origin: CheckpointOrigin) -> TorchGeometry:
    edge = _edge(config)
    crop = max(1, round(edge * _crop_fraction(config, origin)))
    return TorchGeometry(
        first_size=(edge, edge),
        crop_height_width=(crop, crop),
        final_size=_size(config.image_target_size, "image_target_size"),
        interpolation="bicubic",
        rounded_offset=False,
        letter_box=config.letter_box_transform,
    )


def _edge(config: ProcessorConfig) -> int:
    if config.shortest_image_edge is not None:
        return config.shortest_image_edge
    return _size(config.image_target_size, "shortest_image_edge and image_target_size")[0]


def _crop_fraction(config: ProcessorConfig, origin: CheckpointOrigin) -> float:
    fraction = config.crop_fraction
    if fraction is None:
        if origin is CheckpointOrigin.LEROBOT and config.image_crop_size is None:
            return 1.0  # LeRobot does not crop then; NVIDIA's code cannot run
        crop = _size(config.image_crop_size, "crop_fraction and image_crop_size")
        fraction = crop[0] / _size(config.image_target_size, "crop_fraction and image_target_size")[0]
    if not 0.0 < fraction <= 1.0:
        msg = (
            f"processor_config.json: the crop keeps {fraction:g} of each side (crop_fraction, or image_crop_size over "
            "image_target_size); above 0 to 1 is allowed"
        )
        raise CheckpointError(msg)
    return fraction


def _size(size: tuple[int, int] | None, what: str) -> tuple[int, int]:
    if size is None:
        msg = (
            f"processor_config.json: null for {what}, so the size of the frames cannot be known; take it from the "
            "configuration of the training"
        )
        raise CheckpointError(msg)
    return size
