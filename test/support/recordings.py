"""Real recordings beside the repository, for tests that skip where they are absent."""

from pathlib import Path

import pytest

RECORDINGS = Path(__file__).parents[2].parent / "shared" / "data"


def recording(name: str) -> Path:
    """Directory of a recording; skips the test where it is not there."""
    path = RECORDINGS / name
    if not path.is_dir():
        pytest.skip(f"real recordings are not there: {name}")
    return path
