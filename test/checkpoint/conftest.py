"""Copies of the golden checkpoint that a test may damage."""

import json
import shutil

import pytest
from support.golden import BACKBONE, TINY_SHARDED, TINY_SINGLE


def edit_json(path, change):
    """Read a JSON file, let ``change`` alter it in place, and write it back."""
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))


def edit_kwargs(checkpoint, change):
    """Alter ``processor_kwargs`` of a checkpoint."""
    edit_json(checkpoint / "processor_config.json", lambda data: change(data["processor_kwargs"]))


def _copy(source, folder):
    shutil.copytree(source, folder / "checkpoint")
    shutil.copytree(BACKBONE, folder / "Qwen" / "Qwen3-VL-tiny")
    return folder / "checkpoint"


@pytest.fixture
def single(tmp_path):
    """A copy of the checkpoint in one file."""
    return _copy(TINY_SINGLE, tmp_path)


@pytest.fixture
def sharded(tmp_path):
    """A copy of the checkpoint in five files."""
    return _copy(TINY_SHARDED, tmp_path)
