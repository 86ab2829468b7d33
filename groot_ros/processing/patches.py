"""Qwen3-VL's image processor: resize to whole patches, normalise, and cut into the rows that the network reads."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groot_ros.errors import CheckpointError, ProcessingError
from groot_ros.processing.images_torch import resize_uint8
from groot_ros.processing.storage import channels_first
from groot_ros.processing.threads import in_parallel

LONGEST_ASPECT_RATIO = 200
HALF_RANGE = 127.5
BICUBIC = 3


@dataclass(frozen=True)
class PatchEncoder:
    """Frames to ``pixel_values`` and their grid.

    Attributes:
        patch_size: Side of a patch, pixels.
        merge_size: Patches along each side that become one token.
        temporal_patch_size: Frames in a patch; a still image is repeated.
        min_pixels: Smaller images are enlarged to at least this area.
        max_pixels: Larger images are shrunk to at most this area.

    """

    patch_size: int
    merge_size: int
    temporal_patch_size: int
    min_pixels: int
    max_pixels: int

    @classmethod
    def from_preprocessor(cls, preprocessor: dict[str, Any]) -> PatchEncoder:
        """Read the backbone's ``preprocessor_config.json``.

        Raises:
            CheckpointError: A key is missing, or asks for another computation than Qwen3-VL's.

        """
        _require(preprocessor, "image_mean", [0.5, 0.5, 0.5])
        _require(preprocessor, "image_std", [0.5, 0.5, 0.5])
        for key, wanted in (("resample", BICUBIC), ("do_resize", True), ("do_rescale", True), ("do_normalize", True)):
            if preprocessor.get(key) is not None:
                _require(preprocessor, key, wanted)
        size = preprocessor.get("size") or {}
        return cls(
            patch_size=_whole_number(preprocessor, "patch_size"),
            merge_size=_whole_number(preprocessor, "merge_size"),
            temporal_patch_size=_whole_number(preprocessor, "temporal_patch_size"),
            min_pixels=_whole_number(preprocessor, "min_pixels", size.get("shortest_edge")),
            max_pixels=_whole_number(preprocessor, "max_pixels", size.get("longest_edge")),
        )

    @property
    def patches_per_token(self) -> int:
        """Patches that are merged into one token."""
        return self.merge_size**2

    def resized_size(self, height: int, width: int) -> tuple[int, int]:
        """Height and width that the network sees: the nearest multiples of a token's side within the pixel limits.

        Raises:
            ProcessingError: The image is more than 200 times as long as wide.

        """
        if max(height, width) > LONGEST_ASPECT_RATIO * min(height, width):
            msg = f"image of {height}x{width} pixels: one side may be at most {LONGEST_ASPECT_RATIO} times the other"
            raise ProcessingError(msg)
        side = self.patch_size * self.merge_size
        new_height, new_width = round(height / side) * side, round(width / side) * side
        if new_height * new_width > self.max_pixels:
            factor = math.sqrt(height * width / self.max_pixels)
            new_height = max(side, math.floor(height / factor / side) * side)
            new_width = max(side, math.floor(width / factor / side) * side)
        elif new_height * new_width < self.min_pixels:
            factor = math.sqrt(self.min_pixels / (height * width))
            new_height = math.ceil(height * factor / side) * side
            new_width = math.ceil(width * factor / side) * side
        return new_height, new_width

    def grid(self, height: int, width: int) -> tuple[int, int, int]:
        """``image_grid_thw`` of an image of that size: patches in time, down and across."""
        new_height, new_width = self.resized_size(height, width)
        return 1, new_height // self.patch_size, new_width // self.patch_size

    def tokens(self, height: int, width: int) -> int:
        """Tokens that an image of that size takes in the prompt."""
        return math.prod(self.grid(height, width)) // self.patches_per_token

    def resize(self, frames: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Frames ``(N, H, W, 3)`` as the network sees them, uint8, bicubic."""
        return resize_uint8(frames, *self.resized_size(*frames.shape[1:3]), "bicubic")

    def pixel_values(self, samples: Sequence[NDArray[np.uint8]]) -> Tensor:
        """Cut the frames of a batch into normalised patches.

        Args:
            samples: For each sample its frames of one size, uint8 ``(N, H, W, 3)``; samples may differ in size.

        Returns:
            float32 ``(patches of all frames, 3 * temporal_patch_size * patch_size**2)``, sample by sample, patches
            that share a token side by side.

        """
        cut = [self.cut(channels_first(frames)) for frames in in_parallel(self.resize, samples)]
        rows = sum(len(patches) for patches in cut)
        channels, pixels = cut[0].shape[1:]
        levels = torch.empty((rows, channels, self.temporal_patch_size, pixels), dtype=torch.float32)
        still = levels[:, :, 0]
        still.copy_(torch.cat(cut))
        still.sub_(HALF_RANGE).div_(HALF_RANGE)
        levels[:, :, 1:].copy_(still.unsqueeze(2))
        return levels.view(rows, -1)

    def cut(self, images: Tensor) -> Tensor:
        """Patches ``(N * patches, 3, patch_size**2)`` of images ``(N, 3, H, W)``, uint8."""
        count, channels, height, width = images.shape
        patch, merge = self.patch_size, self.merge_size
        down, across = height // (patch * merge), width // (patch * merge)
        return (
            images.reshape(count, channels, down, merge, patch, across, merge, patch)
            .permute(0, 2, 5, 3, 6, 1, 4, 7)
            .reshape(-1, channels, patch * patch)
        )


def _require(preprocessor: dict[str, Any], key: str, wanted: object) -> None:
    found = preprocessor.get(key)
    if found != wanted:
        msg = f"preprocessor_config.json of the backbone: {key} is {found}; the images of GR00T N1.7 need {wanted}"
        raise CheckpointError(msg)


def _whole_number(preprocessor: dict[str, Any], key: str, otherwise: object = None) -> int:
    found = preprocessor.get(key)
    value = otherwise if found is None else found
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        msg = (
            f"preprocessor_config.json of the backbone: {key} is {value}; a whole number of at least 1 is needed "
            "(min_pixels and max_pixels may also be size.shortest_edge and size.longest_edge)"
        )
        raise CheckpointError(msg)
    return value
