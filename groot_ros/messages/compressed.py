"""sensor_msgs/CompressedImage: JPEG and PNG, sized by their headers, checked for their end, decoded late."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from groot_ros.errors import MessageError
from groot_ros.messages.encodings import ENCODINGS, Encoding, Pixels, to_rgb
from groot_ros.messages.frame import Frame

PNG_START = b"\x89PNG\r\n\x1a\n"
PNG_END = b"IEND\xaeB`\x82"
JPEG_START = b"\xff\xd8"
JPEG_END = b"\xff\xd9"
PADDING = 4096
"""Cameras may pad a JPEG to the size of their buffer; its end cannot occur within the compressed data itself."""
# Start-of-frame markers hold the size: C0 to CF without DHT (C4), JPG (C8) and DAC (CC).
JPEG_FRAME_MARKERS = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


@dataclass(frozen=True)
class CompressedFrame(Frame):
    """A frame of sensor_msgs/CompressedImage.

    Attributes:
        data: The compressed bytes.

    """

    data: NDArray[np.uint8]

    def rgb(self) -> NDArray[np.uint8]:
        """The decoded image."""
        return to_rgb(*self._decoded())

    def copy_into(self, out: NDArray[np.uint8]) -> None:
        """Decode, and write the colours in their order into ``out``."""
        self.check_buffer(out)
        to_rgb(*self._decoded(), out)

    def _decoded(self) -> tuple[Pixels, Encoding]:
        # Unchanged, as cv_bridge: no turning by EXIF, and the depth is seen instead of cut off.
        pixels = cv2.imdecode(self.data, cv2.IMREAD_UNCHANGED)
        if pixels is None or pixels.shape[:2] != (self.height, self.width):
            msg = f"{self.where}: the compressed image of {self.width}x{self.height} cannot be decoded; it is damaged"
            raise MessageError(msg)
        channels = 1 if pixels.ndim == 2 else pixels.shape[2]
        layout = {1: "mono", 3: "bgr", 4: "bgra"}.get(channels)
        if layout is None or pixels.dtype not in (np.uint8, np.uint16):
            msg = f"{self.where}: found {channels} channels of {pixels.dtype}, wanted a grey or colour picture"
            raise MessageError(msg)
        return pixels.view(f"u{pixels.itemsize}"), ENCODINGS[f"{layout}{8 * pixels.itemsize}"]


def read_compressed_image(message: Any, where: str) -> CompressedFrame:  # noqa: ANN401 - rclpy's or rosbags' message
    """Read the size and check the end; nothing is decoded.

    Raises:
        MessageError: Depth, another format than JPEG or PNG, or truncated data.

    """
    written = str(message.format)
    if "compressedDepth" in written or written.split(";", maxsplit=1)[0].strip() in {"16UC1", "32FC1"}:
        msg = f"{where}: found format {written!r}: a depth image has no colours; give the colour camera's topic"
        raise MessageError(msg)
    data = message.data if isinstance(message.data, np.ndarray) else np.frombuffer(message.data, np.uint8)
    head = data[:8].tobytes()
    if head == PNG_START:
        size, whole = _png_size(data), PNG_END in data[-64:].tobytes()
    elif head[:2] == JPEG_START:
        size, whole = _jpeg_size(data.data), data[-2:].tobytes() == JPEG_END or _has_end(data)
    else:
        msg = f"{where}: format is {written!r}, and the {data.size} bytes begin neither a JPEG nor a PNG"
        raise MessageError(msg)
    if size is None or not whole:
        msg = f"{where}: the compressed data is truncated: its {data.size} bytes have no {'end' if size else 'size'}"
        raise MessageError(msg)
    width, height = size
    if width == 0 or height == 0:
        msg = f"{where}: the image is {width}x{height}, so it has no pixels"
        raise MessageError(msg)
    return CompressedFrame(height=height, width=width, where=where, data=data)


def _png_size(data: NDArray[np.uint8]) -> tuple[int, int] | None:
    header = data[16:24].tobytes()
    if len(header) < 8:
        return None
    return int.from_bytes(header[:4], "big"), int.from_bytes(header[4:], "big")


def _has_end(data: NDArray[np.uint8]) -> bool:
    return JPEG_END in data[-PADDING:].tobytes()


def _jpeg_size(data: memoryview) -> tuple[int, int] | None:
    """Width and height from the first start-of-frame segment."""
    position = 2
    while position + 9 <= len(data):
        if data[position] != 0xFF:
            return None
        marker = data[position + 1]
        if marker == 0xFF:  # fill byte
            position += 1
        elif marker in JPEG_FRAME_MARKERS:
            frame = data[position + 5 : position + 9].tobytes()
            return int.from_bytes(frame[2:], "big"), int.from_bytes(frame[:2], "big")
        elif marker == 0x01 or 0xD0 <= marker <= 0xD7:  # markers without a length
            position += 2
        else:
            position += 2 + (data[position + 2] << 8 | data[position + 3])
    return None
