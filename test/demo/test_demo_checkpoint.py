"""The checkpoint that comes with the package: small, whole, and it reaches what its cameras show."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from support.closed_loop import trial

from groot_ros.checkpoint import open_checkpoint
from groot_ros.contract import load_contract
from groot_ros.policy import GrootPolicy

ROOT = Path(__file__).parents[2]
CHECKPOINT = ROOT / "config" / "demo_checkpoint"
LARGEST_BYTES = 8_000_000
SHOWN_INSTEAD = 100


@pytest.fixture(scope="module")
def contract():
    return load_contract(ROOT / "config" / "robots" / "demo.yaml")


@pytest.fixture(scope="module")
def policy():
    return GrootPolicy.from_checkpoint(CHECKPOINT, "new_embodiment", device="cpu")


def test_it_is_small_whole_and_of_the_demo_robots_rate(contract):
    assert sum(path.stat().st_size for path in CHECKPOINT.rglob("*") if path.is_file()) < LARGEST_BYTES
    checkpoint = open_checkpoint(CHECKPOINT)
    assert checkpoint.backbone.directory == CHECKPOINT / "backbone"
    assert {tensor.dtype for _, tensor in checkpoint.weights().tensors()} == {torch.bfloat16}
    assert checkpoint.tags == ("new_embodiment",)
    assert checkpoint.fps == contract.rate_hz
    contract.check_against(checkpoint.embodiment("new_embodiment"))


def test_inspect_shows_its_tag_and_what_to_wire(capsys):
    from groot_ros.cli.checkpoint import main

    assert main(["inspect", str(CHECKPOINT), "--camera-size", "128x128"]) == 0
    said = capsys.readouterr().out
    for word in ("new_embodiment", "front", "wrist", "single_arm", "gripper"):
        assert word in said


def test_it_reaches_targets_that_it_has_never_seen(policy, contract):
    trials = [trial(policy, contract, seed) for seed in range(5)]
    assert sum(one.reached_after_s is not None for one in trials) >= 4, trials


def test_it_reaches_what_the_cameras_show_and_not_what_they_do_not(policy, contract):
    trials = [trial(policy, contract, seed, shown=seed + SHOWN_INSTEAD, limit_s=4.0) for seed in range(3)]
    assert not any(one.reached_after_s for one in trials), trials
