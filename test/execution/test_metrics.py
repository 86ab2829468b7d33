"""The numbers of motion on motions whose numbers are known, and what the benchmark promises."""

from __future__ import annotations

import numpy as np
import pytest
from support.motion import PERIOD_S

from benchmarks.motion import remaining_share, run
from groot_ros.execution.metrics import (
    high_frequency_share,
    idle_share,
    jerk,
    motion_report,
    seam_jumps,
    tracking_error,
)

TIME = np.arange(0.0, 10.0, PERIOD_S)
SLOW = np.stack([np.sin(TIME), np.cos(TIME)], axis=1)


def test_a_seam_jump_is_the_largest_step_at_the_first_row_of_a_chunk():
    rows = np.array([[0.0, 0.0], [0.1, 0.0], [0.1, -0.5], [0.2, -0.5]])
    assert seam_jumps(rows, np.array([0, 1, 2])).tolist() == [0.1, 0.5]
    assert seam_jumps(rows, np.array([], dtype=np.intp)).size == 0


def test_jerk_is_the_third_derivative():
    assert jerk(TIME[:, None] ** 3, PERIOD_S) == pytest.approx(6.0)
    assert jerk(np.sin(2 * TIME)[:, None], PERIOD_S) == pytest.approx(8.0 / np.sqrt(2), rel=0.02)


def test_power_above_three_hertz_is_jitter():
    assert high_frequency_share(SLOW, PERIOD_S) < 1e-4
    assert high_frequency_share(np.sin(2 * np.pi * 8 * TIME)[:, None], PERIOD_S) > 0.99
    assert high_frequency_share(np.ones((50, 2)), PERIOD_S) == 0.0


def test_a_robot_that_waits_is_idle_only_where_the_demonstration_moves():
    waiting = SLOW.copy()
    waiting[100:200] = waiting[100]
    assert idle_share(waiting, SLOW) == pytest.approx(99 / 299)
    assert idle_share(np.zeros((9, 1)), np.zeros((9, 1))) == 0.0


def test_a_perfect_motion_has_a_perfect_report():
    report = motion_report(SLOW, SLOW, np.array([5, 100]), PERIOD_S, holds=2, clips=3)
    assert report.jerk_ratio == pytest.approx(1.0)
    assert report.tracking == 0.0
    assert report.idle == 0.0
    assert (report.holds, report.clips) == (2, 3)
    assert tracking_error(SLOW + 0.2, SLOW, np.array([2.0, 2.0])) == pytest.approx(0.1)


def test_frozen_rows_come_back_verbatim_and_the_last_ones_are_free():
    kept = remaining_share(10, 4)
    assert np.all(kept[:4] == 1.0)
    assert np.all(np.diff(kept[3:]) < 0.0)
    assert kept[-1] < 0.01


def test_real_time_chunking_joins_chunks_five_times_better_than_waiting():
    synchronous, replaced, continued = (run(way, 0.2).report for way in ("synchronous", "replace", "rtc"))
    assert continued.seam_p95 * 5.0 <= synchronous.seam_p95
    assert continued.tracking <= replaced.tracking
    assert continued.jerk_ratio <= replaced.jerk_ratio
