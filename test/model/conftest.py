from __future__ import annotations

import pytest
from support.networks import tiny_network

from groot_ros.model import GrootN17


@pytest.fixture(scope="session")
def network() -> GrootN17:
    return tiny_network()
