"""sensor_msgs/Image and CompressedImage to frames: checked at once, decoded when someone looks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groot_ros.errors import MessageError
from groot_ros.messages.compressed import read_compressed_image
from groot_ros.messages.encodings import ENCODINGS, Encoding, Pixels, to_rgb
from groot_ros.messages.frame import Frame


def read_image(message: Any, where: str) -> Frame:  # noqa: ANN401 - rclpy's or rosbags' message
    """Read a camera message; nothing is decoded and nothing copied.

    Args:
        message: sensor_msgs/Image or CompressedImage, of rclpy or of rosbags.
        where: What it is, for errors: the camera or the topic.

    Raises:
        MessageError: An unknown encoding, no pixels, a step below the width of a row, or data of the wrong length.

    """
    if hasattr(message, "encoding"):
        return _read_raw_image(message, where)
    if hasattr(message, "format"):
        return read_compressed_image(message, where)
    msg = f"{where}: found {type(message).__name__}, wanted a sensor_msgs/Image or CompressedImage"
    raise MessageError(msg)


@dataclass(frozen=True)
class RawFrame(Frame):
    """A frame of sensor_msgs/Image: a view of the message's bytes, rows ``step`` bytes apart.

    Attributes:
        pixels: ``(rows, W)`` or ``(rows, W, channels)``, uint8 or uint16 in the message's byte order.
        encoding: What they are.

    """

    pixels: Pixels
    encoding: Encoding

    @property
    def shares_storage(self) -> bool:
        """Whether the message's bytes are RGB already."""
        return self.encoding.code is None and self.encoding.bits == 8

    def rgb(self) -> NDArray[np.uint8]:
        """The image as RGB: for rgb8 a view of the message's bytes, else one copy."""
        return to_rgb(self._native(), self.encoding)

    def copy_into(self, out: NDArray[np.uint8]) -> None:
        """Write the image as RGB into ``out``: the only copy."""
        self.check_buffer(out)
        to_rgb(self._native(), self.encoding, out)

    def _native(self) -> Pixels:
        return self.pixels.astype(self.pixels.dtype.newbyteorder("="), copy=False)


def message_bytes(data: Any) -> NDArray[np.uint8]:  # noqa: ANN401 - array.array, bytes, ndarray
    """A message's ``uint8[]`` as an array, sharing its storage."""
    if isinstance(data, np.ndarray):
        return data.view(np.uint8)
    return np.frombuffer(data, np.uint8) if len(data) else np.empty(0, np.uint8)


def _read_raw_image(message: Any, where: str) -> RawFrame:  # noqa: ANN401
    name = str(message.encoding)
    height, width, step = int(message.height), int(message.width), int(message.step)
    if height == 0 or width == 0:
        msg = f"{where}: the image is {width}x{height}, so it has no pixels; check the camera driver"
        raise MessageError(msg)
    if name not in ENCODINGS:
        msg = f"{where}: found encoding {name!r}{_why_not(name)}; known are {', '.join(ENCODINGS)}"
        raise MessageError(msg)
    encoding = ENCODINGS[name]
    if (encoding.rows == 3 or encoding.channels == 2) and (width % 2 or (encoding.rows == 3 and height % 2)):
        msg = f"{where}: a {name} image of {width}x{height}; pixels share their colours in pairs, so sizes must be even"
        raise MessageError(msg)
    row_bytes = width * encoding.pixel_bytes
    if step < row_bytes:
        msg = f"{where}: step is {step} bytes, but a row of {width} {name} pixels has {row_bytes}"
        raise MessageError(msg)
    data = message_bytes(message.data)
    rows = height * encoding.rows // 2
    if data.size != rows * step:
        fault = "is truncated" if data.size < rows * step else "is too long"
        msg = f"{where}: the data {fault}: {data.size} bytes, wanted {rows} rows of {step} = {rows * step}"
        raise MessageError(msg)
    return RawFrame(
        height=height, width=width, where=where, pixels=_view(message, data, rows, width, encoding), encoding=encoding
    )


def _view(message: Any, data: NDArray[np.uint8], rows: int, width: int, encoding: Encoding) -> Pixels:  # noqa: ANN401
    used = data.reshape(rows, int(message.step))[:, : width * encoding.pixel_bytes]
    if encoding.bits == 16:
        # A step may be odd, and a message may come from a machine of the other byte order.
        order = ">" if message.is_bigendian else "<"
        used = np.ascontiguousarray(used).view(np.dtype(f"{order}u2"))
    if encoding.channels == 1:
        return used
    return np.lib.stride_tricks.as_strided(
        used,
        shape=(rows, width, encoding.channels),
        strides=(used.strides[0], encoding.channels * used.itemsize, used.itemsize),
        writeable=used.flags.writeable,
    )


def _why_not(name: str) -> str:
    if name in {"16UC1", "32FC1"}:
        return " (a depth image has no colours)"
    if name[:2] in {"8U", "8S"} or name[:3] in {"16U", "16S", "32S", "32F", "64F"}:
        return " (it does not say which channel is which colour)"
    return ""
