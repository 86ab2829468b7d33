"""Did the robot do what the published chunks said? The chunks through the arm's own lag, against what was measured."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from groot_ros.demo.arm import PlanarArm, Vector
from groot_ros.demo.record import DemoRecord, HeardChunk
from groot_ros.demo.simulation import DEFAULT_LAG_S, ArmSimulation
from groot_ros.observation import NANOSECONDS_PER_SECOND

LONGEST_GAP_S = 0.4
STATUS_PERIOD_S = 0.15  # the policy tells of a hold at most so much later
SETTLING_S = 0.8
SMALLEST_SHARE_COUNTED = 0.15
LARGEST_ERROR_OF_MOTION = 0.35


@dataclass(frozen=True)
class Following:
    """Measured joints against what the chunks said.

    While the policy's executor holds the robot, or chunks fail to come, what the last chunk said is rightly not done:
    that time, and the ramp after it, does not count. The start is such a ramp.

    Attributes:
        times_s: Seconds since the policy was enabled, ``(N,)``.
        counted: Whether chunks came in without a gap and no hold had been for a while, bool ``(N,)``.
        commanded: What the newest chunk says at that time, within the joints' limits, ``(N, joints)`` rad.
        expected: The same through the arm's lag, ``(N, joints)`` rad.
        measured: What the robot reported, ``(N, joints)`` rad.
        distance: From the tip to the target, ``(N,)``, as a share of the arm's reach; NaN where there was no target.

    """

    times_s: Vector
    counted: NDArray[np.bool_]
    commanded: Vector
    expected: Vector
    measured: Vector
    distance: Vector

    @property
    def share_counted(self) -> float:
        """Share of the time that counts."""
        return float(np.mean(self.counted)) if len(self.counted) else 0.0

    @property
    def error_rad(self) -> float:
        """Root mean square distance between expected and measured."""
        return _rms((self.expected - self.measured)[self.counted])

    @property
    def motion_rad(self) -> float:
        """Root mean square of the expected motion around its mean: the error of a robot that stands still there."""
        counted = self.expected[self.counted]
        return _rms(counted - counted.mean(axis=0)) if len(counted) else 0.0

    @property
    def followed(self) -> bool:
        """The robot moved, and as the chunks said: far nearer to them than standing still could be."""
        return self.motion_rad > 0.0 and self.error_rad <= LARGEST_ERROR_OF_MOTION * self.motion_rad


def follow(record: DemoRecord, arm: PlanarArm, lag_s: float = DEFAULT_LAG_S) -> Following:
    """Play the record's chunks to a model of the arm, from the first measured posture on."""
    measured = [(stamp, positions) for stamp, positions in record.measured if stamp >= record.begin_ns]
    if len(measured) < 2:
        nothing = np.zeros((0, len(record.joints)))
        return Following(np.zeros(0), np.zeros(0, np.bool_), nothing, nothing, nothing, np.zeros(0))
    simulation = ArmSimulation(arm, measured[0][1], lag_s)
    command, newest, last_ns = measured[0][1], -1, measured[0][0]
    commanded, expected = [], []
    for stamp_ns, _ in measured:
        while newest + 1 < len(record.chunks) and record.chunks[newest + 1].received_ns <= stamp_ns:
            newest += 1
        if newest >= 0:
            command = np.clip(_row_at(record.chunks[newest], stamp_ns, command), arm.lower, arm.upper)
        simulation.step(command, (stamp_ns - last_ns) / NANOSECONDS_PER_SECOND)
        last_ns = stamp_ns
        commanded.append(command)
        expected.append(simulation.positions)
    stamps = np.array([stamp for stamp, _ in measured])
    times_s = (stamps - record.begin_ns) / NANOSECONDS_PER_SECOND
    reported = np.stack([positions for _, positions in measured])
    distance = np.array([_distance(record, arm, stamp_ns, positions) for stamp_ns, positions in measured])
    return Following(times_s, _counted(record, stamps), np.stack(commanded), np.stack(expected), reported, distance)


def _distance(record: DemoRecord, arm: PlanarArm, stamp_ns: int, positions: Vector) -> float:
    shown = [target for begin_ns, target in record.targets if begin_ns <= stamp_ns]
    return float(np.hypot(*(arm.tip(positions) - shown[-1]))) / arm.reach_m if shown else float("nan")


def _counted(record: DemoRecord, stamps: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which samples come long enough after the last hold, gap in the chunks, or start."""
    never = np.iinfo(np.int64).max
    received = np.array([chunk.received_ns for chunk in record.chunks], np.int64)
    last_chunk = np.append(received, -1)[np.searchsorted(received, stamps, side="right") - 1]
    next_hold = np.append(np.array(record.held_ns, np.int64), never)[np.searchsorted(record.held_ns, stamps)]
    disturbed = stamps - last_chunk > LONGEST_GAP_S * NANOSECONDS_PER_SECOND
    disturbed |= next_hold - stamps <= STATUS_PERIOD_S * NANOSECONDS_PER_SECOND
    last_disturbed = np.maximum.accumulate(np.where(disturbed, stamps, stamps[0]))
    counted: NDArray[np.bool_] = stamps - last_disturbed >= SETTLING_S * NANOSECONDS_PER_SECOND
    return counted


def _row_at(chunk: HeardChunk, now_ns: int, before: Vector) -> Vector:
    """The chunk at ``now_ns``, between its rows, at its last row after its end; joints it does not name stay."""
    row = np.array([np.interp(now_ns, chunk.times_ns, chunk.rows[:, joint]) for joint in range(chunk.rows.shape[1])])
    return np.where(np.isnan(row), before, row)


def _rms(values: Vector) -> float:
    return float(np.sqrt(np.mean(values**2))) if values.size else 0.0
