"""``benchmark``: the table, the figures in a file, and what is refused."""

from __future__ import annotations

import json

import pytest
from support.golden import TINY_SINGLE

from groot_ros.checkpoint import write_tiny_checkpoint
from groot_ros.cli.benchmark import main
from groot_ros.evaluation.speed import COLUMNS


@pytest.fixture(name="checkpoint", scope="module")
def make_checkpoint(tmp_path_factory):
    directory = tmp_path_factory.mktemp("benchmark") / "checkpoint"
    write_tiny_checkpoint(directory, embodiment_tag="new_embodiment")
    return directory


def test_every_column_of_every_run_is_measured(checkpoint, tmp_path, capsys):
    file = tmp_path / "speed.json"
    assert (
        main([str(checkpoint), "--device", "cpu", "--runs", "3", "--camera-size", "128x96", "--json", str(file)]) == 0
    )
    content = json.loads(file.read_text())
    assert tuple(content["times_s"]) == COLUMNS
    for run in range(3):
        stages = [content["times_s"][column][run] for column in COLUMNS]
        assert min(stages) > 0
        assert stages[-1] == pytest.approx(sum(stages[:-1]))
    for figures in content["summary"].values():
        assert figures["minimum_ms"] <= figures["median_ms"] <= figures["p95_ms"]
    printed = capsys.readouterr().out
    for words in ("Data processing", "Backbone", "Action head", "End to end", "CPU, ", "4 denoising steps", "a second"):
        assert words in printed


def test_a_checkpoint_of_many_tags_needs_one_named(capsys):
    assert main([str(TINY_SINGLE), "--device", "cpu"]) == 2
    assert "--embodiment-tag is needed: the checkpoint has" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--camera-size", "480"], "'480' is not a size: write it as 640x480"),
        (["--runs", "0"], "it must be 1 or more"),
    ],
)
def test_arguments_that_mean_nothing_are_refused(checkpoint, arguments, sentence, capsys):
    with pytest.raises(SystemExit):
        main([str(checkpoint), *arguments])
    assert sentence in capsys.readouterr().err


def test_a_device_that_is_not_there_is_named(checkpoint, capsys):
    assert main([str(checkpoint), "--device", "tpu"]) == 2
    assert "device: found 'tpu'; allowed are auto, cpu, cuda and cuda:N" in capsys.readouterr().err
