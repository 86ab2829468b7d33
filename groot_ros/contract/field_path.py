"""Paths to a field inside a message, as ``linear.x`` or ``points[-1].positions[2]``."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Annotated

from pydantic import AfterValidator

from groot_ros.contract.schema import FaultyKeyError

STEP = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)((?:\[-?[0-9]+\])*)")


@lru_cache(maxsize=1024)
def parse_field_path(path: str) -> tuple[str | int, ...]:
    """A path as field names and indices.

    Raises:
        FaultyKeyError: It is not written as ``field.field[index]``.

    """
    steps: list[str | int] = []
    for piece in path.split("."):
        match = STEP.fullmatch(piece)
        if match is None:
            raise FaultyKeyError("", f"found {path!r}", "write a path as linear.x or points[0].positions[2]")
        steps.append(match[1])
        steps += [int(index) for index in re.findall(r"-?[0-9]+", match[2])]
    return tuple(steps)


def _checked(path: str) -> str:
    parse_field_path(path)
    return path


FieldPath = Annotated[str, AfterValidator(_checked)]
