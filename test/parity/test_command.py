"""``python -m groot_ros parity``: what it prints, and how it ends."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.golden import TINY_SINGLE, load_case
from support.parity import ORIGINAL, observations_of

import groot_ros
from groot_ros.cli.parity import main
from groot_ros.parity.record import record_artifact
from groot_ros.processing.processor import Processor

NAME = "original_n1_7_robocasa_panda_omron.npz"


@pytest.fixture(autouse=True)
def no_variables(monkeypatch):
    for name in ("GROOT_N1_7_PARITY_DIR", "GROOT_PARITY_DEVICE", "GROOT_PARITY_ATOL", "GROOT_PARITY_RTOL"):
        monkeypatch.delenv(name, raising=False)


def changed_copy(folder: Path, **changes: np.ndarray | None) -> Path:
    """A folder with one of the original's artifacts, arrays replaced, or left out where None."""
    with np.load(ORIGINAL / NAME) as archive:
        arrays = {key: archive[key] for key in archive.files}
    arrays.update(changes)
    np.savez(folder / NAME, **{key: array for key, array in arrays.items() if array is not None})
    return folder


def check(folder: Path, *options: str) -> int:
    return main(["check", str(folder), "--checkpoint", str(TINY_SINGLE), "--device", "cpu", *options])


def test_agreement_is_status_0_and_a_table_that_can_be_pasted(capsys):
    assert check(ORIGINAL, "--tags", "libero_sim,robocasa_panda_omron") == 0
    printed = capsys.readouterr().out
    assert "## GR00T N1.7 parity: pass, 2 of 2 tags" in printed
    rows = [line for line in printed.splitlines() if line.startswith("| model | action_pred |")]
    assert len(rows) == 2
    assert all(row.count("|") == 9 and row.endswith("| pass |") for row in rows)
    assert re.search(r"^There: NVIDIA gr00t .*transformers 4\.57\.3.*attention sdpa", printed, re.MULTILINE)
    assert re.search(r"^Here: python \S+, .*torch .*transformers ", printed, re.MULTILINE)


def test_a_difference_is_status_1_and_says_where_it_is_largest(tmp_path, capsys):
    with np.load(ORIGINAL / NAME) as archive:
        actions = archive["action_pred"].copy()
    actions[0, 5, 7] += 0.1
    assert check(changed_copy(tmp_path, action_pred=actions)) == 1
    printed = capsys.readouterr().out
    assert "## GR00T N1.7 parity: FAIL, 1 of 1 tags: robocasa_panda_omron" in printed
    assert re.search(r"\| model \| action_pred \| 1x20x18 \| 0\.1 \| \S+ \| \[0, 5, 7\] \|.*\| FAIL \|", printed)
    assert "First stage at which the two part: action_pred" in printed


def test_the_tolerance_can_be_given_as_option_or_variable(tmp_path, monkeypatch):
    with np.load(ORIGINAL / NAME) as archive:
        decoded = {key: None for key in archive.files if key.startswith("decoded::")}
        actions = archive["action_pred"] + np.float32(5e-3)
    folder = changed_copy(tmp_path, action_pred=actions, **decoded)
    assert check(folder, "--rtol", "0") == 1
    assert check(folder, "--rtol", "0", "--atol", "1e-2") == 0
    monkeypatch.setenv("GROOT_PARITY_RTOL", "0")
    assert check(folder) == 1
    monkeypatch.setenv("GROOT_PARITY_ATOL", "1e-2")
    assert check(folder) == 0


def test_the_folder_and_the_device_can_be_given_as_variables(monkeypatch, capsys):
    monkeypatch.setenv("GROOT_N1_7_PARITY_DIR", str(ORIGINAL))
    monkeypatch.setenv("GROOT_PARITY_DEVICE", "cpu")
    assert main(["check", "--checkpoint", str(TINY_SINGLE), "--tags", "libero_sim"]) == 0
    assert "; on cpu." in capsys.readouterr().out


def test_missing_artifacts_are_status_2(tmp_path, capsys):
    assert check(tmp_path) == 2
    assert "has no parity artifacts *_n1_7_*.npz, found nothing of the kind" in capsys.readouterr().err
    assert check(ORIGINAL, "--tags", "oxe_droid") == 2
    assert "for the tags oxe_droid, found lerobot_n1_7_simpler_env_google.npz" in capsys.readouterr().err
    assert main(["check", "--checkpoint", str(TINY_SINGLE)]) == 2
    assert "GROOT_N1_7_PARITY_DIR is not set" in capsys.readouterr().err


def test_a_missing_checkpoint_is_status_2(tmp_path, capsys):
    assert main(["check", str(ORIGINAL), "--checkpoint", str(tmp_path / "nothing")]) == 2
    assert "is not a checkpoint folder" in capsys.readouterr().err


def test_a_damaged_artifact_is_status_2(tmp_path, capsys):
    (tmp_path / NAME).write_bytes(b"PK\x03\x04 not an archive")
    assert check(tmp_path) == 2
    assert "cannot be read as an npz file of plain arrays" in capsys.readouterr().err


def test_old_artifacts_without_raw_observations_and_seed_are_still_compared(tmp_path, capsys, tiny, tiny_network):
    case = load_case("model", "robocasa_panda_omron_b1")
    processor = Processor(tiny, case.meta["tag"])
    recorded = record_artifact(processor, tiny_network, observations_of(case), seed=42)
    old = {key: array for key, array in recorded.items() if key.startswith("in::") or key == "action_pred"}
    # Older producers wrote text as pickled objects, and their usual seed was 42.
    pickled = {"meta_keys": np.array(["in::inputs.state"], dtype=object), "meta_dtypes": np.array(["x"], dtype=object)}
    np.savez(tmp_path / NAME, **old, **pickled)
    assert check(tmp_path) == 0
    printed = capsys.readouterr().out
    assert "| model | action_pred |" in printed
    assert "preprocessor not compared: the artifact has no raw observations; make the artifacts anew" in printed
    assert "the artifact names no seed: 42 is taken" in printed
    assert "decoder not compared: the artifact has no decoded actions" in printed


def test_the_producers_lie_where_dump_says_and_need_not_this_package(capsys):
    assert main(["dump"]) == 0
    producers = re.findall(r"python (\S+\.py) --checkpoint", capsys.readouterr().out)
    assert [Path(path).name for path in producers] == ["parity_dump.py", "parity_dump_lerobot.py"]
    for path in producers:
        assert "groot_ros" not in Path(path).read_text()
        assert Path(path).is_file()


def test_a_producer_starts_from_a_folder_of_its_own(tmp_path):
    main_file = Path(groot_ros.__file__).parent / "parity" / "producers" / "parity_dump.py"
    shutil.copy(main_file, tmp_path)
    done = subprocess.run(
        [sys.executable, "-I", "parity_dump.py", "--help"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    for option in ("--checkpoint", "--out", "--tags", "--device", "--seed", "--observations"):
        assert option in done.stdout
