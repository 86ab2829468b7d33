"""The demo's result: the figures for ``summary.json``, the same as a table, and whether it was a success."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from groot_ros.demo.following import SMALLEST_SHARE_COUNTED, Following
from groot_ros.demo.record import DemoRecord
from groot_ros.demo.trajectory_rules import RejectionReason

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
        holds: How often the policy's executor held the robot, by reason.
        clips: Commands that a position limit changed, by joint.
        trajectories_accepted: Trajectories that the robot's controller took.
        trajectories_rejected: Trajectories that it rejected.
        following_error_rad: Distance between the measured joints and what the chunks said, through the arm's lag (rms).
        motion_rad: How much the chunks moved the arm (rms).
        targets: Targets that there were to reach.
        targets_reached: Those of them that the arm's tip came to, and stayed at.
        problems: Why the demo failed; empty after a success.

    """

    duration_s: float
    observations: int
    refusals: dict[str, int]
    chunks: int
    latency: list[LatencyStage]
    rows_executed: int
    rows_expired: int
    holds: dict[str, int]
    clips: dict[str, int]
    trajectories_accepted: int
    trajectories_rejected: int
    following_error_rad: float
    motion_rad: float
    targets: int
    targets_reached: int
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
        latency = [
            (f"latency, {_words(stage.stage)}", f"p50 {stage.p50_ms:.1f} ms, p95 {stage.p95_ms:.1f} ms")
            for stage in self.latency
        ]
        return [
            ("targets reached", f"{self.targets_reached} of {self.targets}"),
            ("observations", str(self.observations)),
            ("refusals", _list(self.refusals)),
            ("chunks", f"{self.chunks} in {self.duration_s:.1f} s"),
            *latency,
            ("rows executed", str(self.rows_executed)),
            ("rows expired", str(self.rows_expired)),
            ("holds", _list(self.holds)),
            ("commands clipped to a limit", _list(self.clips)),
            ("trajectories accepted / rejected", f"{self.trajectories_accepted} / {self.trajectories_rejected}"),
            ("distance to what the chunks said", f"{self.following_error_rad:.4f} rad rms"),
            ("motion that the chunks asked for", f"{self.motion_rad:.4f} rad rms"),
        ]


def summarise(record: DemoRecord, following: Following, duration_s: float) -> DemoSummary:
    """Count, measure and judge."""
    rejected = int(record.controller.get("rejected", 0))
    return DemoSummary(
        duration_s=duration_s,
        observations=record.count("observations"),
        refusals={**record.counts("refused."), **record.counts("chunks_refused.")},
        chunks=len(record.chunks),
        latency=_latency(record.policy),
        rows_executed=record.count("rows_executed"),
        rows_expired=record.count("rows_expired"),
        holds=record.counts("holds."),
        clips=record.counts("clips."),
        trajectories_accepted=int(record.controller.get("accepted", 0)),
        trajectories_rejected=rejected,
        following_error_rad=following.error_rad,
        motion_rad=following.motion_rad,
        targets=len(record.trials),
        targets_reached=sum(trial.reached_after_s is not None for trial in record.trials),
        problems=_problems(record, following),
    )


def _list(counts: dict[str, int]) -> str:
    return ", ".join(f"{_words(name)} {count}" for name, count in sorted(counts.items())) or "none"


def _words(name: str) -> str:
    return name.replace("_", " ")


def _latency(figures: dict[str, str]) -> list[LatencyStage]:
    begin, end = "latency.", ".p50_ms"
    stages = [key[len(begin) : -len(end)] for key in figures if key.startswith(begin) and key.endswith(end)]
    return [
        LatencyStage(stage, *(float(figures[f"{begin}{stage}.{share}_ms"]) for share in ("p50", "p95")))
        for stage in stages
    ]


def _problems(record: DemoRecord, following: Following) -> list[str]:
    found = []
    # A trajectory that arrives too late tells of a busy machine, not of a wrong trajectory.
    late = int(record.controller.get(f"rejected: {RejectionReason.PAST.value}", 0))
    rejected = int(record.controller.get("rejected", 0)) - late
    if len(record.chunks) < FEWEST_CHUNKS:
        found.append(f"only {len(record.chunks)} chunks were published; at least {FEWEST_CHUNKS} were expected")
    if rejected:
        found.append(f"the controller rejected {rejected} trajectories: {record.controller.get('last rejection', '')}")
    if following.share_counted < SMALLEST_SHARE_COUNTED:
        found.append(
            f"the robot moved without holds and gaps in only {following.share_counted:.0%} of the time; to judge its "
            f"motion, {SMALLEST_SHARE_COUNTED:.0%} are needed: is the machine busy with something else?"
        )
    elif not following.followed:
        found.append(
            f"the robot did not do what the chunks said: its joints were {following.error_rad:.4f} rad (rms) away from "
            f"them, and the motion asked for was {following.motion_rad:.4f} rad"
        )
    return found
