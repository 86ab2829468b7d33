"""Space on the disk, and a reserve of it that lets an episode be finished when the disk is full."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path

RESERVE_FILE = ".reserve"
RESERVE_BYTES = 4 << 20
"""Index and metadata of ten minutes of three raw cameras."""
TRIAL_PIECE_BYTES, TRIAL_BYTES, TRIAL_S = 8 << 20, 64 << 20, 1.0
"""A trial of the disk ends with whichever comes first."""


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


def try_speed(folder: Path) -> float | None:
    """Write a file, until it is on the disk, and throw it away: bytes a second; None where it cannot be written."""
    piece = os.urandom(TRIAL_PIECE_BYTES)
    written, begun_s = 0, time.monotonic()
    try:
        with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
            while written < TRIAL_BYTES and time.monotonic() < begun_s + TRIAL_S:
                written += file.write(piece)
                os.fsync(file.fileno())
    except OSError:  # said when an episode begins
        return None
    return written / (time.monotonic() - begun_s)
