"""Files that are whole or not there: written under a temporary name, synced to disk, then renamed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from groot_ros.errors import DatasetError


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Give a temporary path to write to, and put what was written in the place of ``path`` at the end.

    Until then whatever lay at ``path`` stays as it was, also after a crash or on a full disk.

    Raises:
        DatasetError: The system refused to write; the sentence says why.

    """
    temporary = path.with_name(f".{path.name}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        sync_file(temporary)
        temporary.replace(path)
        sync_directory(path.parent)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise unwritable(path, error) from error
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def unwritable(path: Path, error: OSError) -> DatasetError:
    """Say for a person why ``path`` cannot be written."""
    reason = error.strerror or str(error)
    return DatasetError(
        f"{path} cannot be written: {reason}. What was finished before is whole; free space or mend the permissions "
        f"and run the same command again"
    )


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write ``content`` to ``path``, whole or not at all."""
    with whole_file(path) as temporary:
        temporary.write_text(json.dumps(content, indent=4, ensure_ascii=False) + "\n", encoding="utf-8")


def read_json(path: Path) -> dict[str, Any]:
    """Return the JSON object in ``path``.

    Raises:
        DatasetError: No such file, or not a JSON object.

    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        msg = f"{path} is missing"
        raise DatasetError(msg) from error
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        msg = f"{path} cannot be read as JSON: {error}"
        raise DatasetError(msg) from error
    if not isinstance(content, dict):
        msg = f"{path} must hold a JSON object, but holds a {type(content).__name__}"
        raise DatasetError(msg)
    return content


def read_json_lines(path: Path, keys: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return the JSON objects in ``path``, one a line.

    Args:
        path: The file.
        keys: What every object must have.

    Raises:
        DatasetError: No such file, or a line that is not a JSON object with these keys; the line is named.

    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError as error:
        msg = f"{path} is missing"
        raise DatasetError(msg) from error
    except (OSError, UnicodeDecodeError) as error:
        msg = f"{path} cannot be read: {error}"
        raise DatasetError(msg) from error
    records = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            msg = f"{path}, line {number}: not JSON ({error})"
            raise DatasetError(msg) from error
        if not isinstance(record, dict):
            msg = f"{path}, line {number}: must be a JSON object, but is a {type(record).__name__}"
            raise DatasetError(msg)
        missing = [key for key in keys if key not in record]
        if missing:
            msg = f"{path}, line {number}: has no {', '.join(missing)}"
            raise DatasetError(msg)
        records.append(record)
    return records


def move_file(source: Path, target: Path) -> None:
    """Give a file another name, and wait until that is on the disk.

    Raises:
        DatasetError: The system refused.

    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        source.replace(target)
        sync_directory(target.parent)
    except OSError as error:
        raise unwritable(target, error) from error


def sync_file(path: Path) -> None:
    """Wait until the content of ``path`` is on the disk."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def sync_directory(path: Path) -> None:
    """Wait until the names in ``path`` are on the disk, so that a rename survives a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
