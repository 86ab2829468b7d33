"""A short film of what the cameras saw, as an animated GIF."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

Frame = NDArray[np.uint8]

PICTURES_PER_S = 10
NANOSECONDS = 1_000_000_000
PAUSE_PICTURES = 5
GAP_PX = 6
COLOURS = 48
GAP_RGB = (255, 255, 255)


@dataclass(frozen=True)
class _Shot:
    stamp_ns: int
    frame: Frame


class Film:
    """Collects the frames of several scenes and lays the cameras side by side.

    Args:
        cameras: From left to right.
        height: Of the pictures, pixels.

    """

    def __init__(self, cameras: tuple[str, ...], height: int = 180) -> None:
        self._cameras = cameras
        self._height = height
        self._shots: list[dict[str, list[_Shot]]] = []

    def begin_scene(self) -> None:
        """What comes from now on belongs to another scene."""
        self._shots.append({camera: [] for camera in self._cameras})

    def add(self, camera: str, stamp_ns: int, frame: Frame) -> None:
        """Take a frame ``(H, W, 3)`` uint8 RGB into the scene under way; it is copied."""
        self._shots[-1][camera].append(_Shot(stamp_ns, frame.copy()))

    def pictures(self) -> list[Frame]:
        """The film, 10 pictures a second; the last picture of a scene stands still for a while."""
        found: list[Frame] = []
        for scene in self._shots:
            if not all(scene.values()):
                continue
            begin = max(shots[0].stamp_ns for shots in scene.values())
            end = min(shots[-1].stamp_ns for shots in scene.values())
            times = range(begin, end + 1, NANOSECONDS // PICTURES_PER_S)
            pictures = [np.concatenate(self._row(scene, time_ns), axis=1) for time_ns in times]
            found += pictures + [pictures[-1]] * PAUSE_PICTURES
        return found

    def write(self, path: Path) -> None:
        """Write the GIF.

        Raises:
            ValueError: No scene has frames of every camera.

        """
        from PIL import Image

        pictures = [Image.fromarray(picture) for picture in self.pictures()]
        if not pictures:
            msg = "the film is empty: no scene has frames of every camera"
            raise ValueError(msg)
        # One palette for all: the table must not flicker.
        palette = pictures[0].quantize(COLOURS)
        indexed = [picture.quantize(palette=palette) for picture in pictures]
        path.parent.mkdir(parents=True, exist_ok=True)
        indexed[0].save(path, save_all=True, append_images=indexed[1:], duration=1000 // PICTURES_PER_S, loop=0)

    def _row(self, scene: dict[str, list[_Shot]], time_ns: int) -> list[Frame]:
        """The newest frame of each camera at a time, scaled, with a gap between them."""
        row: list[Frame] = []
        for camera in self._cameras:
            shown = [shot.frame for shot in scene[camera] if shot.stamp_ns <= time_ns][-1]
            width = round(shown.shape[1] * self._height / shown.shape[0])
            if row:
                row.append(np.full((self._height, GAP_PX, 3), GAP_RGB, np.uint8))
            scaled = cv2.resize(shown, (width, self._height), interpolation=cv2.INTER_LINEAR)
            row.append(np.asarray(scaled, np.uint8))
        return row
