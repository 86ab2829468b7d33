"""What the node counts and says about itself."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("rclpy")

from diagnostic_msgs.msg import DiagnosticStatus
from support.policy_node import values_of

from groot_ros.alignment import NotReady, Reason, StreamHealth
from groot_ros.execution.status import ExecutorStatus, HoldReason, Refusal
from groot_ros.nodes.edge_log import EdgeLog
from groot_ros.nodes.policy_diagnostics import Snapshot, statuses, summary
from groot_ros.nodes.policy_ledger import Ledger
from groot_ros.observation import ActionChunk
from groot_ros.policy import StageTimings

SECOND = 1_000_000_000


def chunk(stamp_ns: int) -> ActionChunk:
    return ActionChunk(stamp_ns, 0.1, {"arm": np.zeros((10, 1))}, {"arm": ["a"]})


def executor_status(**changes) -> ExecutorStatus:
    values = {
        "holding": None,
        "chunk_age_s": 0.2,
        "rows_ahead": 7,
        "latency_s": 0.15,
        "seam_jump": 0.01,
        "chunks": 3,
        "holds": {HoldReason.NO_PLAN: 1},
        "clips": {"elbow": 4},
        "refusals": {Refusal.EXPIRED: 2},
    }
    return ExecutorStatus(**{**values, **changes})


def snapshot(**changes) -> Snapshot:
    values = {
        "state": "active",
        "hardware_id": "so101",
        "is_enabled": True,
        "is_dry_run": False,
        "now_ns": 10 * SECOND,
        "motion": executor_status(),
        "camera_rates_hz": {"front": 30.0},
        "declared_rates_hz": {"front": 30.0},
        "health": {"video.front": StreamHealth(received=10, accepted=8, newest_stamp_ns=9_900_000_000)},
    }
    return Snapshot(**{**values, **changes})


def part(snapshot: Snapshot, name: str) -> DiagnosticStatus:
    return next(status for status in statuses(snapshot, "groot_policy") if status.name == f"groot_policy: {name}")


def test_rows_count_as_executed_when_their_time_came_and_as_expired_when_their_chunk_came_late():
    ledger = Ledger()
    ledger.accepted(chunk(0), 250_000_000)  # rows 0, 1 and 2 are past
    assert (ledger.rows_executed, ledger.rows_expired) == (0, 3)
    ledger.accepted(chunk(500_000_000), 650_000_000)  # rows 3 to 6 of the first came meanwhile
    assert (ledger.rows_executed, ledger.rows_expired) == (4, 5)
    ledger.stopped(10 * SECOND)  # the last 8 rows of the second
    assert ledger.rows_executed == 12
    ledger.stopped(20 * SECOND)
    assert ledger.rows_executed == 12


def test_latencies_are_percentiles_by_stage():
    ledger = Ledger()
    for milliseconds in range(1, 101):
        ledger.predicted(StageTimings(milliseconds / 1e3, 0.0, 0.0, 0.0), 0.01, 0.2)
    latencies = ledger.latencies_ms()
    assert latencies["data_processing.p50_ms"] == pytest.approx(50.5)
    assert latencies["data_processing.p95_ms"] == pytest.approx(95.05)
    assert latencies["capture_to_chunk.p50_ms"] == pytest.approx(200.0)


def test_the_parts_tell_ages_drops_clips_holds_and_refusals():
    observation = values_of(part(snapshot(), "observation"))
    assert observation["video.front.refused"] == "2"
    assert observation["video.front.age_s"] == "0.100"
    motion = values_of(part(snapshot(), "motion"))
    assert motion["clips.elbow"] == "4"
    assert motion["holds.no_plan"] == "1"
    assert motion["chunks_refused.expired"] == "2"
    assert motion["seam_jump"] == "0.01000"


def test_a_camera_below_its_declared_rate_names_the_transport_as_the_likely_cause():
    status = part(snapshot(camera_rates_hz={"front": 19.0}), "observation")
    assert status.level == DiagnosticStatus.WARN
    assert "video.front: 19.0 frames a second arrive of the 30 that the contract declares" in status.message
    assert "FASTDDS_DEFAULT_PROFILES_FILE" in status.message
    assert "FASTRTPS_DEFAULT_PROFILES_FILE" in status.message
    assert part(snapshot(camera_rates_hz={"front": 29.0}), "observation").level == DiagnosticStatus.OK


def test_the_reason_why_there_is_no_observation_is_its_message():
    reason = NotReady(Reason.STALE, "video.front", "video.front: the newest message is 0.3 s old")
    status = part(snapshot(not_ready=reason), "observation")
    assert status.level == DiagnosticStatus.STALE
    assert status.message == "video.front: the newest message is 0.3 s old"
    assert values_of(status)["not_ready"] == "stale"


def test_a_hold_says_why_and_a_stalled_policy_is_stale():
    held = executor_status(holding=HoldReason.INFERENCE_OVERDUE)
    status = part(snapshot(motion=held), "motion")
    assert status.level == DiagnosticStatus.STALE
    assert status.message == "held: the policy has not answered in time"
    assert part(snapshot(motion=held, is_enabled=False), "motion").message == "motion is disabled"


def test_the_summary_is_the_worst_part_with_the_values_of_all():
    fine = summary(snapshot(), "groot_policy")
    assert (fine.level, fine.message) == (DiagnosticStatus.OK, "the plan is executed")
    bad = summary(snapshot(fault="the model's thread has ended"), "groot_policy")
    assert (bad.level, bad.message) == (DiagnosticStatus.ERROR, "the model's thread has ended")
    assert {"state", "video.front.rate_hz", "model_busy_s", "rows_ahead"} <= set(values_of(bad))


def test_before_configuring_only_the_node_is_reported():
    assert [status.name for status in statuses(Snapshot("unconfigured"), "left/groot_policy")] == [
        "left/groot_policy: node"
    ]


def test_a_log_says_a_thing_when_it_begins_changes_and_ends():
    class Logger:
        said: list[str] = []  # noqa: RUF012

        def warning(self, sentence: str) -> None:
            self.said.append(sentence)

        info = warning

    log = EdgeLog(Logger())
    log.end("camera", "well")
    for _ in range(3):
        log.begin("camera", "stale", "0.3 s old")
    log.begin("camera", "missing", "gone")
    log.end("camera", "well")
    log.end("camera", "well")
    assert Logger.said == ["0.3 s old", "gone", "well"]
