"""How trials are judged, counted and filmed."""

from __future__ import annotations

import json

import numpy as np
import pytest

from groot_ros.demo.arm import demo_arm
from groot_ros.demo.film import Film
from groot_ros.demo.trials import ReachJudge, Trial, TrialsReport

ARM = demo_arm()
POSTURE = np.array([0.8, 0.9, 0.4])
SECOND = 1_000_000_000


def judged(distances_by_s: list[tuple[float, float]], begin_ns: int = 0) -> Trial:
    """A trial in which the tip stands so far from the target from each time on, heard 100 times a second."""
    tip = ARM.tip(POSTURE)
    judge = ReachJudge(ARM, tip, begin_ns)
    ends = [time_s for time_s, _ in distances_by_s[1:]] + [distances_by_s[-1][0] + 1.0]
    for (begin_s, distance), end_s in zip(distances_by_s, ends, strict=True):
        posture = np.append(ARM.reach_for(tip + np.array([distance, 0.0]), POSTURE), 0.4)
        for tick in range(round(begin_s * 100), round(end_s * 100)):
            judge.hear(tick * SECOND // 100, posture)
    return judge.trial(7)


def test_a_tip_that_comes_within_three_percent_and_stays_has_reached():
    trial = judged([(0.0, 0.3), (1.2, 0.029)])
    assert trial.reached_after_s == pytest.approx(1.2)
    assert trial.last_of_reach == pytest.approx(0.029, abs=1e-4)


def test_a_tip_that_only_passes_has_not_reached():
    trial = judged([(0.0, 0.3), (1.0, 0.01), (1.4, 0.1)])
    assert trial.reached_after_s is None
    assert (trial.closest_of_reach, trial.last_of_reach) == pytest.approx((0.01, 0.1), abs=1e-4)


def test_a_tip_just_outside_has_not_reached():
    assert judged([(0.0, 0.031)]).reached_after_s is None


def test_what_was_measured_before_the_policy_was_enabled_does_not_count():
    assert judged([(0.0, 0.0)], begin_ns=SECOND * 6 // 10).reached_after_s is None


def test_the_report_counts_and_names_what_was_missed():
    trials = tuple(
        Trial(seed, (0.1, 0.5), None if seed == 2 else 1.0 + seed, 0.01, 0.2 if seed == 2 else 0.02)
        for seed in range(4)
    )
    report = TrialsReport("my_policy", "own", 8.0, trials)
    rows = dict(report.rows())
    assert rows["reached"] == "3 of 4 (75%)"
    assert rows["missed"] == "2"
    assert "median 2.0 s, at most 4.0 s" in rows["after"]
    written = json.loads(json.dumps(report.as_json()))
    assert (written["reached"], written["of"], written["tolerance_of_reach"]) == (3, 4, 0.03)
    assert written["trials"][2]["reached_after_s"] is None


def test_a_film_shows_the_cameras_side_by_side_at_the_same_time(tmp_path):
    film = Film(("front", "wrist"), height=40)
    film.begin_scene()
    for number in range(11):
        grey = np.full((20, 20, 3), 20 * number, np.uint8)
        film.add("front", number * SECOND // 10, grey)
        film.add("wrist", number * SECOND // 10 + SECOND // 50, 255 - grey)
    film.begin_scene()  # nothing comes of an empty scene
    pictures = film.pictures()
    assert pictures[0].shape == (40, 86, 3)
    # The film begins when both cameras are there: at the wrist camera's first frame.
    for number in range(9):
        assert pictures[number][20, 10].tolist() == [20 * number] * 3
        assert pictures[number][20, 70].tolist() == [255 - 20 * number] * 3
    film.write(tmp_path / "film.gif")
    assert (tmp_path / "film.gif").read_bytes().startswith(b"GIF89a")


def test_a_film_without_a_picture_is_refused(tmp_path):
    with pytest.raises(ValueError, match="the film is empty"):
        Film(("front",)).write(tmp_path / "film.gif")
