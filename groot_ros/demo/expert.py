"""The demo robot's scripted expert: the leader arm of a teleoperator who sees the target and reaches for it."""

from __future__ import annotations

import numpy as np

from groot_ros.demo.arm import PlanarArm, Vector
from groot_ros.demo.episode import Episode, home

SHARE_PER_STEP = 0.4
STEP_S = 0.1
LARGEST_SPEED = 1.5
CLOSE_WITHIN_OF_REACH = 0.03


class ScriptedExpert:
    """Commands that bring the tip to the target and then close the gripper.

    They go 40 % of the remaining way each 0.1 s, at most 1.5 rad/s.
    """

    def __init__(self, arm: PlanarArm, target: Vector, start: Vector) -> None:
        """Begin with the commands at ``start`` ``(joints + 1,)`` rad; ``target`` is ``(2,)`` metres."""
        self.arm = arm
        self.target = np.array(target, dtype=np.float64)
        self.goal = arm.reach_for(self.target, home(arm))
        self.command = np.clip(np.array(start, dtype=np.float64), arm.lower, arm.upper)

    @classmethod
    def for_episode(cls, arm: PlanarArm, episode: Episode) -> ScriptedExpert:
        """The expert at the beginning of an episode."""
        return cls(arm, episode.target, episode.start)

    def step(self, elapsed_s: float) -> Vector:
        """Commands ``(joints + 1,)`` in rad after ``elapsed_s`` more seconds; the same path whatever the step."""
        share = 1.0 - (1.0 - SHARE_PER_STEP) ** (elapsed_s / STEP_S)
        near = np.hypot(*(self.arm.tip(self.command) - self.target)) <= CLOSE_WITHIN_OF_REACH * self.arm.reach_m
        goal = np.append(self.goal, self.arm.lower[-1] if near else self.arm.upper[-1])
        longest = LARGEST_SPEED * elapsed_s
        self.command = self.command + np.clip(share * (goal - self.command), -longest, longest)
        return self.command.copy()
