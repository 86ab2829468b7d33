"""Artifacts of real checkpoints, where a user has made some: set GROOT_N1_7_PARITY_DIR and GROOT_N1_7_LIBERO_CKPT."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from groot_ros.checkpoint import open_checkpoint
from groot_ros.errors import ParityError
from groot_ros.parity.artifact import find_artifacts, load_artifact
from groot_ros.parity.check import check_artifact
from groot_ros.parity.network import load_network
from groot_ros.parity.report import markdown
from groot_ros.parity.tolerances import Tolerances
from groot_ros.policy import select_device
from groot_ros.processing.processor import Processor


def artifacts() -> list[Path]:
    folder = os.environ.get("GROOT_N1_7_PARITY_DIR")
    try:
        return find_artifacts(Path(folder)) if folder else []
    except ParityError:
        return []


@pytest.fixture(scope="module")
def checkpoint():
    path = os.environ.get("GROOT_N1_7_LIBERO_CKPT")
    if not path or not Path(path).is_dir():
        pytest.skip("GROOT_N1_7_LIBERO_CKPT does not name the folder of a checkpoint")
    return open_checkpoint(path)


@pytest.fixture(scope="module")
def network(checkpoint):
    return load_network(checkpoint, select_device(os.environ.get("GROOT_PARITY_DEVICE", "auto")), "float32")


@pytest.mark.skipif(not artifacts(), reason="GROOT_N1_7_PARITY_DIR does not name a folder with parity artifacts")
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("path", artifacts(), ids=lambda path: path.stem)
def test_everything_agrees_with_the_users_artifact(path, checkpoint, network):
    tolerances = Tolerances.same_for_all(
        float(os.environ.get("GROOT_PARITY_ATOL", "1e-3")), float(os.environ.get("GROOT_PARITY_RTOL", "1e-3"))
    )
    artifact = load_artifact(path)
    report = check_artifact(artifact, Processor(checkpoint, artifact.tag), network, tolerances)
    assert report.passed, markdown([report], str(network.device))
