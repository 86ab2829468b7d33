"""Typed, strict reading of JSON: every error names the file, the key, what was found and what is allowed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NoReturn

from groot_ros.errors import CheckpointError


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object from a file.

    Raises:
        CheckpointError: The file is missing, unreadable, not UTF-8, not JSON, or not an object.

    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        msg = f"{path} is missing: copy the whole checkpoint folder, or download it again."
        raise CheckpointError(msg) from None
    except (OSError, UnicodeDecodeError) as error:
        msg = f"{path} cannot be read ({error}): copy or download it again."
        raise CheckpointError(msg) from error
    try:
        data = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        msg = f"{path} is damaged JSON ({error}): copy or download it again."
        raise CheckpointError(msg) from error
    if not isinstance(data, dict):
        msg = f"{path} holds a JSON {type(data).__name__}, but must hold an object: it is not the file it should be."
        raise CheckpointError(msg)
    return data


class Fields:
    """A JSON object that is read key by key; what was not read at the end is unknown and can be refused."""

    def __init__(self, data: object, where: str) -> None:
        if not isinstance(data, dict):
            msg = f"{where} is {data!r}, but must be a JSON object."
            raise CheckpointError(msg)
        self._data: dict[str, Any] = data
        self._read: set[str] = set()
        self.where = where

    def __contains__(self, key: str) -> bool:
        """Return whether the object has the key."""
        return key in self._data

    @property
    def content(self) -> dict[str, Any]:
        """The object itself, as a copy."""
        return dict(self._data)

    def keys(self) -> list[str]:
        """Keys in the order of the file."""
        return list(self._data)

    def refuse(self, key: str, wanted: str) -> NoReturn:
        """Raise the error for the value of ``key``, which is not ``wanted``."""
        msg = f"{self.where}: {key} is {_short(self._data.get(key))}, but must be {wanted}."
        raise CheckpointError(msg)

    def value(self, key: str, default: object = None) -> Any:  # noqa: ANN401 - JSON values have any type
        """Return the raw value, or ``default`` where the key is absent."""
        self._read.add(key)
        return self._data.get(key, default)

    def integer(self, key: str, default: int | None = None, *, minimum: int = 0) -> int:
        """Return a whole number of at least ``minimum``; without a default the key is required."""
        value = self._required(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
            self.refuse(key, f"a whole number of at least {minimum}")
        return value

    def number(self, key: str, default: float | None = None, *, minimum: float = 0.0) -> float:
        """Return a finite number of at least ``minimum``; without a default the key is required."""
        value = self._required(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not minimum <= value < float("inf"):
            self.refuse(key, f"a number of at least {minimum}")
        return float(value)

    def fraction(self, key: str, default: float | None) -> float:
        """Return a number between 0 and 1, both included."""
        value = self.number(key, default)
        if value > 1.0:
            self.refuse(key, "a number between 0 and 1")
        return value

    def boolean(self, key: str, default: bool) -> bool:
        """Return true or false."""
        value = self.value(key, default)
        if not isinstance(value, bool):
            self.refuse(key, "true or false")
        return value

    def text(self, key: str, default: str | None = None) -> str:
        """Return a non-empty string; without a default the key is required."""
        value = self._required(key, default)
        if not isinstance(value, str) or not value:
            self.refuse(key, "a non-empty string")
        return value

    def only(self, key: str, allowed: tuple[object, ...], default: object) -> None:
        """Require that ``key``, or its default where it is absent, is one of ``allowed``: others change numbers."""
        value = self.value(key, default)
        if not any(value == choice and type(value) is type(choice) for choice in allowed):
            wanted = " or ".join(json.dumps(choice) for choice in allowed)
            found = _short(value) if key in self._data else f"absent, which means {_short(value)}"
            msg = f"{self.where}: {key} is {found}, but only {wanted} is supported, as in every released checkpoint."
            raise CheckpointError(msg)

    def names(self, key: str, *, optional: bool = False) -> tuple[str, ...]:
        """Return a list of different non-empty strings; null and absence give none where it is optional."""
        value = self.value(key)
        if value is None and optional:
            return ()
        if not isinstance(value, list) or not all(isinstance(name, str) and name for name in value):
            self.refuse(key, "a list of names")
        if len(set(value)) != len(value):
            self.refuse(key, "a list of different names")
        return tuple(value)

    def inner(self, key: str) -> Fields:
        """Return a required inner object."""
        return Fields(self._required(key, None), f"{self.where}: {key}")

    def refuse_unknown(self, harmless: frozenset[str] = frozenset()) -> None:
        """Refuse keys that nobody read and that are not known to be harmless: they may change numbers."""
        unknown = [key for key in self._data if key not in self._read and key not in harmless]
        if unknown:
            msg = (
                f"{self.where}: unknown {'keys' if len(unknown) > 1 else 'key'} {', '.join(unknown)}: "
                "this version does not know what it changes in the numbers; "
                "update groot_ros, or remove it if you know that it changes nothing."
            )
            raise CheckpointError(msg)

    def _required(self, key: str, default: object) -> Any:  # noqa: ANN401
        if key not in self._data and default is None:
            msg = f"{self.where}: {key} is missing."
            raise CheckpointError(msg)
        return self.value(key, default)


def _short(value: object) -> str:
    """Write a value as JSON, cut to a length that fits a sentence."""
    text = json.dumps(value, default=str)
    return text if len(text) <= 80 else text[:77] + "..."
