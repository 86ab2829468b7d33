"""The tiny checkpoint and its network, once for all tests of parity."""

from __future__ import annotations

import pytest
import torch
from support.golden import TINY_SINGLE

from groot_ros.checkpoint import Checkpoint, open_checkpoint
from groot_ros.model import GrootN17
from groot_ros.parity.network import load_network


@pytest.fixture(scope="session", name="tiny")
def open_tiny() -> Checkpoint:
    return open_checkpoint(TINY_SINGLE)


@pytest.fixture(scope="session")
def tiny_network(tiny: Checkpoint) -> GrootN17:
    return load_network(tiny, torch.device("cpu"), "float32")
