"""A camera frame of any kind: what was read from a message, decoded only when someone looks at it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Frame(ABC):
    """One image, checked when it was read and decoded lazily.

    Attributes:
        height: Rows.
        width: Columns.
        where: What it is, for errors: topic and stamp.

    """

    height: int
    width: int
    where: str

    @property
    def shares_storage(self) -> bool:
        """Whether `rgb` is a view of the message's own bytes, which costs nothing."""
        return False

    @abstractmethod
    def rgb(self) -> NDArray[np.uint8]:
        """The image as RGB, uint8 ``(H, W, 3)``.

        Raises:
            MessageError: The data cannot be decoded.

        """

    @abstractmethod
    def copy_into(self, out: NDArray[np.uint8]) -> None:
        """Write the image as RGB into ``out``, uint8 ``(H, W, 3)``.

        Raises:
            MessageError: The data cannot be decoded.
            ValueError: ``out`` has another shape or type.

        """

    def check_buffer(self, out: NDArray[np.uint8]) -> None:
        """Refuse a buffer of another shape or type."""
        if out.shape != (self.height, self.width, 3) or out.dtype != np.uint8:
            msg = f"{self.where}: the buffer is {out.dtype} {out.shape}, wanted uint8 {(self.height, self.width, 3)}"
            raise ValueError(msg)


@dataclass(frozen=True)
class ArrayFrame(Frame):
    """A frame that is an RGB array already: a decoded video, a picture of a dataset."""

    pixels: NDArray[np.uint8]

    @property
    def shares_storage(self) -> bool:
        """Whether `rgb` costs nothing: yes."""
        return True

    def rgb(self) -> NDArray[np.uint8]:
        """The array itself."""
        return self.pixels

    def copy_into(self, out: NDArray[np.uint8]) -> None:
        """Copy it."""
        self.check_buffer(out)
        np.copyto(out, self.pixels)


def array_frame(pixels: NDArray[np.uint8], where: str) -> ArrayFrame:
    """A frame of an RGB array, uint8 ``(H, W, 3)``.

    Raises:
        ValueError: The array has another shape or type.

    """
    if pixels.ndim != 3 or pixels.shape[2] != 3 or pixels.dtype != np.uint8 or 0 in pixels.shape:
        msg = f"{where}: a frame is uint8 (H, W, 3), but this is {pixels.dtype} {pixels.shape}"
        raise ValueError(msg)
    return ArrayFrame(height=pixels.shape[0], width=pixels.shape[1], where=where, pixels=pixels)
