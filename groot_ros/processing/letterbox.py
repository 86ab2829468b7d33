"""Black bars that make a frame square, so that cameras of any aspect ratio end at one size."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def letterbox(frames: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Pad ``(T, H, W, 3)`` with zeros to squares of the longer edge.

    The frame lies in the middle; where the padding is odd, the extra row or column goes to the bottom or right.
    Frames that are square already are returned as they are.
    """
    count, height, width, channels = frames.shape
    edge = max(height, width)
    if height == width:
        return frames
    top, left = (edge - height) // 2, (edge - width) // 2
    square = np.zeros((count, edge, edge, channels), dtype=frames.dtype)
    square[:, top : top + height, left : left + width] = frames
    return square
