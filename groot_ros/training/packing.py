"""Camera frames on their way to the device: one tensor a camera, in the policy's order, as the bytes they came as."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from groot_ros.observation import ImageInputFormat

LARGEST_LEVEL = 255.0


def image_input_format(policy: type) -> ImageInputFormat:
    """What a policy class wants to be handed as images; a class that does not say it takes floats from 0 to 1.

    Ask the class itself, before an adapter or a launcher wraps its instances.
    """
    declared = getattr(policy, "image_input_format", ImageInputFormat.FLOAT32_0_1)
    return ImageInputFormat(declared)


def pack_cameras(cameras: Sequence[Tensor], wanted: ImageInputFormat) -> tuple[Tensor, ...]:
    """Hand over the frames of all cameras.

    Args:
        cameras: For each camera in the policy's order uint8 ``(B, T, H, W, 3)``.
        wanted: What the policy wants.

    Returns:
        For each camera ``(B, T, 3, H, W)``: for ``UINT8_0_255`` a view of the same storage, for ``FLOAT32_0_1`` new
        float32 values.

    """
    views = tuple(frames.permute(0, 1, 4, 2, 3) for frames in cameras)
    if wanted is ImageInputFormat.UINT8_0_255:
        return views
    return tuple(view.to(torch.float32) / LARGEST_LEVEL for view in views)


def as_levels(images: Tensor) -> Tensor:
    """Frames as uint8, whichever format they were handed over in; uint8 frames are returned as they are."""
    if images.dtype == torch.uint8:
        return images
    return (images * LARGEST_LEVEL).round().clamp(0, LARGEST_LEVEL).to(torch.uint8)
