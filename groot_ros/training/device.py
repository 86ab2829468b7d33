"""From the bytes of a batch to the pixel values of the network, on the device that computes."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from groot_ros.processing.geometry import ImageGeometry
from groot_ros.processing.images_torch import TorchGeometry
from groot_ros.processing.patches import HALF_RANGE, PatchEncoder
from groot_ros.training.device_resize import resize_bytes
from groot_ros.training.packing import as_levels


class DevicePreparation:
    """What is left to do with the frames once they are on the device.

    Frames of the cv2 geometry come shaped; those of the torch geometry come as they were decoded, with their crop
    boxes, and are shaped here.

    Args:
        geometry: The checkpoint's.
        patches: The checkpoint's.

    """

    def __init__(self, geometry: ImageGeometry, patches: PatchEncoder) -> None:
        self._geometry = geometry if isinstance(geometry, TorchGeometry) else None
        self._patches = patches

    def pixel_values(self, images: Sequence[Tensor], crop_boxes: Tensor | None) -> Tensor:
        """Make the network's pixel values.

        Args:
            images: For each of V cameras ``(B, T, 3, H, W)``, uint8 or float32 from 0 to 1.
            crop_boxes: For the torch geometry, top and left of every crop, int64 ``(V, B, T, 2)`` on the CPU.

        Returns:
            float32 ``(B * T * V * patches, values)``, in the order that the prompts name the images in.

        """
        batch, steps = images[0].shape[:2]
        frames = [as_levels(camera).flatten(0, 1) for camera in images]
        if self._geometry is not None:
            assert crop_boxes is not None
            frames = [
                self._shape(camera, boxes.flatten(0, 1), self._geometry)
                for camera, boxes in zip(frames, crop_boxes, strict=True)
            ]
        cut = [self._cut(camera) for camera in frames]
        together = torch.stack([patches.view(batch, steps, *patches.shape[1:]) for patches in cut], dim=2).flatten(0, 3)
        still = together.to(torch.float32)
        # Division by a tensor: by a number, CUDA multiplies with its rounded inverse.
        still = (still - HALF_RANGE) / torch.tensor(HALF_RANGE, device=still.device)
        return still[:, :, None].expand(-1, -1, self._patches.temporal_patch_size, -1).flatten(1)

    def _shape(self, frames: Tensor, boxes: Tensor, geometry: TorchGeometry) -> Tensor:
        if geometry.letter_box:
            frames = _letterbox(frames)
        frames = resize_bytes(frames, *geometry.first_size, geometry.interpolation)
        height, width = geometry.crop_height_width
        crops = [
            frame[:, top : top + height, left : left + width]
            for frame, (top, left) in zip(frames, boxes.tolist(), strict=True)
        ]
        return resize_bytes(torch.stack(crops), *geometry.final_size, geometry.interpolation)

    def _cut(self, images: Tensor) -> Tensor:
        """Patches ``(N, patches, 3, pixels)`` of images ``(N, 3, H, W)``."""
        resized = resize_bytes(images, *self._patches.resized_size(*images.shape[-2:]), "bicubic")
        count, channels, height, width = resized.shape
        patch, merge = self._patches.patch_size, self._patches.merge_size
        down, across = height // (patch * merge), width // (patch * merge)
        return (
            resized.reshape(count, channels, down, merge, patch, across, merge, patch)
            .permute(0, 2, 5, 3, 6, 1, 4, 7)
            .reshape(count, -1, channels, patch * patch)
        )


def _letterbox(frames: Tensor) -> Tensor:
    height, width = frames.shape[-2:]
    edge = max(height, width)
    top, left = (edge - height) // 2, (edge - width) // 2
    return functional.pad(frames, (left, edge - width - left, top, edge - height - top))
