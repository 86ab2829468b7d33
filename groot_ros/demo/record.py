"""What the demo hears while it runs, as plain arrays: the joints, the chunks, and the node's own figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from groot_ros.demo.arm import Vector
from groot_ros.demo.trajectory_message import Trajectory, time_ns
from groot_ros.demo.trials import Trial


@dataclass(frozen=True)
class HeardChunk:
    """A published chunk for the arm's joints.

    Attributes:
        received_ns: When it was heard.
        times_ns: When each row is due, integer ``(H,)``.
        rows: Positions ``(H, joints)``, rad; NaN for a joint that the chunk does not name.

    """

    received_ns: int
    times_ns: Vector
    rows: Vector


@dataclass
class DemoRecord:
    """All that was heard between enabling and disabling the policy.

    Attributes:
        joints: Names of the joints, in the order of all columns.
        begin_ns: When the policy was enabled.
        measured: Stamp and positions ``(joints,)`` of every joint state.
        targets: When each target appeared, and its centre ``(2,)``, metres.
        trials: What became of each target.
        chunks: Every published chunk.
        held_ns: When the policy said that it held the robot, or had held it since it last spoke.
        trajectories: Number of trajectories that the controller was sent.
        policy: The policy's newest figures, as its diagnostics say them; counters run since it was started.
        policy_before: The same when the record began.
        controller: The controller's newest figures.

    """

    joints: tuple[str, ...]
    begin_ns: int
    measured: list[tuple[int, Vector]] = field(default_factory=list)
    targets: list[tuple[int, Vector]] = field(default_factory=list)
    trials: list[Trial] = field(default_factory=list)
    chunks: list[HeardChunk] = field(default_factory=list)
    held_ns: list[int] = field(default_factory=list)
    trajectories: int = 0
    policy: dict[str, str] = field(default_factory=dict)
    policy_before: dict[str, str] = field(default_factory=dict)
    controller: dict[str, str] = field(default_factory=dict)

    def count(self, key: str) -> int:
        """How much a counter of the policy rose since the record began."""
        return int(self.policy.get(key, 0)) - int(self.policy_before.get(key, 0))

    def counts(self, prefix: str) -> dict[str, int]:
        """What rose of the counters ``<prefix><name>``, by name."""
        rises = {key[len(prefix) :]: self.count(key) for key in self.policy if key.startswith(prefix)}
        return {name: rise for name, rise in rises.items() if rise}

    def hear_status(self, figures: Mapping[str, str], received_ns: int) -> None:
        """Keep the policy's figures, and whether the robot was held."""
        before = _holds(self.policy)
        self.policy.update(figures)
        if figures.get("holding") or _holds(self.policy) != before:
            self.held_ns.append(received_ns)

    def hear_chunk(self, message: Trajectory, received_ns: int) -> None:
        """Keep a chunk, whose dimensions are named ``<key>/<joint>``."""
        columns = {name.rsplit("/", 1)[-1]: column for column, name in enumerate(message.joint_names)}
        begin_ns = time_ns(message.header.stamp)
        rows = np.full((len(message.points), len(self.joints)), np.nan)
        for index, name in enumerate(self.joints):
            if name in columns:
                rows[:, index] = [point.positions[columns[name]] for point in message.points]
        times = np.array([begin_ns + time_ns(point.time_from_start) for point in message.points])
        self.chunks.append(HeardChunk(received_ns, times, rows))


def _holds(figures: Mapping[str, str]) -> int:
    return sum(int(value) for key, value in figures.items() if key.startswith("holds."))
