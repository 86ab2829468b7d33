"""The demo robot's motors: each joint follows its command with a first-order lag, within speed and position limits."""

from __future__ import annotations

import numpy as np

from groot_ros.demo.arm import PlanarArm, Vector
from groot_ros.errors import GrootError

DEFAULT_LAG_S = 0.05


class ArmSimulation:
    """The state of the moving arm."""

    def __init__(self, arm: PlanarArm, start: Vector, lag_s: float = DEFAULT_LAG_S) -> None:
        """Begin at rest at ``start`` ``(joints + 1,)`` rad; ``lag_s`` is the time constant of every joint."""
        if lag_s <= 0.0:
            msg = f"the lag of the arm is {lag_s} s: it must be above 0"
            raise GrootError(msg)
        self.arm = arm
        self.lag_s = lag_s
        self.speed_limited = 0
        self.position_limited = 0
        self.reset(start)

    def reset(self, start: Vector) -> None:
        """Put the arm at ``start`` ``(joints + 1,)`` rad, at rest."""
        self.positions = np.array(start, dtype=np.float64)
        self.velocities = np.zeros_like(self.positions)

    def step(self, command: Vector, elapsed_s: float) -> None:
        """Move for ``elapsed_s`` towards the constant command ``(joints + 1,)`` rad: the exact solution of the lag."""
        if elapsed_s <= 0.0:
            return
        wanted = np.clip(command, self.arm.lower, self.arm.upper)
        self.position_limited += int(np.any(wanted != command))
        move = (wanted - self.positions) * -np.expm1(-elapsed_s / self.lag_s)
        longest = self.arm.velocity * elapsed_s
        self.speed_limited += int(np.any(np.abs(move) > longest))
        move = np.clip(move, -longest, longest)
        self.positions = self.positions + move
        self.velocities = move / elapsed_s
