"""What the videos of an episode tell: frame by frame, whether each is there, and whether the picture ever changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import cv2
import numpy as np
from numpy.typing import NDArray

from groot_ros.dataset.quality.finding import Finding, Severity
from groot_ros.dataset.quality.rows import TIME_TOLERANCE_S
from groot_ros.dataset.reader import Dataset
from groot_ros.dataset.video_reader import VideoReader
from groot_ros.errors import DatasetError

QUICK_FRAMES = 16
_GRID_STEP = 8  # pixels between those that are compared
_SAME_PICTURE = 0.02  # mean difference of two decoded frames, in levels of 255, that no camera stays below
_NO_MOTION = (
    1.5  # the same against the first frame: above a camera's noise after compression, below anything that moves
)
_LONGEST_STILL_S = 1.0
_THUMBNAIL_WIDTH = 160


@dataclass
class CameraFacts:
    """What was seen of one camera in one episode.

    Attributes:
        episode: Episode index.
        feature: Video feature.
        findings: What is wrong.
        thumbnails: Small pictures from the start, the middle and the end, as JPEG files.
        size: Height and width; None where the video could not be opened.

    """

    episode: int
    feature: str
    findings: list[Finding] = field(default_factory=list)
    thumbnails: list[bytes] = field(default_factory=list)
    size: tuple[int, int] | None = None

    def add(self, severity: Severity, check: str, sentence: str) -> None:
        """Note what is wrong."""
        self.findings.append(Finding(severity, check, self.feature, sentence, (self.episode,)))


def look_at_video(dataset: Dataset, episode: int, feature: str, *, quick: bool) -> CameraFacts:
    """Decode a camera's frames of an episode and say what is wrong with them.

    Args:
        dataset: The dataset.
        episode: Episode index.
        feature: Video feature.
        quick: Decode a few frames only.

    """
    facts = CameraFacts(episode, feature)
    length = dataset.episodes[episode].length
    try:
        video, first = dataset.feature_video(episode, feature)
        facts.size = video.size
        declared = tuple(dataset.info.features[feature]["shape"])[:2]
        if declared != video.size and declared[:2] != (3, video.size[0]):
            facts.add(
                Severity.ERROR,
                "resolution",
                f"info.json says {declared[1]}x{declared[0]}, but the video is {video.size[1]}x{video.size[0]}",
            )
        there = video.frame_count - first
        own_file = feature not in dataset.episodes[episode].video_starts_s
        if there < length or (own_file and there != length):
            facts.add(Severity.ERROR, "frames", f"{there} frames in {video.path.name}, but {length} rows")
        times = video.times()[first : first + length]
        if (
            len(times)
            and (np.abs(times - times[0] - np.arange(len(times)) / dataset.info.fps) > TIME_TOLERANCE_S).any()
        ):
            facts.add(
                Severity.ERROR,
                "frames",
                f"the frame rate is not constant at {dataset.info.fps:g} a second: LeRobot will not find the frames",
            )
        count = min(length, there)
        rows = np.unique(np.linspace(0, count - 1, QUICK_FRAMES).astype(int)) if quick else np.arange(count)
        _compare_frames(dataset, facts, _frames(video, first, rows), rows)
    except DatasetError as error:
        facts.add(Severity.ERROR, "video", str(error))
    return facts


def _frames(video: VideoReader, first: int, rows: NDArray[np.int64]) -> Iterator[NDArray[np.uint8]]:
    for row in rows:
        yield video.read([first + int(row)])[0]


def _jpeg(frame: NDArray[np.uint8]) -> bytes:
    step = max(1, frame.shape[1] // _THUMBNAIL_WIDTH)
    _, encoded = cv2.imencode(".jpg", np.ascontiguousarray(frame[::step, ::step, ::-1]))
    return encoded.tobytes()


def _compare_frames(
    dataset: Dataset, facts: CameraFacts, frames: Iterator[NDArray[np.uint8]], rows: NDArray[np.int64]
) -> None:
    """Decode all frames and look for a picture that stands still or has one colour only."""
    wanted = {int(rows[place]) for place in (0, len(rows) // 2, len(rows) - 1)} if len(rows) else set()
    first: NDArray[np.int16] | None = None
    before: NDArray[np.int16] | None = None
    spread = largest = 0.0
    still = longest = 0
    for row, frame in zip(rows, frames, strict=True):
        if int(row) in wanted:
            facts.thumbnails.append(_jpeg(frame))
        grid = frame[::_GRID_STEP, ::_GRID_STEP].astype(np.int16)
        spread = max(spread, float(np.ptp(grid)))
        if first is None or before is None:
            first = before = grid
            continue
        largest = max(largest, float(np.abs(grid - first).mean()))
        still = still + 1 if float(np.abs(grid - before).mean()) < _SAME_PICTURE else 0
        longest = max(longest, still)
        before = grid
    if first is None or len(rows) < 2:
        return
    if spread < 8:
        facts.add(Severity.ERROR, "frozen camera", "one colour only: a covered lens or a broken stream")
    elif largest < _NO_MOTION:
        facts.add(
            Severity.WARNING,
            "frozen camera",
            f"the picture never changes (by at most {largest:.1f} of 255 levels): a stuck stream, or nothing happened",
        )
    elif len(rows) == int(rows[-1]) + 1 and longest / dataset.info.fps > _LONGEST_STILL_S:
        facts.add(
            Severity.WARNING,
            "frozen camera",
            f"the same picture for {longest / dataset.info.fps:.1f} s: the stream was stuck, or nothing happened",
        )
