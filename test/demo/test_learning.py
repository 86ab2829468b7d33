"""The tools that `make learn` is made of, over DDS: demonstrations that can be learned from, and trials that count."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytestmark = [pytest.mark.dds, pytest.mark.slow, pytest.mark.timeout(240)]

from support.ros import isolate, own_domain  # noqa: E402

from groot_ros.dataset.reader import open_dataset  # noqa: E402
from groot_ros.demo.arm import demo_arm  # noqa: E402
from groot_ros.demo.episode import draw_episode  # noqa: E402

ROOT = Path(__file__).parents[2]
ARM = demo_arm()


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    isolate(own_domain(), folder / "ros_log")
    command = [sys.executable, "-m", "groot_ros", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=200, check=False)


def test_demonstrations_begin_where_their_episodes_do_and_end_at_the_target(tmp_path):
    bags, contract = tmp_path / "bags", str(ROOT / "config" / "robots" / "demo.yaml")
    done = run(tmp_path, "demo_record", "--episodes", "3", "--output", str(bags), "--first-seed", "40")
    assert done.returncode == 0, done.stdout + done.stderr
    done = run(tmp_path, "convert", str(bags), str(tmp_path / "dataset"), "--contract", contract, "--jobs", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    dataset = open_dataset(tmp_path / "dataset")
    assert len(dataset.episodes) == 3
    for number in range(3):
        episode = draw_episode(ARM, 40 + number, 0.6)
        states, actions = dataset.state(number, "single_arm"), dataset.action(number, "single_arm")
        assert 25 <= len(states) <= 35
        assert np.abs(states[0] - episode.start[:2]).max() < 0.5, "the beginning is not there"
        for end in (states[-1], actions[-1]):
            assert np.hypot(*(ARM.tip(end) - episode.target)) < 0.01
        assert dataset.instruction(number, 0) == "reach the target"
        # The first frame shows this episode's target, not the one before: red where it lies.
        frame = dataset.frames(number, "front", [0])[0].astype(int)
        rows, columns = np.nonzero((frame[..., 0] > 150) & (frame[..., 1] < 100) & (frame[..., 2] < 100))
        scale = 128 / 2.0
        seen = np.array([columns.mean() - 64, 64 - rows.mean()]) / scale + np.array([0.0, 0.4])
        assert np.hypot(*(seen - episode.target)) < 0.06


def test_trials_are_counted_written_and_filmed(tmp_path):
    done = run(tmp_path, "demo_trials", "--trials", "3", "--film", "1", "--at-least", "1", "--output", str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    written = json.loads((tmp_path / "trials.json").read_text())
    assert [one["seed"] for one in written["trials"]] == [0, 1, 2]
    assert written["reached"] >= 1
    assert f"{written['reached']} of 3" in done.stdout
    assert (tmp_path / "trials.gif").read_bytes().startswith(b"GIF89a")


def test_where_the_cameras_show_another_target_the_arm_does_not_reach_its_own(tmp_path):
    options = ("--trials", "2", "--other-scene", "--time-limit", "4", "--output", str(tmp_path))
    done = run(tmp_path, "demo_trials", *options, "--at-least", "1")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "failed: 0 reached; 1 to 2 were asked for" in done.stdout
    assert json.loads((tmp_path / "trials.json").read_text())["scene"] == "other"
