"""The images of one training sample: shrink, crop where it was drawn, enlarge, turn, jitter; all draws are given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from groot_ros.processing.geometry import CropBox, ImageGeometry
from groot_ros.training.color_jitter import ColorJitter

Frames = NDArray[np.uint8]

_FRACTION_BITS = 10
_PLACE_BITS = 5
_PLACE_MASK = (1 << _PLACE_BITS) - 1
_HALF_PLACE = 1 << (_FRACTION_BITS - _PLACE_BITS - 1)


@dataclass(frozen=True)
class CropPlace:
    """Where a crop lies: shares of the free rows and columns, 0 to below 1."""

    down: float
    across: float

    def box(self, geometry: ImageGeometry, height: int, width: int) -> CropBox:
        """The box in a shrunk image of that size: every place that the crop fits in is as likely as the others."""
        crop_height, crop_width = geometry.crop_size(height, width)
        top = int((height - crop_height + 1) * self.down)
        left = int((width - crop_width + 1) * self.across)
        return CropBox(top, left, crop_height, crop_width)


@dataclass(frozen=True)
class ImageDraws:
    """What was drawn for the images of one sample.

    Attributes:
        crops: One place for all frames of all cameras (cv2 geometry); or one for each frame, time step by time step
            and in each the cameras in order (torch geometry). A place that is known already may be a box.
        rotation_deg: Turn of all frames, counterclockwise; 0 for none.
        jitter: Change of colours, the same for all frames; None for none.

    """

    crops: tuple[CropPlace | CropBox, ...]
    rotation_deg: float = 0.0
    jitter: ColorJitter | None = None


def augmented(cameras: Sequence[Frames], geometry: ImageGeometry, draws: ImageDraws) -> tuple[Frames, ...]:
    """Shape the frames of one sample by its draws.

    Args:
        cameras: For each camera its frames ``(T, H, W, 3)``.
        geometry: The checkpoint's.
        draws: What was drawn.

    Returns:
        For each camera its frames ``(T, h, w, 3)``.

    """
    shrunk = [geometry.shrink(frames) for frames in cameras]
    boxes = crop_boxes(shrunk, geometry, draws.crops)
    return tuple(
        np.stack([_shape(frame, box, geometry, draws) for frame, box in zip(frames, row, strict=True)])
        for frames, row in zip(shrunk, boxes, strict=True)
    )


def crop_boxes(
    shrunk: Sequence[Frames], geometry: ImageGeometry, places: Sequence[CropPlace | CropBox]
) -> list[list[CropBox]]:
    """The box of every frame, by camera and time step.

    A single place is turned into a box once, in the first camera, and the very same box serves the others: that is what
    replaying it means in the original, also where a camera ends a pixel larger.
    """
    steps, count = len(shrunk[0]), len(shrunk)
    if len(places) == 1:
        box = _box(places[0], geometry, shrunk[0])
        return [[box] * steps for _ in shrunk]
    return [
        [_box(places[step * count + camera], geometry, shrunk[camera]) for step in range(steps)]
        for camera in range(count)
    ]


def _box(place: CropPlace | CropBox, geometry: ImageGeometry, shrunk: Frames) -> CropBox:
    return place if isinstance(place, CropBox) else place.box(geometry, *shrunk.shape[1:3])


def rotated(frame: Frames, degrees: float) -> Frames:
    """Turn a frame ``(H, W, 3)`` around its middle, linearly interpolated; the border is a mirror.

    The places are whole 1/32 of a pixel, as in OpenCV until 4.11: newer releases of ``warpAffine`` compute them in
    float, which moves values by up to 3 levels.
    """
    height, width = frame.shape[:2]
    turn = cv2.getRotationMatrix2D((width / 2 - 0.5, height / 2 - 0.5), degrees, 1.0)
    back = cv2.invertAffineTransform(turn)
    columns, rows = np.arange(width), np.arange(height)
    places = [
        _fixed(line[0] * columns)[None, :] + _fixed(line[1] * rows + line[2])[:, None] + _HALF_PLACE for line in back
    ]
    across, down = (place >> (_FRACTION_BITS - _PLACE_BITS) for place in places)
    pixels = np.stack([across >> _PLACE_BITS, down >> _PLACE_BITS], axis=-1).astype(np.int16)
    fractions = ((down & _PLACE_MASK) * (_PLACE_MASK + 1) + (across & _PLACE_MASK)).astype(np.uint16)
    turned = cv2.remap(frame, pixels, fractions, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT_101)
    return np.asarray(turned, dtype=np.uint8)


def _fixed(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Places as whole numbers of 1/1024 of a pixel, half to even."""
    return np.rint(values * (1 << _FRACTION_BITS)).astype(np.int64)


def _shape(frame: Frames, box: CropBox, geometry: ImageGeometry, draws: ImageDraws) -> Frames:
    shaped = geometry.enlarge(box.cut(frame[None]))[0]
    if draws.rotation_deg:
        shaped = rotated(shaped, draws.rotation_deg)
    return draws.jitter(shaped) if draws.jitter is not None else shaped
