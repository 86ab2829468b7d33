"""One training step in two versions, with the runs of each as the control."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from support.golden import TINY_SINGLE, load_case
from support.parity import raw_arrays_of

import groot_ros
from groot_ros.cli.parity import main
from groot_ros.errors import ParityError
from groot_ros.parity.training_runs import compare_steps
from groot_ros.parity.training_step import record_training_step

REPOSITORY = Path(groot_ros.__file__).parent


def step(loss: float, norm: float) -> dict[str, np.ndarray]:
    return {
        "environment": np.array("here"),
        "preprocessor::state": np.zeros(3),
        "loss": np.array(loss),
        "gradient::w": np.array(norm),
    }


def test_versions_that_are_as_close_as_the_runs_of_one_are_inside():
    result = compare_steps([step(1.0, 2.0), step(1.0, 2.1)], [step(1.0, 2.05), step(1.0, 2.0)])
    assert result.inside
    assert "inside the run-to-run envelope" in result.markdown()


def test_versions_that_are_further_apart_are_outside_and_the_quantity_is_named():
    result = compare_steps([step(1.0, 2.0), step(1.0, 2.1)], [step(1.0, 2.3), step(1.0, 2.3)])
    assert not result.inside
    assert [quantity.name for quantity in result.quantities if not quantity.inside] == ["gradient::w"]
    assert "OUTSIDE (1 of 3 quantities) the run-to-run envelope" in result.markdown()
    assert (1.0).hex() in result.markdown()


def test_a_loss_that_is_no_number_is_outside():
    assert not compare_steps([step(1.0, 2.0)] * 2, [step(np.nan, 2.0)] * 2).inside


def test_versions_that_record_different_quantities_cannot_be_compared():
    with pytest.raises(ParityError, match="only one side has gradient::v"):
        compare_steps([step(1.0, 2.0)] * 2, [{**step(1.0, 2.0), "gradient::v": np.array(0.0)}] * 2)


@pytest.fixture
def batch(tmp_path):
    path = tmp_path / "original_n1_7_simpler_env_widowx.npz"
    np.savez(path, **raw_arrays_of(load_case("model", "simpler_env_widowx_h1_b1")))
    return path


def train(batch: Path, *options: str) -> int:
    return main(
        ["train", "--checkpoint", str(TINY_SINGLE), "--batch", str(batch), "--device", "cpu", "--runs", "2", *options]
    )


def test_a_step_is_recorded_the_same_twice(batch):
    first, second = (
        record_training_step(str(TINY_SINGLE), batch, backbone=None, device="cpu", dtype=torch.float32, seed=7)
        for _ in range(2)
    )
    result = compare_steps([first, first], [second, second])
    assert result.inside
    assert first["loss"] > 0
    assert sum(name.startswith("gradient::") for name in first) == 301
    another = record_training_step(str(TINY_SINGLE), batch, backbone=None, device="cpu", dtype=torch.float32, seed=8)
    assert not compare_steps([first, second], [another, another]).inside


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_same_code_is_inside_and_a_changed_version_outside(batch, tmp_path, capsys):
    """The changed version normalises with another epsilon, which no tolerance on actions would show."""
    version = tmp_path / "version"
    shutil.copytree(REPOSITORY, version / "groot_ros", ignore=shutil.ignore_patterns("__pycache__"))
    assert train(batch, "--other", sys.executable, "--other-path", str(version)) == 0
    assert "Training step: inside the run-to-run envelope" in capsys.readouterr().out
    attention = version / "groot_ros" / "model" / "dit.py"
    source = attention.read_text()
    assert "eps=1e-5" in source
    attention.write_text(source.replace("eps=1e-5", "eps=1.1e-5"))
    assert train(batch, "--other-path", str(version)) == 1
    printed = capsys.readouterr().out
    assert "OUTSIDE" in printed
    assert "| preprocessor::pixel_values | 0 | 0 | 0 | inside |" in printed


@pytest.mark.slow
def test_an_environment_that_cannot_run_is_named(batch, tmp_path, capsys):
    (tmp_path / "groot_ros").mkdir()
    (tmp_path / "groot_ros" / "__init__.py").touch()
    assert train(batch, "--other-path", str(tmp_path)) == 2
    assert "could not record a training step: ModuleNotFoundError" in capsys.readouterr().err


def test_one_run_is_no_control(batch, capsys):
    assert train(batch, "--runs", "1") == 2
    assert "there is no control" in capsys.readouterr().err
