"""Frames between numpy and torch without a copy."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


class _WritableView:
    """Presents an array's memory as writable: torch knows no read-only tensors and warns about read-only arrays."""

    def __init__(self, array: NDArray[np.uint8]) -> None:
        self._owner = array
        self.__array_interface__: dict[str, Any] = {
            **array.__array_interface__,
            "data": (array.__array_interface__["data"][0], False),
        }


def channels_first(frames: NDArray[np.uint8]) -> Tensor:
    """View ``(T, H, W, 3)`` frames as a ``(T, 3, H, W)`` tensor that shares their storage.

    Bytes of a message are read-only: nothing here writes into the tensor, and callers must not either. Only frames
    that torch cannot address (mirrored by a negative stride) are copied.
    """
    if any(stride < 0 for stride in frames.strides):
        frames = np.ascontiguousarray(frames)
    elif not frames.flags.writeable:
        frames = np.asarray(_WritableView(frames))
    return torch.from_numpy(frames).permute(0, 3, 1, 2)


def channels_last(images: Tensor) -> NDArray[np.uint8]:
    """View a ``(T, 3, H, W)`` tensor as ``(T, H, W, 3)`` frames that share its storage."""
    frames: NDArray[np.uint8] = images.permute(0, 2, 3, 1).numpy()
    return frames
