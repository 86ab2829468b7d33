"""Whether the robot did what the chunks said, and what the demo tells of it."""

from __future__ import annotations

import json

import numpy as np
import pytest
from support.trajectories import point, trajectory

from groot_ros.demo.arm import demo_arm
from groot_ros.demo.following import follow
from groot_ros.demo.picture import draw_following
from groot_ros.demo.record import DemoRecord
from groot_ros.demo.simulation import ArmSimulation
from groot_ros.demo.summary import summarise
from groot_ros.demo.trials import Trial

ARM = demo_arm()
SECOND = 1_000_000_000
ROW_NS = SECOND // 30
FIGURES = {
    "observations": "40",
    "rows_executed": "100",
    "rows_expired": "3",
    "refused.missing": "7",
    "refused.stale": "2",
    "chunks_refused.expired": "1",
    "holds.no_plan": "1",
    "latency.backbone.p50_ms": "4.0",
    "latency.backbone.p95_ms": "6.0",
    "latency.capture_to_chunk.p50_ms": "40.0",
    "latency.capture_to_chunk.p95_ms": "61.0",
}
BEFORE = {"observations": "5", "refused.missing": "7", "holds.no_plan": "1"}


def wave(time_s):
    return np.array([1.0 + 0.4 * np.sin(time_s), 1.2 + 0.3 * np.sin(1.7 * time_s), 0.4 + 0.2 * np.sin(0.9 * time_s)])


def record(*, obeys=True, latency_s=0.06, seconds=8.0):
    """A run whose chunks are a wave; the arm follows them, or stands still."""
    heard = DemoRecord(ARM.names, begin_ns=0)
    simulation = ArmSimulation(ARM, wave(0.0))
    for begin in np.arange(0.0, seconds, 0.2):
        begin_ns = int(begin * SECOND)
        rows = [point(wave(begin + i / 30)[[2, 0, 1]], i * ROW_NS) for i in range(16)]
        names = ["gripper/gripper", "single_arm/shoulder", "single_arm/elbow"]
        heard.hear_chunk(trajectory(names, rows, begin_ns), begin_ns + int(latency_s * SECOND))
    heard.targets = [(0, ARM.tip(wave(0.0)))]
    heard.trials = [Trial(0, (0.1, 0.5), 1.4, 0.01, 0.01), Trial(1, (0.2, 0.5), None, 0.2, 0.3)]
    for tick in range(int(seconds * 200)):
        now_s = tick / 200
        if obeys and now_s > latency_s:
            simulation.step(wave(now_s), 1 / 200)
        heard.measured.append((tick * SECOND // 200, simulation.positions))
    heard.policy, heard.policy_before = dict(FIGURES), dict(BEFORE)
    heard.controller = {"accepted": "160", "rejected": "0"}
    return heard


def test_a_robot_that_obeys_is_a_success_with_every_figure():
    heard = record()
    summary = summarise(heard, follow(heard, ARM), 8.0)
    assert summary.success, summary.problems
    assert summary.following_error_rad < 0.005
    assert summary.observations == 35, "what came before it was enabled does not count"
    assert summary.refusals == {"stale": 2, "expired": 1}
    assert [stage.stage for stage in summary.latency] == ["backbone", "capture_to_chunk"]
    rows = dict(summary.rows())
    assert rows["targets reached"] == "1 of 2"
    assert rows["latency, capture to chunk"] == "p50 40.0 ms, p95 61.0 ms"
    assert rows["refusals"] == "expired 1, stale 2"
    assert rows["holds"] == "none"
    assert rows["rows expired"] == "3"
    assert json.loads(json.dumps(summary.as_json()))["success"] is True


def test_a_robot_that_stands_still_is_a_failure():
    heard = record(obeys=False)
    summary = summarise(heard, follow(heard, ARM), 8.0)
    assert not summary.success
    assert "did not do what the chunks said" in summary.problems[0]


def test_what_a_hold_keeps_the_robot_from_does_not_count():
    heard = record()
    heard.measured = [
        (stamp, positions + 0.3 * (4 * SECOND < stamp < 4.5 * SECOND)) for stamp, positions in heard.measured
    ]
    assert not summarise(heard, follow(heard, ARM), 8.0).success
    for tick in range(40, 46):
        heard.hear_status({"holding": "no_observation", "holds.no_observation": "1"}, tick * SECOND // 10)
    summary = summarise(heard, follow(heard, ARM), 8.0)
    assert summary.success, summary.problems
    assert summary.holds == {"no_observation": 1}


def test_no_chunks_are_a_failure():
    heard = record()
    heard.chunks.clear()
    summary = summarise(heard, follow(heard, ARM), 8.0)
    assert "only 0 chunks" in summary.problems[0]


def test_a_gap_in_the_chunks_does_not_count_and_too_many_are_a_failure():
    heard = record()
    heard.chunks = [chunk for chunk in heard.chunks if not 3 * SECOND < chunk.received_ns < 4 * SECOND]
    assert summarise(heard, follow(heard, ARM), 8.0).success
    heard.chunks = heard.chunks[::5]
    problems = summarise(heard, follow(heard, ARM), 8.0).problems
    assert "is the machine busy with something else?" in problems[-1]


def test_a_rejected_trajectory_is_a_failure_with_the_controllers_words():
    heard = record()
    heard.controller = {"rejected": "3", "rejected: ends in the past": "2", "last rejection": "moves at its end"}
    problems = summarise(heard, follow(heard, ARM), 8.0).problems
    assert problems == ["the controller rejected 1 trajectories: moves at its end"]


def test_a_trajectory_that_came_too_late_is_told_but_no_failure():
    heard = record()
    heard.controller = {"rejected": "2", "rejected: ends in the past": "2", "last rejection": "due 0.1 s before"}
    summary = summarise(heard, follow(heard, ARM), 8.0)
    assert summary.success, summary.problems
    assert summary.trajectories_rejected == 2


def test_the_distance_to_the_target_of_the_time_is_told():
    heard = record()
    heard.targets = [(SECOND, ARM.tip(wave(2.0))), (3 * SECOND, ARM.tip(wave(2.0)) + np.array([0.0, 0.5]))]
    following = follow(heard, ARM)
    at = dict(zip(following.times_s.round(3).tolist(), following.distance.tolist(), strict=True))
    assert np.isnan(at[0.5])
    assert at[2.0] < 0.03
    assert at[3.5] > 0.3


def test_nothing_heard_is_a_failure_and_no_crash():
    heard = DemoRecord(ARM.names, begin_ns=0)
    assert len(summarise(heard, follow(heard, ARM), 8.0).problems) == 2


@pytest.mark.parametrize("count", [0, 1])
def test_the_picture_is_written(tmp_path, count):
    heard = record() if count else DemoRecord(ARM.names, begin_ns=0)
    draw_following(follow(heard, ARM), ARM.names, tmp_path / "demo" / "trajectory.png")
    assert (tmp_path / "demo" / "trajectory.png").read_bytes().startswith(b"\x89PNG")
