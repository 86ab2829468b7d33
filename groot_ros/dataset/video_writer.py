"""Video files of a dataset: constant frame rate, the stamp of a frame is its number, every second frame a key frame."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Any, cast

import av
import av.container
import numpy as np
from av.video.stream import VideoStream
from numpy.typing import NDArray

from groot_ros.dataset.files import unwritable
from groot_ros.errors import DatasetError


@dataclass(frozen=True)
class _Codec:
    """How FFmpeg names a codec, and what it needs here."""

    encoder: str
    stored_as: str
    input_format: str
    pixel_format: str
    default_crf: int
    default_preset: str
    options: tuple[tuple[str, str], ...] = ()


_CODECS = {
    "h264": _Codec("libx264", "h264", "yuv420p", "yuv420p", 23, "veryfast", (("bf", "0"),)),
    "hevc": _Codec(
        "libx265", "hevc", "yuv420p", "yuv420p", 26, "veryfast", (("x265-params", "bframes=0:log-level=error"),)
    ),
    "av1": _Codec("libsvtav1", "av1", "yuv420p", "yuv420p", 30, "12"),
    # RGB planes of H.264 without loss: large, and every decoded pixel is the pixel that went in.
    "lossless": _Codec("libx264rgb", "h264", "rgb24", "gbrp", 0, "ultrafast"),
}


@dataclass(frozen=True, kw_only=True)
class VideoEncoding:
    """How camera frames are stored.

    Attributes:
        codec: ``h264`` (default), ``hevc``, ``av1`` or ``lossless``.
        crf: Constant rate factor, lower is better and larger; None takes the codec's default here.
        preset: The encoder's speed preset; None takes the codec's default here.
        gop: A key frame every so many frames: few make random access in training fast.

    """

    codec: str = "h264"
    crf: int | None = None
    preset: str | None = None
    gop: int = 2

    def __post_init__(self) -> None:
        """Refuse what cannot be encoded."""
        if self.codec not in _CODECS:
            msg = f"video codec {self.codec!r} is not known; there are {', '.join(_CODECS)}"
            raise DatasetError(msg)
        if self.codec == "lossless" and self.crf not in (None, 0):
            msg = f"the lossless codec has crf 0, but {self.crf} was asked for"
            raise DatasetError(msg)
        if self.gop < 1:
            msg = f"gop must be at least 1 frame, but is {self.gop}"
            raise DatasetError(msg)

    @property
    def properties(self) -> _Codec:
        """FFmpeg's names for the codec."""
        return _CODECS[self.codec]

    @property
    def effective_crf(self) -> int:
        """The constant rate factor that is used."""
        return self.properties.default_crf if self.crf is None else self.crf

    @property
    def options(self) -> dict[str, str]:
        """Options for FFmpeg."""
        codec = self.properties
        return {"crf": str(self.effective_crf), "preset": self.preset or codec.default_preset, **dict(codec.options)}

    def check_size(self, height: int, width: int, camera: str) -> None:
        """Refuse sizes that the codec cannot store.

        Raises:
            DatasetError: Odd height or width with colour at half resolution.

        """
        if height < 1 or width < 1:
            msg = f"camera {camera!r} has no size: {width}x{height}"
            raise DatasetError(msg)
        if self.properties.pixel_format == "yuv420p" and (height % 2 or width % 2):
            msg = (
                f"camera {camera!r} is {width}x{height}, but {self.codec} needs even width and height: "
                f"crop the image by one pixel at its source, or use the codec lossless"
            )
            raise DatasetError(msg)

    def video_info(self, height: int, width: int, fps: int) -> dict[str, Any]:
        """Return what LeRobot notes about a video feature."""
        return {
            "video.height": height,
            "video.width": width,
            "video.codec": self.properties.stored_as,
            "video.pix_fmt": self.properties.pixel_format,
            "video.fps": fps,
            "video.channels": 3,
            "video.g": self.gop,
            "video.crf": self.effective_crf,
            "has_audio": False,
            "is_depth_map": False,
        }


class VideoWriter:
    """One video file, frame by frame. The caller waits until a frame is taken: none is ever dropped.

    Args:
        path: The mp4 file.
        fps: Frames a second.
        height: Pixels.
        width: Pixels.
        encoding: Codec and quality.
        threads: Threads of the encoder; 0 lets it choose.

    """

    def __init__(
        self, path: Path, *, fps: int, height: int, width: int, encoding: VideoEncoding, threads: int = 0
    ) -> None:
        self._path = path
        self._shape = (height, width, 3)
        self._frames = 0
        self._time_base = Fraction(1, fps)
        codec = encoding.properties
        try:
            self._container: av.container.OutputContainer = av.open(str(path), "w")
            stream = cast("VideoStream", self._container.add_stream(codec.encoder, rate=fps, options=encoding.options))
        except av.error.FFmpegError as error:
            raise self._failed(error) from error
        stream.height, stream.width, stream.pix_fmt = height, width, codec.input_format
        stream.codec_context.gop_size = encoding.gop
        stream.codec_context.time_base = self._time_base
        stream.codec_context.thread_count = threads
        self._stream = stream

    @property
    def frames(self) -> int:
        """Number of frames taken so far."""
        return self._frames

    def add(self, rgb: NDArray[np.uint8]) -> None:
        """Encode the next frame, uint8 ``(H, W, 3)``.

        Raises:
            DatasetError: Another size or type, or the disk is full.

        """
        if rgb.shape != self._shape or rgb.dtype != np.uint8:
            msg = (
                f"frame {self._frames} for {self._path.name} is {rgb.dtype} {rgb.shape}, "
                f"but the dataset's camera is uint8 {self._shape}: one camera has one resolution"
            )
            raise DatasetError(msg)
        frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(rgb), format="rgb24")
        frame.pts, frame.time_base = self._frames, self._time_base
        self._encode(frame)
        self._frames += 1

    def close(self) -> None:
        """Write what the encoder still holds and the index of the file."""
        try:
            if self._frames:
                self._encode(None)
            self._container.close()
        except av.error.FFmpegError as error:
            raise self._failed(error) from error

    def abandon(self) -> None:
        """Close the file without caring for what is in it: it is about to be deleted."""
        with contextlib.suppress(av.error.FFmpegError):
            self._container.close()

    def __enter__(self) -> VideoWriter:
        """Return the writer."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the file."""
        self.close()

    def _encode(self, frame: av.VideoFrame | None) -> None:
        try:
            for packet in self._stream.encode(frame):
                self._container.mux(packet)
        except av.error.FFmpegError as error:
            raise self._failed(error) from error

    def _failed(self, error: av.error.FFmpegError) -> DatasetError:
        if isinstance(error, OSError):
            return unwritable(self._path, error)
        return DatasetError(f"{self._path} cannot be encoded: {error}")
