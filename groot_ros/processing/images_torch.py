"""The torch geometry (without ``use_albumentations``): everything is squashed to one size, cropped, and enlarged.

The resizes run on uint8 with antialias, whose arithmetic is that of torchvision's and Pillow's 8-bit resize.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch.nn import functional

from groot_ros.processing.geometry import CropBox, ImageGeometry
from groot_ros.processing.letterbox import letterbox
from groot_ros.processing.storage import channels_first, channels_last


def resize_uint8(frames: NDArray[np.uint8], height: int, width: int, interpolation: str) -> NDArray[np.uint8]:
    """Resize ``(T, H, W, 3)`` uint8 frames with antialias, ``bilinear`` or ``bicubic``; the same size is no work."""
    if frames.shape[1:3] == (height, width):
        return frames
    resized = functional.interpolate(channels_first(frames), size=(height, width), mode=interpolation, antialias=True)
    return channels_last(resized)


@dataclass(frozen=True)
class TorchGeometry(ImageGeometry):
    """Geometry of the torch path. Sizes are (height, width) in pixels.

    Attributes:
        first_size: Size after the first resize; the aspect ratio is not kept.
        crop_height_width: Size of the crop.
        final_size: Size after the second resize.
        interpolation: ``bilinear`` or ``bicubic``.
        rounded_offset: Whether the centre's offset rounds half to even, else it rounds down.
        letter_box: Whether frames are padded to squares first.

    """

    first_size: tuple[int, int]
    crop_height_width: tuple[int, int]
    final_size: tuple[int, int]
    interpolation: str
    rounded_offset: bool
    letter_box: bool = False

    def shrink(self, frames: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Pad where wanted, then squash to the first size."""
        return resize_uint8(letterbox(frames) if self.letter_box else frames, *self.first_size, self.interpolation)

    def center_box(self, height: int, width: int) -> CropBox:
        """The centre; an odd rest is split as the checkpoint's author did."""
        crop_height, crop_width = self.crop_height_width
        rest = (height - crop_height, width - crop_width)
        top, left = (round(r / 2) for r in rest) if self.rounded_offset else (r // 2 for r in rest)
        return CropBox(top, left, crop_height, crop_width)

    def enlarge(self, frames: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Resize to the final size."""
        return resize_uint8(frames, *self.final_size, self.interpolation)

    def size(self, height: int, width: int) -> tuple[int, int]:  # noqa: ARG002 - every size becomes one
        """Height and width at the end."""
        return self.final_size
