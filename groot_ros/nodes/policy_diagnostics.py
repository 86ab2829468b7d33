"""What the node says about itself: statuses for ``/diagnostics`` and ``~/status`` from plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from diagnostic_msgs.msg import DiagnosticStatus, KeyValue

from groot_ros.alignment import NotReady, Reason, StreamHealth
from groot_ros.execution.status import ExecutorStatus, HoldReason
from groot_ros.observation import NANOSECONDS_PER_SECOND

LOW_RATE = 0.9
"""Share of a camera's declared rate below which its frames are said to be lost."""

OK, WARN, ERROR, STALE = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR, DiagnosticStatus.STALE

HOLDS = {
    HoldReason.NO_PLAN: (STALE, "held: there is no chunk to execute"),
    HoldReason.NO_OBSERVATION: (STALE, "held: no fresh observation"),
    HoldReason.INFERENCE_OVERDUE: (STALE, "held: the policy has not answered in time"),
    HoldReason.CLIPPED: (ERROR, "held: the policy wants what the limits do not allow"),
    HoldReason.CLOCK_JUMPED_BACK: (WARN, "held: the clock jumped back"),
    HoldReason.REQUESTED: (OK, "held as asked"),
}

Part = tuple[bytes, str, dict[str, str]]
"""Level, message and values of one status."""


@dataclass(frozen=True)
class Snapshot:
    """The node at one instant.

    Attributes:
        state: Lifecycle state.
        hardware_id: The robot.
        fault: What keeps the node from working at all, empty where nothing does.
        warnings: What the user must know.
        now_ns: The node's clock.
        is_enabled: Whether commands are sent.
        is_dry_run: Whether they never are.
        not_ready: Why there is no observation.
        camera_rates_hz: Measured, by camera.
        declared_rates_hz: As the contract says, where it does.
        health: Counters by stream.
        motion: The executor's status; None before configuring.
        counts: Numbers of the ledger and of the policy.
        inference_fault: Why the last prediction gave no chunk, or its chunk was refused; empty where it was well.
        model_busy_s: For how long the present inference has run.

    """

    state: str
    hardware_id: str = ""
    fault: str = ""
    warnings: Sequence[str] = ()
    now_ns: int = 0
    is_enabled: bool = False
    is_dry_run: bool = True
    not_ready: NotReady | None = None
    camera_rates_hz: Mapping[str, float] = field(default_factory=dict)
    declared_rates_hz: Mapping[str, float] = field(default_factory=dict)
    health: Mapping[str, StreamHealth] = field(default_factory=dict)
    motion: ExecutorStatus | None = None
    counts: Mapping[str, float] = field(default_factory=dict)
    inference_fault: str = ""
    model_busy_s: float = 0.0


def statuses(snapshot: Snapshot, name: str) -> list[DiagnosticStatus]:
    """One status for each part of the node, named ``<name>: <part>``."""
    parts = {"node": _node(snapshot)}
    if snapshot.motion is not None:
        parts |= {
            "observation": _observation(snapshot),
            "inference": _inference(snapshot),
            "motion": _motion(snapshot, snapshot.motion),
        }
    return [_status(f"{name}: {part}", snapshot, *content) for part, content in parts.items()]


def summary(snapshot: Snapshot, name: str) -> DiagnosticStatus:
    """All parts in one status: the worst level, its message, and all values."""
    parts = statuses(snapshot, name)
    worst = max(parts, key=lambda part: (part.level != OK, part.level == ERROR, part.level))
    values = [value for part in parts for value in part.values]
    message = worst.message if worst.level != OK else parts[-1].message
    return DiagnosticStatus(
        level=worst.level, name=name, message=message, hardware_id=snapshot.hardware_id, values=values
    )


def low_rates(snapshot: Snapshot) -> list[str]:
    """A sentence for each camera whose frames arrive below its declared rate, with the likely cause."""
    return [
        f"video.{camera}: {rate:.1f} frames a second arrive of the {declared:g} that the contract declares; where the "
        "camera's process uses Fast DDS's default shared memory (512 KB) images are lost: export "
        "FASTDDS_DEFAULT_PROFILES_FILE (kilted and later) or FASTRTPS_DEFAULT_PROFILES_FILE (jazzy and older) = "
        "config/fastdds_shared_memory.xml for the camera's process, whose memory counts, and restart it"
        for camera, declared in snapshot.declared_rates_hz.items()
        if 0.0 < (rate := snapshot.camera_rates_hz.get(camera, 0.0)) < LOW_RATE * declared
    ]


