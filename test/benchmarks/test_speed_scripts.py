"""The scripts for lent or quiet machines run to their end here, so that no lent minute is lost to a slip."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from groot_ros.checkpoint import write_tiny_checkpoint

ROOT = Path(__file__).parents[2]


def test_every_part_of_the_gpu_script_runs_on_a_cpu(tmp_path):
    command = [sys.executable, "-m", "benchmarks.speed_gpu", "--device", "cpu", "--tiny", "--runs", "2"]
    run = subprocess.run(
        [*command, "--out", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    results = json.loads((tmp_path / "speed_gpu.json").read_text())
    assert results["geometry"]["identical"] is True
    assert results["graphs"]["largest_difference"] < 0.05  # bfloat16, and resizes of both roads
    assert results["graphs"]["repeatable"] is True
    assert results["columns"]["summary"]["end_to_end"]["median_ms"] > 0
    assert set(results["robots"]) >= {"1", "2", "4"}
    assert results["transfers"]["frame_bytes"] == 2 * 480 * 640 * 3
    assert results["floor"]["bytes_read"] > 0


@pytest.mark.slow
def test_the_growth_benchmark_measures_every_axis(tmp_path):
    write_tiny_checkpoint(tmp_path / "checkpoint", embodiment_tag="new_embodiment")
    command = [sys.executable, "-m", "benchmarks.speed_growth", "--checkpoint", str(tmp_path / "checkpoint")]
    run = subprocess.run(
        [*command, "--out", str(tmp_path), "--runs", "1", "--threads", "1"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    results = json.loads((tmp_path / "growth.json").read_text())["results"]
    assert {axis: [row["count"] for row in rows] for axis, rows in results.items()} == {
        "cameras": [1, 2, 3, 4],
        "history": [1, 2, 3, 4],
        "steps": [1, 2, 4, 8],
        "robots": [1, 2, 4, 8],
    }
    assert all(0 < row["floor_s"] < row["seconds"] for rows in results.values() for row in rows)
    assert (tmp_path / "growth.png").stat().st_size > 10_000


def test_the_robots_benchmark_compares_both_ways(tmp_path):
    write_tiny_checkpoint(tmp_path / "checkpoint", embodiment_tag="new_embodiment")
    command = [sys.executable, "-m", "benchmarks.robots", "--checkpoint", str(tmp_path / "checkpoint")]
    run = subprocess.run(
        [*command, "--out", str(tmp_path), "--runs", "1", "--threads", "1"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    rows = json.loads((tmp_path / "robots.json").read_text())
    assert [row["robots"] for row in rows] == [1, 2, 4, 8]
    assert all(row["together_hz"] > 0 and row["in_turn_hz"] > 0 for row in rows)
