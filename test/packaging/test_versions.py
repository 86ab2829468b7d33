"""The table of tested versions, and the one sentence outside of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from groot_ros.versions import TESTED, running_versions, untested_sentence

ROOT = Path(__file__).parents[2]


def test_a_tested_combination_says_nothing():
    assert untested_sentence(TESTED[0]) is None


def test_another_combination_is_named_with_what_was_tested():
    sentence = untested_sentence(replace(TESTED[0], torch="2.4", ros="humble"))
    assert "Python 3.11, ROS humble, torch 2.4" in sentence
    assert "torch 2.13, transformers 5.24" in sentence


def test_the_running_versions_are_found():
    running = running_versions()
    assert running.torch != "none"
    assert running.transformers != "none"


def test_the_table_in_the_documentation_is_the_one_in_the_code():
    rows = [line for line in (ROOT / "docs" / "tested_versions.md").read_text().splitlines() if line.startswith("| 3.")]
    cells = [[cell.strip() for cell in row.strip("|").split("|")][:4] for row in rows]
    assert cells == [[p.python, p.ros or "wheels (kilted)", p.torch, p.transformers] for p in TESTED]
