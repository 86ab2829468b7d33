"""Cameras that were recorded as video (H.264, H.265, ...): one packet a message, decoded in order."""

from __future__ import annotations

from typing import Any

import av
import numpy as np
from av.video.codeccontext import VideoCodecContext
from numpy.typing import NDArray

from groot_ros.errors import MessageError
from groot_ros.messages import header_stamp_ns, stamp_ns

PACKET_TYPES = ("foxglove_msgs/msg/CompressedVideo", "ffmpeg_image_transport_msgs/msg/FFMPEGPacket")
DECODERS = {
    "h264": "h264",
    "libx264": "h264",
    "h264_nvenc": "h264",
    "h264_vaapi": "h264",
    "h265": "hevc",
    "hevc": "hevc",
    "libx265": "hevc",
    "hevc_nvenc": "hevc",
    "av1": "av1",
    "libsvtav1": "av1",
    "vp9": "vp9",
}
"""What messages call a codec, to FFmpeg's decoder."""

Decoded = list[tuple[int | None, NDArray[np.uint8]]]
"""Stamps in nanoseconds and RGB pictures, uint8 ``(H, W, 3)``."""


class PacketDecoder:
    """Decodes the packets of one camera, in the order of its messages.

    Args:
        where: The camera, for errors.

    """

    def __init__(self, where: str) -> None:
        self._where = where
        self._codec: VideoCodecContext | None = None
        self._name = ""
        self._stamps: dict[int, int | None] = {}
        self._number = 0
        self._has_begun = False
        self.skipped = 0

    def decode(self, message: Any) -> Decoded:  # noqa: ANN401 - a ROS message
        """The pictures that are ready after this packet; each with the stamp of its own packet.

        Packets before the first key frame cannot be decoded: they are counted in `skipped`.

        Raises:
            MessageError: A codec that is not known, or damaged data.

        """
        codec = self._open(str(message.format if hasattr(message, "format") else message.encoding))
        packet = av.Packet(bytes(message.data))
        packet.pts = self._number
        stamp = stamp_ns(message.timestamp) if hasattr(message, "timestamp") else header_stamp_ns(message)
        self._stamps[self._number] = stamp
        self._number += 1
        try:
            frames = codec.decode(packet)
        except av.error.FFmpegError as error:
            if not self._has_begun:
                self.skipped += 1
                return []
            msg = f"{self._where}: a {self._name} packet cannot be decoded: {error.strerror}"
            raise MessageError(msg) from error
        if not frames and not self._has_begun:
            self.skipped += 1
        return self._with_stamps(frames)

    def finish(self) -> Decoded:
        """The pictures that the decoder still held back."""
        if self._codec is None or not self._has_begun:
            return []
        try:
            return self._with_stamps(self._codec.decode(None))
        except av.error.FFmpegError:
            return []

    def _open(self, written: str) -> VideoCodecContext:
        name = written.split(";", maxsplit=1)[0].strip().lower()
        if self._codec is not None and name == self._name:
            return self._codec
        if name not in DECODERS:
            msg = f"{self._where}: the video codec {written!r} is not known; known are {', '.join(DECODERS)}"
            raise MessageError(msg)
        codec = av.CodecContext.create(DECODERS[name], "r")
        if not isinstance(codec, VideoCodecContext):
            msg = f"{self._where}: {name} is no video codec"
            raise MessageError(msg)
        codec.thread_count = 1
        codec.options = {"flags": "low_delay"}
        self._codec, self._name = codec, name
        return codec

    def _with_stamps(self, frames: list[av.VideoFrame]) -> Decoded:
        decoded: Decoded = []
        if frames and not self._has_begun:
            self._has_begun = True
            first = frames[0].pts
            self.skipped = self.skipped if first is None else first  # those behind it were only held back
        for frame in frames:
            stamp = self._stamps.pop(frame.pts) if frame.pts in self._stamps else None
            decoded.append((stamp, np.asarray(frame.to_ndarray(format="rgb24"), np.uint8)))
        return decoded
