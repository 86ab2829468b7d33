"""Camera frames to the device: once, as uint8, through pinned buffers that are used again."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groot_ros.processing.storage import channels_first


class FrameUpload:
    """Copies frames into buffers on the device that stay at one address, as a captured graph needs them.

    A prediction must have ended before the next upload: the buffers of both sides are reused.

    Args:
        device: Where the frames go.

    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._staging: dict[tuple[str, tuple[int, ...]], Tensor] = {}
        self._target: dict[tuple[str, tuple[int, ...]], Tensor] = {}

    def __call__(self, place: str, frames: NDArray[np.uint8]) -> Tensor:
        """Upload without waiting for the copy.

        Args:
            place: Which buffers to use: one name for each tensor that must be there at the same time.
            frames: uint8 ``(T, H, W, 3)``; read-only bytes of a message, views and pinned memory alike.

        Returns:
            uint8 ``(T, H, W, 3)`` on the device, valid until the next upload to the same place.

        """
        source = channels_first(frames).permute(0, 2, 3, 1)
        key = (place, frames.shape)
        if key not in self._target:
            self._target[key] = torch.empty(frames.shape, dtype=torch.uint8, device=self.device)
        if self.device.type == "cuda" and not source.is_pinned():
            if key not in self._staging:
                self._staging[key] = pinned(frames.shape)
            source = self._staging[key].copy_(source)
        return self._target[key].copy_(source, non_blocking=True)


def pinned_frames(shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """A buffer for frames ``(T, H, W, 3)`` that is uploaded without a copy on this side."""
    return pinned(shape).numpy()


def pinned(shape: tuple[int, ...]) -> Tensor:
    """A uint8 buffer from which a GPU reads by itself."""
    return torch.empty(shape, dtype=torch.uint8, pin_memory=True)
