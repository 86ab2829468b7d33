"""Space on the disk, and a reserve of it that lets an episode be finished when the disk is full."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

RESERVE_FILE = ".reserve"
RESERVE_BYTES = 4 << 20
"""Index and metadata of an episode of an hour."""


def free_bytes(folder: Path) -> int:
    """Bytes that this user may still write."""
    return shutil.disk_usage(folder).free


def take_reserve(folder: Path) -> None:
    """Occupy what finishing an episode needs.

    Raises:
        OSError: There is not even that.

    """
    with (folder / RESERVE_FILE).open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, RESERVE_BYTES)


def give_reserve_back(folder: Path) -> None:
    """Make room for finishing an episode."""
    (folder / RESERVE_FILE).unlink(missing_ok=True)
