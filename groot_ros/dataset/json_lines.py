"""A file of JSON lines, one an episode, that grows at its end and mends a torn tail by itself."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from groot_ros.dataset.files import sync_directory, unwritable


class JsonLines:
    """Record i is line i. Records from a write that was cut short are overwritten by the next one.

    Args:
        path: The file; need not exist.
        count: How many records are known to be good; whatever follows them is dropped at the next write.

    """

    def __init__(self, path: Path, count: int) -> None:
        self._path = path
        self._ends = [0]  # byte offset behind each good record
        if path.exists():
            offset = 0
            for line in path.read_bytes().splitlines(keepends=True)[:count]:
                offset += len(line)
                self._ends.append(offset)

    def __len__(self) -> int:
        """Return the number of good records."""
        return len(self._ends) - 1

    def put(self, index: int, record: dict[str, Any]) -> None:
        """Write record ``index``, at most one behind the last; records from ``index`` on are replaced.

        Raises:
            DatasetError: The system refused to write.

        """
        if not 0 <= index <= len(self):
            msg = f"record {index} of {self._path} cannot follow its {len(self)} records"
            raise IndexError(msg)
        line = json.dumps(record, ensure_ascii=False).encode() + b"\n"
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("r+b" if self._path.exists() else "w+b") as file:
                file.truncate(self._ends[index])
                file.seek(self._ends[index])
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
            sync_directory(self._path.parent)
        except OSError as error:
            raise unwritable(self._path, error) from error
        del self._ends[index + 1 :]
        self._ends.append(self._ends[index] + len(line))
