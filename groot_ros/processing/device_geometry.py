"""A checkpoint's image geometry, Qwen's resize, normalisation and patches on the device where the frames lie.

The pixels are those of OpenCV and of torch's own CPU resize to the last bit. On a CPU those libraries are several times
faster, so this is for GPUs, which otherwise would have to wait for the CPU or resize with other arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import torch
from torch import Tensor
from torch.nn import functional

from groot_ros.processing.device_resize import resize_antialias, resize_area
from groot_ros.processing.geometry import ImageGeometry
from groot_ros.processing.images_cv2 import Cv2Geometry
from groot_ros.processing.images_torch import TorchGeometry
from groot_ros.processing.patches import HALF_RANGE, PatchEncoder

LEVELS = 256


class DeviceGeometry:
    """The evaluation geometry of a checkpoint as tensor operations.

    Args:
        geometry: The geometry whose pixels are wanted.

    """

    def __init__(self, geometry: ImageGeometry) -> None:
        if not isinstance(geometry, Cv2Geometry | TorchGeometry):
            msg = f"{type(geometry).__name__} has no form for a device"
            raise TypeError(msg)
        self._geometry = geometry

    def __call__(self, frames: Tensor) -> Tensor:
        """Pad where wanted, shrink, crop the centre and enlarge uint8 ``(N, H, W, 3)``."""
        geometry = self._geometry
        if geometry.letter_box:
            frames = _letterbox(frames)
        shrunk = self._resize(frames, *self._shrunk_size(*frames.shape[1:3]))
        box = geometry.center_box(*shrunk.shape[1:3])
        cropped = shrunk[:, box.top : box.top + box.height, box.left : box.left + box.width]
        return self._resize(cropped, *self._final_size(box.height, box.width))

    def _shrunk_size(self, height: int, width: int) -> tuple[int, int]:
        if isinstance(self._geometry, TorchGeometry):
            return self._geometry.first_size
        return self._geometry.resized_size(height, width)

    def _final_size(self, height: int, width: int) -> tuple[int, int]:
        if isinstance(self._geometry, TorchGeometry):
            return self._geometry.final_size
        return self._geometry.resized_size(height, width)

    def _resize(self, frames: Tensor, height: int, width: int) -> Tensor:
        if isinstance(self._geometry, TorchGeometry):
            return resize_antialias(frames, height, width, self._geometry.interpolation)
        return resize_area(frames, height, width)


class DeviceImages:
    """The frames of a batch on the device to the network's pixel values.

    Args:
        geometry: The checkpoint's geometry.
        patches: The backbone's patches.
        dtype: Number type of the pixel values.

    """

    def __init__(self, geometry: ImageGeometry, patches: PatchEncoder, dtype: torch.dtype) -> None:
        self._geometry = DeviceGeometry(geometry)
        self._patches = patches
        self._dtype = dtype

    def shaped(self, cameras: Sequence[Tensor]) -> list[Tensor]:
        """Each entry ``(T, H, W, 3)`` after the geometry; all frames of one size go through it together."""
        places: dict[torch.Size, list[int]] = {}
        for place, frames in enumerate(cameras):
            places.setdefault(frames.shape[1:], []).append(place)
        shaped: dict[int, Tensor] = {}
        for together in places.values():
            batch = self._geometry(torch.cat([cameras[place] for place in together]))
            first = 0
            for place in together:
                shaped[place] = batch.narrow(0, first, len(cameras[place]))
                first += len(cameras[place])
        return [shaped[place] for place in range(len(cameras))]

    def pixel_values(self, samples: Sequence[Tensor]) -> Tensor:
        """Normalised patches of shaped frames.

        Args:
            samples: For each sample its frames of one size, uint8 ``(N, h, w, 3)``.

        Returns:
            ``(patches of all frames, 3 * temporal_patch_size * patch_size**2)`` as `PatchEncoder.pixel_values`.

        """
        encoder = self._patches
        cut = [
            encoder.cut(resize_antialias(frames, *encoder.resized_size(*frames.shape[1:3]), "bicubic").movedim(3, 1))
            for frames in samples
        ]
        levels = torch.cat(cut)
        still = normalized_levels(self._dtype, levels.device)[levels.int()]
        return still[:, :, None].expand(-1, -1, encoder.temporal_patch_size, -1).reshape(len(levels), -1)


@lru_cache(maxsize=8)
def normalized_levels(dtype: torch.dtype, device: torch.device) -> Tensor:
    """The normalised value of each of the 256 levels.

    A table made on the CPU, since GPUs divide by a constant as a product with its inverse, which rounds differently.
    """
    levels = torch.arange(LEVELS, dtype=torch.float32)
    return levels.sub_(HALF_RANGE).div_(HALF_RANGE).to(device, dtype)


def _letterbox(frames: Tensor) -> Tensor:
    """Pad to squares; where the padding is odd, the extra row or column goes to the bottom or right."""
    height, width = frames.shape[1:3]
    edge = max(height, width)
    top, left = (edge - height) // 2, (edge - width) // 2
    return functional.pad(frames, (0, 0, left, edge - width - left, top, edge - height - top))
