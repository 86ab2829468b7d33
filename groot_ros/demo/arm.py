"""The demo robot's arm: names, lengths, limits, and its planar kinematics."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from groot_ros.errors import GrootError

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class JointLimits:
    """What one joint can do.

    Attributes:
        lower: Smallest position, rad.
        upper: Largest position, rad.
        velocity: Largest speed, rad/s.

    """

    lower: float
    upper: float
    velocity: float


@dataclass(frozen=True)
class PlanarArm:
    """A chain of revolute joints in a plane with a gripper at its end; the base is the origin.

    Joint 0 turns the first link from the x axis; each further joint turns its link from the link before.

    Attributes:
        joints: Names of the revolute joints, from the base on.
        links_m: Length of the link after each joint, metres.
        gripper: Name of the gripper joint (0 is closed).
        limits: Limits of every joint by name, the gripper's included.

    """

    joints: tuple[str, ...]
    links_m: tuple[float, ...]
    gripper: str
    limits: dict[str, JointLimits]

    def __post_init__(self) -> None:
        """Refuse an arm whose parts do not belong together."""
        if len(self.joints) != len(self.links_m):
            msg = f"the arm has joints {list(self.joints)} but {len(self.links_m)} links: give one link length a joint"
            raise GrootError(msg)
        if missing := [name for name in self.names if name not in self.limits]:
            msg = f"the arm's joints {missing} have no limits: give lower, upper and velocity for each"
            raise GrootError(msg)

    @property
    def names(self) -> tuple[str, ...]:
        """All joint names, the gripper last: the order of every vector of this package."""
        return (*self.joints, self.gripper)

    @property
    def reach_m(self) -> float:
        """Distance from the base to the tip of the stretched arm, metres."""
        return sum(self.links_m)

    @property
    def lower(self) -> Vector:
        """Smallest positions in the order of ``names``, rad."""
        return np.array([self.limits[name].lower for name in self.names])

    @property
    def upper(self) -> Vector:
        """Largest positions in the order of ``names``, rad."""
        return np.array([self.limits[name].upper for name in self.names])

    @property
    def velocity(self) -> Vector:
        """Largest speeds in the order of ``names``, rad/s."""
        return np.array([self.limits[name].velocity for name in self.names])

    def points(self, positions: Vector) -> Vector:
        """Base, inner joints and tip as ``(links + 1, 2)`` metres, from joint positions (the gripper's may follow)."""
        angles = np.cumsum(positions[: len(self.joints)])
        steps = np.asarray(self.links_m)[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=1)
        return np.concatenate([np.zeros((1, 2)), np.cumsum(steps, axis=0)])

    def tip(self, positions: Vector) -> Vector:
        """Position ``(2,)`` of the tip in metres."""
        tip: Vector = self.points(positions)[-1]
        return tip

    def reach_for(self, target: Vector, start: Vector, steps: int = 200) -> Vector:
        """Joint positions ``(joints,)`` whose tip is at ``target`` ``(2,)``, found from ``start`` within the limits.

        Damped least squares, so that any number of joints works and the same start gives the same branch.
        """
        count = len(self.joints)
        lower, upper = self.lower[:count], self.upper[:count]
        positions = np.array(start[:count], dtype=np.float64)
        for _ in range(steps):
            points = self.points(positions)
            error = target - points[-1]
            if float(np.hypot(*error)) < 1e-9:
                break
            arms = points[-1] - points[:-1]
            jacobian = np.stack([-arms[:, 1], arms[:, 0]])
            damped = jacobian @ jacobian.T + 1e-3 * np.eye(2)
            positions = np.clip(positions + jacobian.T @ np.linalg.solve(damped, error), lower, upper)
        return positions


def demo_arm(joints: tuple[str, ...] = ("shoulder", "elbow"), links_m: tuple[float, ...] = (0.5, 0.5)) -> PlanarArm:
    """The arm of ``make demo``; other joints and links keep its limits (the first joint's, then the elbow's)."""
    first, inner, gripper = JointLimits(-1.0, 3.0, 2.0), JointLimits(-2.6, 2.6, 2.0), JointLimits(0.0, 0.8, 2.0)
    limits = {name: first if index == 0 else inner for index, name in enumerate(joints)}
    return PlanarArm(joints, links_m, "gripper", {**limits, "gripper": gripper})
