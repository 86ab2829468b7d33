"""Trials of reaching: whether the arm's tip came to the target and stayed, and what many trials come to."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from statistics import median

import numpy as np

from groot_ros.demo.arm import PlanarArm, Vector

TOLERANCE_OF_REACH = 0.03
DWELL_S = 0.5
NANOSECONDS = 1_000_000_000


@dataclass(frozen=True)
class Trial:
    """One trial.

    Attributes:
        seed: Of the episode: its target and the arm's start.
        target_m: The target's centre, metres.
        reached_after_s: When the tip came within the tolerance to stay for the dwell; None where it did not.
        closest_of_reach: Smallest distance from tip to target, as a share of the arm's reach.
        last_of_reach: The distance at the end.

    """

    seed: int
    target_m: tuple[float, float]
    reached_after_s: float | None
    closest_of_reach: float
    last_of_reach: float


class ReachJudge:
    """Judges one trial by the measured joints.

    Args:
        arm: The arm.
        target: The target's centre ``(2,)``, metres.
        begin_ns: When the policy was enabled; what was measured before does not count.

    """

    def __init__(self, arm: PlanarArm, target: Vector, begin_ns: int) -> None:
        self._arm = arm
        self._target = target
        self._begin_ns = begin_ns
        self._within_since_ns: int | None = None
        self._closest = self._last = float("inf")
        self.reached_after_s: float | None = None

    def hear(self, stamp_ns: int, positions: Vector) -> None:
        """Take one measurement ``(joints + 1,)`` rad."""
        if stamp_ns < self._begin_ns or self.reached_after_s is not None:
            return
        self._last = float(np.hypot(*(self._arm.tip(positions) - self._target))) / self._arm.reach_m
        self._closest = min(self._closest, self._last)
        if self._last > TOLERANCE_OF_REACH:
            self._within_since_ns = None
            return
        if self._within_since_ns is None:
            self._within_since_ns = stamp_ns
        if stamp_ns - self._within_since_ns >= DWELL_S * NANOSECONDS:
            self.reached_after_s = (self._within_since_ns - self._begin_ns) / NANOSECONDS

    def trial(self, seed: int) -> Trial:
        """What it came to."""
        x, y = (float(value) for value in self._target)
        return Trial(seed, (x, y), self.reached_after_s, self._closest, self._last)


@dataclass(frozen=True)
class TrialsReport:
    """Many trials.

    Attributes:
        checkpoint: What moved the arm.
        scene: ``own``, or ``other``: the cameras showed another target than the arm had to reach.
        limit_s: How long a trial might take.
        trials: All of them.

    """

    checkpoint: str
    scene: str
    limit_s: float
    trials: tuple[Trial, ...]

    @property
    def reached(self) -> int:
        """Trials in which the target was reached."""
        return sum(trial.reached_after_s is not None for trial in self.trials)

    def as_json(self) -> dict[str, object]:
        """Plain values for ``trials.json``."""
        return {
            "checkpoint": self.checkpoint,
            "scene": self.scene,
            "reached": self.reached,
            "of": len(self.trials),
            "tolerance_of_reach": TOLERANCE_OF_REACH,
            "dwell_s": DWELL_S,
            "limit_s": self.limit_s,
            "trials": [asdict(trial) for trial in self.trials],
        }

    def rows(self) -> list[tuple[str, str]]:
        """Label and value of each line of the table."""
        times = [trial.reached_after_s for trial in self.trials if trial.reached_after_s is not None]
        last = sorted(trial.last_of_reach for trial in self.trials)
        return [
            ("scene", "the arm's own" if self.scene == "own" else "of another target"),
            ("reached", f"{self.reached} of {len(self.trials)} ({self.reached / len(self.trials):.0%})"),
            ("that is", f"within {TOLERANCE_OF_REACH:.0%} of the arm's reach for {DWELL_S:g} s"),
            ("after", f"median {median(times):.1f} s, at most {max(times):.1f} s" if times else "-"),
            ("distance at the end", f"median {median(last):.1%} of the reach, largest {last[-1]:.1%}"),
            ("missed", ", ".join(str(one.seed) for one in self.trials if one.reached_after_s is None) or "none"),
        ]
