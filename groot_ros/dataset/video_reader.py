"""Frames of a video file by their number, exactly."""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Sequence
from pathlib import Path

import av
import numpy as np
from av.video.reformatter import VideoReformatter
from numpy.typing import NDArray

from groot_ros.errors import DatasetError


class VideoReader:
    """One video file. Frame n is the n-th in order of presentation, whatever the file's time stamps are.

    Opening reads the index of the file and decodes nothing. A frame further on is reached by decoding on where that is
    nearer than its key frame, else by jumping to the key frame before it.

    Args:
        path: The file.

    Raises:
        DatasetError: The file is missing or not a video.

    """

    def __init__(self, path: Path) -> None:
        self._path = path
        if not path.is_file():
            msg = f"{path} is missing: the rows of its episode have no frames"
            raise DatasetError(msg)
        try:
            self._container = av.open(str(path))
            self._stream = self._container.streams.video[0]
            self._stamps, self._key_frames = self._read_index()
        except (av.error.FFmpegError, IndexError) as error:
            msg = f"{path} is not a video that can be read: {error}"
            raise DatasetError(msg) from error
        if not self._stamps:
            msg = f"{path} holds no frame"
            raise DatasetError(msg)
        self._to_rgb = VideoReformatter()  # one for all frames: to set it up takes longer than to convert a small frame
        self._frames: Iterator[av.VideoFrame] | None = None
        self._next = 0  # number of the frame that comes next out of the decoder

    @property
    def path(self) -> Path:
        """The file."""
        return self._path

    @property
    def frame_count(self) -> int:
        """Number of frames in the file."""
        return len(self._stamps)

    @property
    def size(self) -> tuple[int, int]:
        """Height and width in pixels."""
        return self._stream.codec_context.height, self._stream.codec_context.width

    def times(self) -> NDArray[np.float64]:
        """Return the presentation time of every frame in seconds, ``(N,)``."""
        return np.asarray(self._stamps, dtype=np.float64) * float(self._stream.time_base or 1)

    def number_at(self, seconds: float, tolerance_s: float) -> int:
        """Return the number of the frame that is shown at a time.

        Raises:
            DatasetError: No frame lies within the tolerance.

        """
        times = self.times()
        number = int(np.argmin(np.abs(times - seconds)))
        if abs(times[number] - seconds) > tolerance_s:
            msg = (
                f"{self._path}: no frame lies within {tolerance_s:.6f} s of {seconds:.6f} s; the nearest is frame "
                f"{number} at {times[number]:.6f} s"
            )
            raise DatasetError(msg)
        return number

    def read(self, numbers: Sequence[int]) -> NDArray[np.uint8]:
        """Return frames ``(len(numbers), H, W, 3)`` uint8 RGB, in the order asked for.

        Raises:
            DatasetError: A number beyond the file, or a frame that cannot be decoded.

        """
        for number in numbers:
            if not 0 <= number < self.frame_count:
                msg = f"{self._path} has {self.frame_count} frames, but frame {number} is asked for"
                raise DatasetError(msg)
        height, width = self.size
        images = np.empty((len(numbers), height, width, 3), dtype=np.uint8)
        decoded: dict[int, int] = {}  # a frame that is asked for twice is decoded once
        for place in np.argsort(numbers, kind="stable"):
            number = int(numbers[place])
            images[place] = images[decoded[number]] if number in decoded else self._decode(number)
            decoded.setdefault(number, int(place))
        return images

    def close(self) -> None:
        """Close the file."""
        self._container.close()

    def _read_index(self) -> tuple[list[int], list[int]]:
        packets = [
            (packet.pts, packet.is_keyframe)
            for packet in self._container.demux(self._stream)
            if packet.pts is not None and packet.size and not packet.is_discard
        ]
        packets.sort()
        return [stamp for stamp, _ in packets], [place for place, (_, is_key) in enumerate(packets) if is_key]

    def _decode(self, number: int) -> NDArray[np.uint8]:
        key = bisect.bisect_right(self._key_frames, number) - 1
        start = self._key_frames[key] if key >= 0 else 0
        try:
            if self._frames is None or number < self._next or start > self._next:
                self._seek(start)
            frame = self._advance_to(number)
            if frame is None and start > 0:  # the jump landed behind: decode from the beginning
                self._seek(0)
                frame = self._advance_to(number)
        except av.error.FFmpegError as error:
            self._frames = None
            msg = f"{self._path}: frame {number} cannot be decoded: {error}"
            raise DatasetError(msg) from error
        if frame is None:
            self._frames = None
            msg = f"{self._path}: frame {number} is in the file's index, but the decoder does not give it"
            raise DatasetError(msg)
        return np.asarray(self._to_rgb.reformat(frame, format="rgb24").to_ndarray(), dtype=np.uint8)

    def _seek(self, number: int) -> None:
        self._container.seek(self._stamps[number], stream=self._stream, backward=True)
        self._frames = self._container.decode(self._stream)
        self._next = number

    def _advance_to(self, number: int) -> av.VideoFrame | None:
        stamp = self._stamps[number]
        for frame in self._frames or ():
            if frame.pts is None or frame.pts < stamp:
                continue
            self._next = bisect.bisect_right(self._stamps, frame.pts)
            return frame if frame.pts == stamp else None
        return None
