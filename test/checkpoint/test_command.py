"""The command line: what it prints, and how it ends."""

import json
import subprocess
import sys

import pytest
from support.golden import TINY_SINGLE

from groot_ros import __main__ as entrance
from groot_ros.cli import checkpoint as command


def run(capsys, *arguments):
    status = command.main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_inspect_says_what_is_needed_to_wire_a_robot_in_80_columns(capsys):
    status, text, errors = run(capsys, "inspect", TINY_SINGLE)
    assert (status, errors) == (0, "")
    assert max(len(line) for line in text.splitlines()) <= 80
    section = text.split("Tag oxe_droid_relative_eef_relative_joint")[1].split("\nTag ")[0]
    assert "exterior_image_1_left, wrist_image_left (in this order)" in section
    assert "2 frames each, at rows -15, 0; 352 image tokens together" in section
    assert "20 rows; projector 24" in section
    assert "pose xyz+rot6d" in section
    assert "sin/cos" in text
    assert "mean/std" in text
    assert "640x480 -> 352x256 pixels, 88 image tokens" in text
    assert "shortest edge 256, centre crop 0.95, OpenCV area" in text
    assert "not recorded" in text
    assert "0.56 M" in text
    assert "bfloat16 1.1 MB" in text
    assert "unitree_g1_sonic" in text.split("Tags that need fine-tuning")[1]


def test_inspect_prints_plain_text_into_a_pipe():
    command_line = [sys.executable, "-m", "groot_ros", "checkpoint", "inspect", str(TINY_SINGLE)]
    text = subprocess.run(command_line, capture_output=True, text=True, check=True).stdout
    assert "\x1b" not in text
    assert max(len(line) for line in text.splitlines()) <= 80


def test_image_tokens_follow_the_camera(capsys):
    _, text, _ = run(capsys, "inspect", TINY_SINGLE, "--camera-size", "320x180")
    assert "320x180 -> 448x256 pixels, 112 image tokens" in text


def test_inspect_as_json_holds_the_same(capsys):
    status, text, _ = run(capsys, "inspect", TINY_SINGLE, "--json")
    report = json.loads(text)
    assert status == 0
    assert report["network"]["total"] == 561212
    assert report["network"]["memory_bytes"] == {"float32": 2244848, "bfloat16": 1122424}
    assert report["images"]["tokens"] == 88
    arm = report["tags"]["new_embodiment"]["actions"][0]
    assert (arm["group"], arm["dimensions"], arm["representation"]) == ("single_arm", 5, "relative to single_arm")


def test_a_tag_that_does_not_fit_is_shown_with_its_reason(capsys, single):
    statistics = json.loads((single / "statistics.json").read_text())
    del statistics["new_embodiment"]["relative_action"]
    (single / "statistics.json").write_text(json.dumps(statistics))
    status, text, _ = run(capsys, "inspect", single)
    assert status == 0
    assert "cannot be used" in text.split("Tag new_embodiment")[1].split("\nTag ")[0]


def test_an_error_is_one_sentence_without_a_traceback(capsys, tmp_path):
    status, text, errors = run(capsys, "inspect", tmp_path)
    assert (status, text) == (2, "")
    assert errors == f"error: {tmp_path} has no config.json: give a GR00T N1.7 checkpoint folder.\n"


def test_tiny_and_bundle(capsys, tmp_path, single):
    status, text, _ = run(capsys, "tiny", tmp_path / "tiny", "--camera", "top", "--fps", "20")
    assert status == 0
    assert "moves without purpose" in text
    report = json.loads(run(capsys, "inspect", tmp_path / "tiny", "--json")[1])
    assert report["fps"] == 20
    assert report["tags"]["new_embodiment"]["cameras"] == ["top"]
    status, text, _ = run(capsys, "bundle", single, "--output", tmp_path / "whole")
    assert (status, text) == (0, f"{tmp_path / 'whole'} is whole: it needs no other file and no network.\n")


@pytest.mark.parametrize("size", ["640", "0x480", "axb", "640x-1"])
def test_a_camera_size_is_written_as_width_and_height(capsys, size):
    with pytest.raises(SystemExit):
        command.main(["inspect", str(TINY_SINGLE), "--camera-size", size])
    assert "is not a size: write it as 640x480" in capsys.readouterr().err


def test_the_list_of_tools_names_those_that_are_installed(capsys):
    assert entrance.main([]) == 0
    text = capsys.readouterr().out
    assert "  checkpoint   inspect a checkpoint" in text
    assert entrance.main(["chekpoint"]) == 2
    assert "error: there is no tool 'chekpoint'." in capsys.readouterr().err


def test_every_tool_of_the_list_has_a_help_with_examples():
    assert set(entrance.available()) <= set(entrance.TOOLS)
    assert "examples:" in command._parser().format_help()


def test_the_tools_pass_on_their_arguments(capsys, tmp_path):
    assert entrance.main(["checkpoint", "inspect", str(tmp_path)]) == 2
    assert "has no config.json" in capsys.readouterr().err
