"""A tiny base model and a small dataset that is trained on in a moment."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.datasets import write_dataset
from support.training import CONTRACT, write_base_model


@pytest.fixture(scope="session")
def dataset(tmp_path_factory) -> Path:
    return write_dataset(tmp_path_factory.mktemp("training") / "dataset", lengths=(16, 14, 15, 12))


@pytest.fixture(scope="session")
def base_model(tmp_path_factory) -> Path:
    return write_base_model(tmp_path_factory.mktemp("training") / "base")


@pytest.fixture(scope="session")
def contract(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("training") / "contract.yaml"
    path.write_text(CONTRACT)
    return path
