"""CI fails on a test that was skipped for a reason nobody allowed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def check(folder: Path, reasons: list[str], allowed: str) -> subprocess.CompletedProcess[str]:
    results = folder / "results"
    results.mkdir()
    skips = "".join(
        f'<testcase classname="a" name="b{i}"><skipped message="{r}"/></testcase>' for i, r in enumerate(reasons)
    )
    (results / "fast.xml").write_text(f"<testsuites><testsuite>{skips}</testsuite></testsuites>")
    (folder / "allowed.txt").write_text(allowed)
    command = [sys.executable, ROOT / ".ci" / "check_skips.py", results, folder / "allowed.txt"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_every_skip_is_printed_and_an_allowed_one_passes(tmp_path):
    done = check(tmp_path, ["no recordings in the folder"], "*recordings*|they are not part of the repository\n")
    assert done.returncode == 0
    assert "skipped: a::b0: no recordings in the folder" in done.stdout


@pytest.mark.parametrize("reason", ["could not import 'rclpy': No module named 'rclpy'", "later"])
def test_a_skip_that_is_not_on_the_list_fails(tmp_path, reason):
    done = check(tmp_path, [reason.replace("'", "&apos;")], "# nothing is allowed\n")
    assert done.returncode == 1
    assert f"NOT ALLOWED: a::b0: {reason}" in done.stdout


def test_a_run_without_results_fails(tmp_path):
    done = subprocess.run(
        [sys.executable, ROOT / ".ci" / "check_skips.py", tmp_path, tmp_path / "none"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "no test ran" in done.stdout
