"""Checks on groups of values from outside: the right keys, the right widths, finite. Each says what it found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from groot_ros.errors import GrootError


def require_keys(given: Iterable[str], wanted: Iterable[str], *, what: str, error: type[GrootError]) -> None:
    """Refuse groups that are missing and groups that nobody knows.

    Args:
        given: The keys that came.
        wanted: The keys of the modality.
        what: What they belong to, for the message: ``state``.
        error: The exception to raise.

    """
    given, wanted = list(given), list(wanted)
    missing = [key for key in wanted if key not in given]
    unknown = [key for key in given if key not in wanted]
    if missing or unknown:
        parts = []
        if missing:
            parts.append(f"{', '.join(map(repr, missing))} missing")
        if unknown:
            parts.append(f"{', '.join(map(repr, unknown))} unknown")
        msg = f"{what}: {' and '.join(parts)}; the groups are {', '.join(map(repr, wanted))}, found {given}"
        raise error(msg)


def require_shape(
    values: NDArray[np.generic], *, rows: int | None, width: int, what: str, error: type[GrootError]
) -> None:
    """Refuse an array that is not ``(rows, width)``; rows None takes any number of them but zero."""
    wrong_rows = values.ndim == 2 and (values.shape[0] != rows if rows is not None else values.shape[0] == 0)
    if values.ndim != 2 or values.shape[1] != width or wrong_rows:
        wanted = f"({'at least 1' if rows is None else rows}, {width})"
        msg = f"{what}: found shape {values.shape}, but rows by dimensions must be {wanted}"
        raise error(msg)


def require_finite(
    groups: Mapping[str, NDArray[np.floating]], *, what: str, advice: str, error: type[GrootError]
) -> None:
    """Refuse NaN and infinity, naming the first: group, dimension, row and value.

    Args:
        groups: Values ``(..., D)`` by key; the axis before the last is rows.
        what: What they belong to, for the message.
        advice: How to mend it.
        error: The exception to raise.

    """
    for key, values in groups.items():
        bad = np.argwhere(~np.isfinite(values))
        if len(bad):
            place = tuple(int(index) for index in bad[0])
            sample = f" of sample {place[0]}" if len(place) > 2 else ""
            found = values[place]
            msg = (
                f"{what}: group {key!r}, dimension {place[-1]}, row {place[-2]}{sample} is {found}; {advice}"
                f"{f' ({len(bad)} such values in this group)' if len(bad) > 1 else ''}"
            )
            raise error(msg)