def _node(snapshot: Snapshot) -> Part:
    values = {
        "state": snapshot.state,
        "enabled": _word(value=snapshot.is_enabled),
        "dry_run": _word(value=snapshot.is_dry_run),
    }
    if snapshot.fault:
        return ERROR, snapshot.fault, values
    if snapshot.warnings:
        return WARN, "; ".join(snapshot.warnings), values
    return OK, snapshot.state, values


def _observation(snapshot: Snapshot) -> Part:
    values = {f"video.{camera}.rate_hz": f"{rate:.1f}" for camera, rate in snapshot.camera_rates_hz.items()}
    for stream, health in snapshot.health.items():
        dropped = health.received - health.accepted
        values[f"{stream}.received"] = str(health.received)
        values[f"{stream}.refused"] = str(dropped)
        for counter in ("bad_messages", "zero_stamps", "future_stamps", "duplicate_stamps", "late_stamps"):
            count = getattr(health, counter)
            if count:
                values[f"{stream}.{counter}"] = str(count)
        if health.longest_lead_ns > 0:
            values[f"{stream}.longest_lead_s"] = f"{health.longest_lead_ns / NANOSECONDS_PER_SECOND:.3f}"
        if health.newest_stamp_ns is not None:
            age_s = (snapshot.now_ns - health.newest_stamp_ns) / NANOSECONDS_PER_SECOND
            values[f"{stream}.age_s"] = f"{age_s:.3f}"
    not_ready = snapshot.not_ready
    values["not_ready"] = "" if not_ready is None else not_ready.reason.value
    if not_ready is not None:
        level = STALE if not_ready.reason in {Reason.STALE, Reason.MISSING} else ERROR
        return level, not_ready.sentence, values
    lost = low_rates(snapshot)
    if lost:
        return WARN, "; ".join(lost), values
    return OK, "observations are complete", values


def _inference(snapshot: Snapshot) -> Part:
    values = {name: f"{value:.4g}" if value % 1 else f"{value:.0f}" for name, value in snapshot.counts.items()}
    values["model_busy_s"] = f"{snapshot.model_busy_s:.3f}"
    if snapshot.inference_fault:
        return ERROR, snapshot.inference_fault, values
    return OK, f"{values.get('chunks', '0')} chunks", values


def _motion(snapshot: Snapshot, motion: ExecutorStatus) -> Part:
    values = {
        "chunk_age_s": "" if motion.chunk_age_s is None else f"{motion.chunk_age_s:.3f}",
        "rows_ahead": str(motion.rows_ahead),
        "latency_s": f"{motion.latency_s:.3f}",
        "seam_jump": f"{motion.seam_jump:.5f}",
        "chunks_accepted": str(motion.chunks),
        "holding": "" if motion.holding is None else motion.holding.value,
        "last_refusal": motion.last_refusal,
    }
    values |= {f"holds.{reason.value}": str(count) for reason, count in motion.holds.items()}
    values |= {f"clips.{joint}": str(count) for joint, count in motion.clips.items()}
    values |= {f"slowed.{joint}": str(count) for joint, count in motion.slowed.items()}
    values |= {f"chunks_refused.{refusal.value}": str(count) for refusal, count in motion.refusals.items()}
    if not snapshot.is_enabled and not snapshot.is_dry_run:
        return OK, "motion is disabled", values
    if snapshot.state != "active":
        return OK, f"the node is {snapshot.state}", values
    prefix = "dry run, nothing is sent: " if snapshot.is_dry_run else ""
    if motion.holding is not None:
        level, sentence = HOLDS[motion.holding]
        reason = f" ({motion.last_refusal})" if motion.last_refusal else ""
        return level, f"{prefix}{sentence}{reason}", values
    return OK, f"{prefix}the plan is executed", values


def _word(*, value: bool) -> str:
    return "true" if value else "false"


def _status(name: str, snapshot: Snapshot, level: bytes, message: str, values: Mapping[str, str]) -> DiagnosticStatus:
    return DiagnosticStatus(
        level=level,
        name=name,
        message=message,
        hardware_id=snapshot.hardware_id,
        values=[KeyValue(key=key, value=value) for key, value in values.items()],
    )
