"""One writer at a time: the directory of a dataset is locked by the system, which a crash cannot leave locked."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from groot_ros.dataset.files import unwritable
from groot_ros.errors import DatasetError


def lock_directory(root: Path) -> int:
    """Lock a directory, made where it is missing.

    Returns:
        The descriptor that holds the lock: closing it lets others in, and so does the end of the process.

    Raises:
        DatasetError: Another process has it, or the system refuses.

    """
    try:
        root.mkdir(parents=True, exist_ok=True)
        lock = os.open(root, os.O_RDONLY)
    except OSError as error:
        raise unwritable(root, error) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(lock)
        msg = f"{root} is being written by another process: wait until it has ended"
        raise DatasetError(msg) from error
    return lock
