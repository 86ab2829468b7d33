"""What the demo robot's cameras see, drawn straight into an image message's bytes."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import cv2
import numpy as np
from numpy.typing import NDArray

from groot_ros.demo.arm import PlanarArm, Vector

TARGET_RADIUS_M = 0.08
GRID_M = 0.25
TABLE_RGB = (226, 222, 214)
GRID_RGB = (206, 201, 192)
LINK_RGB = (58, 84, 122)
JOINT_RGB = (34, 46, 66)
GRIPPER_RGB = (40, 120, 96)
TARGET_RGB = (208, 38, 34)
SUBPIXEL_BITS = 4
EDGE_PX = 128

Frame = NDArray[np.uint8]


@dataclass(frozen=True)
class View:
    """Where a camera looks.

    Attributes:
        visible_m: Height of the table in the picture, metres.
        middle_m: What lies in the middle of the picture, from the base or, on the gripper, from the tip, metres.
        on_gripper: The camera is fixed to the last link: the tip is the middle, and the link points up.

    """

    visible_m: float
    middle_m: tuple[float, float]
    on_gripper: bool


VIEWS = {
    "front": View(visible_m=2.0, middle_m=(0.0, 0.4), on_gripper=False),
    "wrist": View(visible_m=0.9, middle_m=(0.0, 0.0), on_gripper=True),
}


class Scene:
    """The arm and its target as one camera sees them."""

    def __init__(self, arm: PlanarArm, view: View, width: int = EDGE_PX, height: int = EDGE_PX) -> None:
        self.arm = arm
        self.view = view
        self.width = width
        self.height = height
        self.pixels_per_m = height / view.visible_m
        self._table = self._draw_table()

    def draw(self, positions: Vector, target: Vector, frame: Frame) -> None:
        """Draw into ``frame`` ``(height, width, 3)`` uint8 RGB.

        Args:
            positions: Joint positions ``(joints + 1,)``, rad, the gripper last.
            target: Centre of the target ``(2,)``, metres.
            frame: Where to draw; every pixel is written.

        """
        np.copyto(frame, self._table)
        points = self.arm.points(positions)
        tip, direction = points[-1], points[-1] - points[-2]
        direction = direction / np.hypot(*direction)
        self._disc(frame, self._pixels(target, tip, direction), TARGET_RADIUS_M, TARGET_RGB)
        for begin, end in pairwise(points):
            self._bar(frame, self._pixels(np.stack([begin, end]), tip, direction), 0.03, LINK_RGB)
        for point in points[:-1]:
            self._disc(frame, self._pixels(point, tip, direction), 0.03, JOINT_RGB)
        side = np.array([-direction[1], direction[0]])
        half_opening = 0.02 + 0.05 * positions[-1]
        palm = tip + np.outer([-half_opening, half_opening], side)
        self._bar(frame, self._pixels(palm, tip, direction), 0.02, GRIPPER_RGB)
        for finger in (-side, side):
            root = tip + half_opening * finger
            self._bar(frame, self._pixels(np.stack([root, root + 0.06 * direction]), tip, direction), 0.02, GRIPPER_RGB)

    def _draw_table(self) -> Frame:
        table = np.full((self.height, self.width, 3), TABLE_RGB, np.uint8)
        if not self.view.on_gripper:
            step = self.pixels_per_m * GRID_M
            table[:, np.arange(self.width / 2 % step, self.width, step).astype(int)] = GRID_RGB
            table[np.arange(self.height / 2 % step, self.height, step).astype(int)] = GRID_RGB
        return table

    def _pixels(self, points: Vector, tip: Vector, direction: Vector) -> Vector:
        """Points ``(..., 2)`` in metres as pixels ``(..., 2)``, x to the right and y down."""
        if self.view.on_gripper:
            along, across = direction, np.array([direction[1], -direction[0]])
            relative = points - tip
            points = np.stack([relative @ across, relative @ along], axis=-1)
        middle = np.array([self.width / 2, self.height / 2])
        pixels: Vector = middle + (points - self.view.middle_m) * np.array([self.pixels_per_m, -self.pixels_per_m])
        return pixels

    def _disc(self, frame: Frame, centre: Vector, radius_m: float, colour: tuple[int, int, int]) -> None:
        scale = 1 << SUBPIXEL_BITS
        radius = round(radius_m * self.pixels_per_m * scale)
        cv2.circle(frame, np.rint(centre * scale).astype(int).tolist(), radius, colour, cv2.FILLED, shift=SUBPIXEL_BITS)

    def _bar(self, frame: Frame, ends: Vector, width_m: float, colour: tuple[int, int, int]) -> None:
        along = ends[1] - ends[0]
        side = np.array([-along[1], along[0]]) / np.hypot(*along) * width_m * self.pixels_per_m / 2
        corners = np.stack([ends[0] + side, ends[1] + side, ends[1] - side, ends[0] - side])
        scale = 1 << SUBPIXEL_BITS
        cv2.fillConvexPoly(frame, np.rint(corners * scale).astype(np.int32), colour, shift=SUBPIXEL_BITS)
