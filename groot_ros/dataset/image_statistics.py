"""Statistics of camera images: a histogram of pixel values, from which every number follows exactly."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groot_ros.dataset.video_reader import VideoReader

MOST_PIXELS = 20_000  # of one frame, on a regular grid: means over a grid hardly differ from means over all pixels


class ImageHistogram:
    """How often each of the 256 values occurs in each channel, over all frames."""

    def __init__(self) -> None:
        self.frames = 0
        self.counts: NDArray[np.int64] = np.zeros((3, 256), dtype=np.int64)

    def add(self, rgb: NDArray[np.uint8]) -> None:
        """Count the pixels of one frame, uint8 ``(H, W, 3)``, on a grid of at most about `MOST_PIXELS` of them."""
        stride = max(1, int(np.ceil(np.sqrt(rgb.shape[0] * rgb.shape[1] / MOST_PIXELS))))
        grid = rgb[::stride, ::stride]
        for channel in range(3):
            self.counts[channel] += np.bincount(grid[..., channel].ravel(), minlength=256)
        self.frames += 1

    def merge(self, other: ImageHistogram) -> None:
        """Count the frames of another histogram too."""
        self.frames += other.frames
        self.counts += other.counts

    def statistics(self) -> dict[str, Any]:
        """Return LeRobot's entry for a camera: values scaled to 0..1, each ``[[[r]], [[g]], [[b]]]``.

        ``count`` is the number of frames.
        """
        values = np.arange(256) / 255.0
        totals = self.counts.sum(axis=1)
        mean = self.counts @ values / totals
        std = np.sqrt(np.maximum(self.counts @ np.square(values) / totals - np.square(mean), 0.0))
        numbers = {
            "min": self._quantile(0.0),
            "max": self._quantile(1.0),
            "mean": mean,
            "std": std,
            "q01": self._quantile(0.01),
            "q10": self._quantile(0.10),
            "q50": self._quantile(0.50),
            "q90": self._quantile(0.90),
            "q99": self._quantile(0.99),
        }
        entry: dict[str, Any] = {name: [[[float(value)]] for value in channel] for name, channel in numbers.items()}
        entry["count"] = [self.frames]
        return entry

    def to_json(self) -> str:
        """Return the histogram as text."""
        return json.dumps({"frames": self.frames, "counts": self.counts.tolist()}, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> ImageHistogram:
        """Return the histogram that `to_json` wrote."""
        content = json.loads(text)
        histogram = cls()
        histogram.frames = content["frames"]
        histogram.counts = np.asarray(content["counts"], dtype=np.int64)
        return histogram

    def _quantile(self, quantile: float) -> NDArray[np.float64]:
        """Return the quantile per channel, interpolated linearly between neighbours as numpy does."""
        result = np.empty(3)
        for channel, counts in enumerate(self.counts):
            cumulative = np.cumsum(counts)
            position = quantile * (cumulative[-1] - 1)
            below, above = np.searchsorted(cumulative, [np.floor(position), np.ceil(position)], side="right")
            result[channel] = (below + (above - below) * (position - np.floor(position))) / 255.0
        return result


def video_histogram(path: Path) -> ImageHistogram:
    """Return the histogram of all frames of a video, which are decoded.

    Raises:
        DatasetError: The file is missing or not a video.

    """
    video = VideoReader(path)
    histogram = ImageHistogram()
    for number in range(video.frame_count):
        histogram.add(video.read([number])[0])
    video.close()
    return histogram
