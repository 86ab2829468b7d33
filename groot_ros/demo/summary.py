"""The demo's result: the figures for ``summary.json``, the same as a table, and whether it was a success."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

from groot_ros.demo.following import Following
from groot_ros.demo.record import DemoRecord

FEWEST_CHUNKS = 10


@dataclass(frozen=True)
class LatencyStage:
    """One stage of the way from capture to chunk, milliseconds."""

    stage: str
    p50_ms: float
    p95_ms: float


@dataclass(frozen=True)
class DemoSummary:
    """What a demo run came to.

    Attributes:
        duration_s: How long the policy was enabled.
        observations: Observations that were complete and handed to the policy.
        refusals: Observations and chunks that were refused, by reason.
        chunks: Chunks published.
        latency: From capture to chunk by stage.
        rows_executed: Rows of chunks that were sent to the robot in time.
        rows_expired: Rows that were past before they could be sent.
        trajectories_accepted: Trajectories that the robot's controller took.
        trajectories_rejected: Trajectories that it rejected.
        following_error_rad: Distance between the measured joints and what the chunks said, through the arm's lag (rms).
        motion_rad: How much the chunks moved the arm (rms).
        problems: Why the demo failed; empty after a success.

    """

    duration_s: float
    observations: int
    refusals: dict[str, int]
    chunks: int
    latency: list[LatencyStage]
    rows_executed: int
    rows_expired: int
    trajectories_accepted: int
    trajectories_rejected: int
    following_error_rad: float
    motion_rad: float
    problems: list[str]

    @property
    def success(self) -> bool:
        """Chunks flowed, and the robot did what they said."""
        return not self.problems

    def as_json(self) -> dict[str, object]:
        """Plain values for ``summary.json``."""
        return {"success": self.success, **asdict(self)}

    def rows(self) -> list[tuple[str, str]]:
        """Label and value of each line of the table."""
        refusals = [(f"refused: {reason}", str(count)) for reason, count in sorted(self.refusals.items())]
        latency = [
            (f"latency, {stage.stage}", f"p50 {stage.p50_ms:.1f} ms, p95 {stage.p95_ms:.1f} ms")
            for stage in self.latency
        ]
        return [
            ("observations", str(self.observations)),
            *(refusals or [("refusals", "none")]),
            ("chunks", f"{self.chunks} in {self.duration_s:.1f} s"),
            *latency,
            ("rows executed", str(self.rows_executed)),
            ("rows expired", str(self.rows_expired)),
            ("trajectories accepted / rejected", f"{self.trajectories_accepted} / {self.trajectories_rejected}"),
            ("distance to what the chunks said", f"{self.following_error_rad:.4f} rad rms"),
            ("motion that the chunks asked for", f"{self.motion_rad:.4f} rad rms"),
        ]


def summarise(record: DemoRecord, following: Following, duration_s: float) -> DemoSummary:
    """Count, measure and judge."""
    refusals = {
        key.split(":", 1)[1].strip(): int(value)
        for key, value in record.policy.items()
        if key.startswith("refused:") and int(value)
    }
    rejected = int(record.controller.get("rejected", 0))
    return DemoSummary(
        duration_s=duration_s,
        observations=int(record.policy.get("observations", 0)),
        refusals=refusals,
        chunks=len(record.chunks),
        latency=_latency(record.policy),
        rows_executed=int(record.policy.get("rows executed", 0)),
        rows_expired=int(record.policy.get("rows expired", 0)),
        trajectories_accepted=int(record.controller.get("accepted", 0)),
        trajectories_rejected=rejected,
        following_error_rad=following.error_rad,
        motion_rad=following.motion_rad,
        problems=_problems(record, following, rejected),
    )


def _latency(figures: dict[str, str]) -> list[LatencyStage]:
    stages = [
        key[len("latency ") : -len(" p50 ms")]
        for key in figures
        if key.startswith("latency ") and key.endswith(" p50 ms")
    ]
    return [
        LatencyStage(stage, float(figures[f"latency {stage} p50 ms"]), float(figures[f"latency {stage} p95 ms"]))
        for stage in stages
    ]


def _problems(record: DemoRecord, following: Following, rejected: int) -> list[str]:
    found = []
    if len(record.chunks) < FEWEST_CHUNKS:
        found.append(f"only {len(record.chunks)} chunks were published; at least {FEWEST_CHUNKS} were expected")
    if rejected:
        found.append(f"the controller rejected {rejected} trajectories: {record.controller.get('last rejection', '')}")
    if not np.isfinite(following.error_rad) or not following.followed:
        found.append(
            f"the robot did not do what the chunks said: its joints were {following.error_rad:.4f} rad (rms) away from "
            f"them, and the motion asked for was {following.motion_rad:.4f} rad"
        )
    return found
