"""The cv2 geometry (``use_albumentations``): shortest edge by area averaging, a fractional crop, the edge again.

The numbers are those of albumentations' SmallestMaxSize and fractional crop, which are OpenCV underneath: sizes round
half to even, crops round down, and the aspect ratio is kept.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from groot_ros.processing.geometry import CropBox, ImageGeometry
from groot_ros.processing.letterbox import letterbox


@dataclass(frozen=True)
class Cv2Geometry(ImageGeometry):
    """Geometry of the cv2 path.

    Attributes:
        shortest_edge: Shorter side after each of the two resizes, pixels.
        crop_fraction: Part of each side that the crop keeps, above 0 to 1.
        letter_box: Whether frames are padded to squares first.

    """

    shortest_edge: int
    crop_fraction: float
    letter_box: bool = False

    def shrink(self, frames: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Pad where wanted, then resize the shorter side."""
        return self._resize(letterbox(frames) if self.letter_box else frames)

    def center_box(self, height: int, width: int) -> CropBox:
        """The centre; where the rest is odd, the extra row or column is cut at the bottom or right."""
        crop_height = max(1, int(height * self.crop_fraction))
        crop_width = max(1, int(width * self.crop_fraction))
        return CropBox((height - crop_height) // 2, (width - crop_width) // 2, crop_height, crop_width)

    def enlarge(self, frames: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Resize the shorter side back."""
        return self._resize(frames)

    def size(self, height: int, width: int) -> tuple[int, int]:
        """Height and width at the end: the aspect ratio of the crop is kept."""
        if self.letter_box:
            height = width = max(height, width)
        return self.resized_size(*self.crop_size(*self.resized_size(height, width)))

    def resized_size(self, height: int, width: int) -> tuple[int, int]:
        """Height and width after a resize of the shorter side, the aspect ratio kept."""
        shortest = min(height, width)
        if shortest == self.shortest_edge:
            return height, width
        scale = self.shortest_edge / shortest
        return max(1, round(height * scale)), max(1, round(width * scale))

    def _resize(self, frames: NDArray[np.uint8]) -> NDArray[np.uint8]:
        count, height, width, channels = frames.shape
        new_height, new_width = self.resized_size(height, width)
        if (new_height, new_width) == (height, width):
            return frames
        resized = np.empty((count, new_height, new_width, channels), dtype=np.uint8)
        for source, target in zip(frames, resized, strict=True):
            cv2.resize(source, (new_width, new_height), dst=target, interpolation=cv2.INTER_AREA)
        return resized
