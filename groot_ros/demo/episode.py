"""One trial of the demo robot: where its target lies and where its arm begins, by seed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from groot_ros.demo.arm import PlanarArm, Vector

TARGET_RADIUS_OF_REACH = (0.40, 0.93)
TARGET_ANGLE_DEG = (30.0, 150.0)
HOME_RAD = 1.0


@dataclass(frozen=True)
class Episode:
    """The random part of a trial.

    Attributes:
        seed: What it was drawn from; the same seed gives the same episode.
        target: Position ``(2,)`` of the target's centre, metres.
        start: Joint positions ``(joints + 1,)`` at the beginning, rad, the gripper (open) last.

    """

    seed: int
    target: Vector
    start: Vector


def home(arm: PlanarArm) -> Vector:
    """The posture that episodes begin around, ``(joints + 1,)`` rad: bent to the left, gripper open."""
    bent = np.full(len(arm.joints), HOME_RAD)
    return np.append(bent, arm.upper[-1])


def draw_episode(arm: PlanarArm, seed: int, start_spread_rad: float = 0.3) -> Episode:
    """Draw a target that the arm can reach and a start posture at most ``start_spread_rad`` a joint from home."""
    random = np.random.default_rng(seed)
    radius = arm.reach_m * random.uniform(*TARGET_RADIUS_OF_REACH)
    angle = np.radians(random.uniform(*TARGET_ANGLE_DEG))
    start = home(arm)
    start[:-1] += random.uniform(-start_spread_rad, start_spread_rad, size=len(arm.joints))
    target = radius * np.array([np.cos(angle), np.sin(angle)])
    return Episode(seed, target, np.clip(start, arm.lower, arm.upper))
