"""Which image geometry a checkpoint was trained with: it follows its processor file and who wrote it."""

from __future__ import annotations

from dataclasses import replace

from groot_ros.checkpoint import CheckpointOrigin, ProcessorConfig
from groot_ros.errors import CheckpointError
from groot_ros.processing.geometry import ImageGeometry
from groot_ros.processing.images_cv2 import Cv2Geometry
from groot_ros.processing.images_torch import TorchGeometry

LEROBOT_TARGET_SIZE = (256, 256)
LEROBOT_CROP_SIZE = (230, 230)


def image_geometry(config: ProcessorConfig, origin: CheckpointOrigin) -> ImageGeometry:
    """The geometry of a checkpoint.

    NVIDIA's files: the cv2 path takes edge and fraction, else derives them from target and crop size; the torch path
    takes target and crop size and resizes bilinearly. LeRobot's files: a missing target size means 256 and 230
    whatever else is written, and the torch path is bicubic.

    Raises:
        CheckpointError: The file does not say which size the frames shall have.

    """
    if origin is CheckpointOrigin.LEROBOT:
        return _lerobot_geometry(config)
    if config.use_albumentations:
        return _cv2_geometry(config)
    return _nvidia_torch_geometry(config)


def _cv2_geometry(config: ProcessorConfig) -> Cv2Geometry:
    edge = config.shortest_image_edge or (config.image_target_size or (None,))[0]
    if edge is None:
        msg = (
            "processor_config.json: shortest_image_edge and image_target_size are both null, so the size of the "
            "frames is unknown; one of them is needed (GR00T N1.7 was released with shortest_image_edge 256)"
        )
        raise CheckpointError(msg)
    fraction = config.crop_fraction
    if fraction is None:
        if config.image_crop_size is None or config.image_target_size is None:
            msg = (
                "processor_config.json: crop_fraction is null, and image_crop_size and image_target_size, which would "
                "replace it, are not both given; write crop_fraction (GR00T N1.7 was released with 0.95)"
            )
            raise CheckpointError(msg)
        fraction = config.image_crop_size[0] / config.image_target_size[0]
    return Cv2Geometry(edge, _checked_fraction(fraction), config.letter_box_transform)


def _nvidia_torch_geometry(config: ProcessorConfig) -> TorchGeometry:
    target, crop = config.image_target_size, config.image_crop_size
    if target is None or crop is None:
        missing = " and ".join(
            name for name, size in (("image_target_size", target), ("image_crop_size", crop)) if size is None
        )
        msg = (
            f"processor_config.json: use_albumentations is false, which needs image_target_size and image_crop_size, "
            f"but {missing} is null; write the sizes that the checkpoint was trained with"
        )
        raise CheckpointError(msg)
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


def _lerobot_geometry(config: ProcessorConfig) -> ImageGeometry:
    target = config.image_target_size
    if target is None:
        return _lerobot_geometry(
            replace(
                config,
                image_target_size=LEROBOT_TARGET_SIZE,
                image_crop_size=LEROBOT_CROP_SIZE,
                shortest_image_edge=None,
                crop_fraction=None,
            )
        )
    edge = config.shortest_image_edge or target[0]
    fraction = config.crop_fraction
    if fraction is None:
        fraction = config.image_crop_size[0] / target[0] if config.image_crop_size is not None else 1.0
    fraction = _checked_fraction(fraction)
    if config.use_albumentations:
        return Cv2Geometry(edge, fraction, config.letter_box_transform)
    crop = max(1, round(edge * fraction))
    return TorchGeometry(
        first_size=(edge, edge),
        crop_height_width=(crop, crop),
        final_size=target,
        interpolation="bicubic",
        rounded_offset=False,
        letter_box=config.letter_box_transform,
    )


def _checked_fraction(fraction: float) -> float:
    if not 0.0 < fraction <= 1.0:
        msg = (
            f"processor_config.json: the crop keeps {fraction:g} of each side (crop_fraction, or image_crop_size over "
            "image_target_size); above 0 to 1 is allowed"
        )
        raise CheckpointError(msg)
    return fraction
