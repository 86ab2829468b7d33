"""What every image geometry has in common: shrink, crop, enlarge; the crop box can be given or is the centre."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class CropBox:
    """A rectangle of an image, pixels."""

    top: int
    left: int
    height: int
    width: int

    def cut(self, frames: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """The rectangle of every frame of ``(T, H, W, 3)``, sharing storage with it."""
        return frames[:, self.top : self.top + self.height, self.left : self.left + self.width]


class ImageGeometry(ABC):
    """How a checkpoint wants its frames shaped before they are cut into patches.

    Frames are RGB, uint8, ``(T, H, W, 3)``. Evaluation crops the centre; training draws a box inside
    :meth:`crop_size`, and may put its augmentations between :meth:`shrink` and :meth:`enlarge`.
    """

    @abstractmethod
    def shrink(self, frames: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Pad where the checkpoint wants it, and resize to the size that the crop is taken from."""

    @abstractmethod
    def center_box(self, height: int, width: int) -> CropBox:
        """The crop of evaluation in a shrunk image of that size; its size is also that of a training crop."""

    @abstractmethod
    def enlarge(self, frames: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Resize what was cropped to the final size."""

    @abstractmethod
    def size(self, height: int, width: int) -> tuple[int, int]:
        """Height and width of the result of evaluation for frames of a size."""

    def crop_size(self, height: int, width: int) -> tuple[int, int]:
        """Height and width of the crop in a shrunk image of that size."""
        box = self.center_box(height, width)
        return box.height, box.width

    def __call__(self, frames: NDArray[np.uint8], crop: CropBox | None = None) -> NDArray[np.uint8]:
        """Shrink, crop (the centre, or the given box of the shrunk image) and enlarge ``(T, H, W, 3)``."""
        shrunk = self.shrink(frames)
        box = crop or self.center_box(*shrunk.shape[1:3])
        return self.enlarge(box.cut(shrunk))
