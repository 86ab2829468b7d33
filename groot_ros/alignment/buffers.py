"""Where copied frames go: a fresh buffer each time, or a few that take turns."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Shape = tuple[int, int, int, int]
Allocate = Callable[[str, Shape], NDArray[np.uint8]]
"""Camera and shape ``(T, H, W, 3)`` to the uint8 buffer into which its frames are written."""


def new_buffer(camera: str, shape: Shape) -> NDArray[np.uint8]:  # noqa: ARG001
    """A fresh buffer each time: an observation is valid for ever."""
    return np.empty(shape, np.uint8)


class TurningBuffers:
    """Buffers that take turns: their memory is touched once, where a fresh one costs a page fault every 4 KiB.

    An observation is valid until ``turns`` others have been made, so there must be more turns than observations in use
    at one time.

    Args:
        turns: Buffers a camera.
        make: Makes a buffer of a shape, for instance one in pinned memory.

    """

    def __init__(self, turns: int = 3, make: Callable[[Shape], NDArray[np.uint8]] | None = None) -> None:
        self._turns = turns
        self._make = make or (lambda shape: np.zeros(shape, np.uint8))
        self._buffers: dict[str, list[NDArray[np.uint8]]] = {}

    def __call__(self, camera: str, shape: Shape) -> NDArray[np.uint8]:
        """The camera's buffer whose turn it is."""
        waiting = self._buffers.setdefault(camera, [])
        if waiting and waiting[0].shape != shape:  # the camera changed its size
            waiting.clear()
        buffer = self._make(shape) if len(waiting) < self._turns else waiting.pop(0)
        waiting.append(buffer)
        return buffer
