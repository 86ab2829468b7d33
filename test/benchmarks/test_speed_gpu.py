"""The script for a lent GPU runs to its end on a CPU, so that no lent minute is lost to a slip."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

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
    assert results["transfers"]["frame_bytes"] == 2 * 480 * 640 * 3
    assert results["floor"]["bytes_read"] > 0
