"""Colour jitter on uint8 frames: the arithmetic of albumentations 1.4.18, whose tables round down."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

Frame = NDArray[np.uint8]
LEVELS = 256
HUES = 180  # OpenCV's hue of uint8 images: half degrees


@dataclass(frozen=True)
class ColorJitter:
    """What was drawn for one sample: the same for all of its frames.

    Attributes:
        brightness: Factor; 1 changes nothing.
        contrast: Factor around the frame's mean grey; 1 changes nothing.
        saturation: Factor around the frame's grey; 1 changes nothing.
        hue: Turn of the colour circle, -0.5 to 0.5; 0 changes nothing.
        order: In which order the four are done, by their places in this list.

    """

    brightness: float
    contrast: float
    saturation: float
    hue: float
    order: tuple[int, ...]

    def __call__(self, frame: Frame) -> Frame:
        """The frame ``(H, W, 3)`` in other colours."""
        steps = (
            (_brighten, self.brightness),
            (_contrast, self.contrast),
            (_saturate, self.saturation),
            (_turn_hue, self.hue),
        )
        for place in self.order:
            change, amount = steps[place]
            frame = change(frame, amount)
        return frame


def _brighten(frame: Frame, factor: float) -> Frame:
    return _by_table(frame, np.arange(LEVELS, dtype=np.float32) * np.float32(factor))


def _contrast(frame: Frame, factor: float) -> Frame:
    if factor == 1.0:
        return frame
    mean = float(cv2.cvtColor(frame, cv2.COLOR_RGB2GRAY).mean())
    if factor == 0.0:
        return np.full_like(frame, int(mean + 0.5))
    return _by_table(
        frame, np.arange(LEVELS, dtype=np.float32) * np.float32(factor) + np.float32(mean * (1.0 - factor))
    )


def _saturate(frame: Frame, factor: float) -> Frame:
    if factor == 1.0:
        return frame
    grey = cv2.cvtColor(cv2.cvtColor(frame, cv2.COLOR_RGB2GRAY), cv2.COLOR_GRAY2RGB)
    return np.asarray(cv2.addWeighted(frame, factor, grey, 1.0 - factor, 0.0), dtype=np.uint8)


def _turn_hue(frame: Frame, turn: float) -> Frame:
    if turn == 0.0:
        return frame
    colours = cv2.cvtColor(frame, cv2.COLOR_RGB2HSV)
    table = np.mod(np.arange(LEVELS, dtype=np.int16) + HUES * turn, HUES).astype(np.uint8)
    colours[..., 0] = cv2.LUT(np.ascontiguousarray(colours[..., 0]), table)
    return np.asarray(cv2.cvtColor(colours, cv2.COLOR_HSV2RGB), dtype=np.uint8)


def _by_table(frame: Frame, table: NDArray[np.float32]) -> Frame:
    return np.asarray(cv2.LUT(frame, np.clip(table, 0, LEVELS - 1).astype(np.uint8)), dtype=np.uint8)
