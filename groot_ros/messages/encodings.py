"""Pixel encodings of sensor_msgs/Image, and how each becomes RGB: the same colours as cv_bridge gives, bit for bit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import cv2
import numpy as np
from numpy.typing import NDArray

Pixels = NDArray[np.integer[Any]]
"""uint8 or uint16 values as they lie in a message."""


@dataclass(frozen=True)
class Encoding:
    """One pixel encoding.

    Attributes:
        channels: Values a pixel that lie in one row of the data.
        bits: Bits a value, 8 or 16.
        code: OpenCV's conversion to RGB; None where the data is RGB already.
        rows: Rows of data for each two rows of the image: 2, or 3 where half-size colour rows follow (NV12).

    """

    channels: int
    bits: Literal[8, 16]
    code: int | None
    rows: Literal[2, 3] = 2

    @property
    def pixel_bytes(self) -> int:
        """Bytes a pixel in one row of the data."""
        return self.channels * self.bits // 8


# OpenCV names a Bayer pattern by its second row, ROS by its first: RGGB is OpenCV's BG.
ENCODINGS: dict[str, Encoding] = {
    "rgb8": Encoding(3, 8, None),
    "bgr8": Encoding(3, 8, cv2.COLOR_BGR2RGB),
    "rgba8": Encoding(4, 8, cv2.COLOR_RGBA2RGB),
    "bgra8": Encoding(4, 8, cv2.COLOR_BGRA2RGB),
    "mono8": Encoding(1, 8, cv2.COLOR_GRAY2RGB),
    "rgb16": Encoding(3, 16, None),
    "bgr16": Encoding(3, 16, cv2.COLOR_BGR2RGB),
    "rgba16": Encoding(4, 16, cv2.COLOR_RGBA2RGB),
    "bgra16": Encoding(4, 16, cv2.COLOR_BGRA2RGB),
    "mono16": Encoding(1, 16, cv2.COLOR_GRAY2RGB),
    "bayer_rggb8": Encoding(1, 8, cv2.COLOR_BayerBG2RGB),
    "bayer_bggr8": Encoding(1, 8, cv2.COLOR_BayerRG2RGB),
    "bayer_gbrg8": Encoding(1, 8, cv2.COLOR_BayerGR2RGB),
    "bayer_grbg8": Encoding(1, 8, cv2.COLOR_BayerGB2RGB),
    "bayer_rggb16": Encoding(1, 16, cv2.COLOR_BayerBG2RGB),
    "bayer_bggr16": Encoding(1, 16, cv2.COLOR_BayerRG2RGB),
    "bayer_gbrg16": Encoding(1, 16, cv2.COLOR_BayerGR2RGB),
    "bayer_grbg16": Encoding(1, 16, cv2.COLOR_BayerGB2RGB),
    "yuv422": Encoding(2, 8, cv2.COLOR_YUV2RGB_UYVY),
    "uyvy": Encoding(2, 8, cv2.COLOR_YUV2RGB_UYVY),
    "yuv422_yuy2": Encoding(2, 8, cv2.COLOR_YUV2RGB_YUY2),
    "yuyv": Encoding(2, 8, cv2.COLOR_YUV2RGB_YUY2),
    "nv12": Encoding(1, 8, cv2.COLOR_YUV2RGB_NV12, rows=3),
    "nv21": Encoding(1, 8, cv2.COLOR_YUV2RGB_NV21, rows=3),
}
"""Encoding name to its layout. Depth (16UC1, 32FC1) and bare channels (8UC3) say no colours and are not among them."""


def to_rgb(pixels: Pixels, encoding: Encoding, out: NDArray[np.uint8] | None = None) -> NDArray[np.uint8]:
    """Convert pixels as they lie in a message to RGB.

    Args:
        pixels: ``(rows, W)`` or ``(rows, W, channels)``, uint8 or uint16 in the machine's byte order.
        encoding: What they are.
        out: Where to write, uint8 ``(H, W, 3)``; a new array where it is None.

    Returns:
        uint8 ``(H, W, 3)``: ``out``, where it is given.

    """
    if encoding.bits == 16:
        colours = pixels if encoding.code is None else cv2.cvtColor(pixels, encoding.code)
        # 255 / 65535 is 1 / 257, and no integer lies half-way: this is the rounded quotient, without floats.
        rounded = ((colours.astype(np.uint32) + 128) // 257).astype(np.uint8)
        if out is None:
            return rounded
        np.copyto(out, rounded)
        return out
    if encoding.code is None:
        if out is None:
            return pixels.astype(np.uint8, copy=False)
        np.copyto(out, pixels)
        return out
    if out is None:
        return np.asarray(cv2.cvtColor(pixels, encoding.code), np.uint8)
    written = cv2.cvtColor(pixels, encoding.code, dst=out)
    if written is not out and not np.shares_memory(written, out):
        np.copyto(out, written)  # OpenCV could not use the buffer as it lies
    return out
