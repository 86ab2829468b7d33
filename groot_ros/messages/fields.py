"""Numbers at a path inside any message, as ``linear.x`` or ``points[-1].positions[2]``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from groot_ros.contract.field_path import parse_field_path
from groot_ros.errors import MessageError


def read_field(message: Any, path: str, where: str) -> Any:  # noqa: ANN401 - any field of any message
    """What lies at ``path``.

    Raises:
        MessageError: The message has no such field, or too few elements.

    """
    value = message
    for step in parse_field_path(path):
        if isinstance(step, int):
            if not -len(value) <= step < len(value):
                msg = f"{where}: {path} asks for element {step}, but there are {len(value)}"
                raise MessageError(msg)
            value = value[step]
        elif hasattr(value, step):
            value = getattr(value, step)
        else:
            msg = f"{where}: {type(value).__name__} has no field {step!r} (path {path}); it has {_fields(value)}"
            raise MessageError(msg)
    return value


def read_numbers(message: Any, paths: tuple[str, ...], where: str) -> NDArray[np.float64]:  # noqa: ANN401
    """The numbers at ``paths``, float64 ``(D,)``; booleans are 0 and 1.

    Raises:
        MessageError: A path leads nowhere, to something that is not one number, or to one that is not finite.

    """
    values = np.empty(len(paths))
    for row, path in enumerate(paths):
        value = read_field(message, path, where)
        if not isinstance(value, int | float | np.number | np.bool_):
            msg = f"{where}: {path} is {type(value).__name__}, wanted one number"
            raise MessageError(msg)
        values[row] = value
    return finite(values, paths, where)


def finite(values: NDArray[np.float64], names: tuple[str, ...], where: str) -> NDArray[np.float64]:
    """The values themselves, if each is finite.

    Raises:
        MessageError: One is not; it is named.

    """
    if not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values))[0])
        msg = f"{where}: {names[row]} is {values[row]}; a state must be finite"
        raise MessageError(msg)
    return values


def as_floats(values: Any, where: str) -> NDArray[np.float64]:  # noqa: ANN401 - array.array, list, ndarray
    """A message's list of numbers as float64 ``(N,)``.

    Raises:
        MessageError: It is not a list of numbers.

    """
    try:
        numbers = np.asarray(values, np.float64)
    except (TypeError, ValueError) as error:
        msg = f"{where}: found {type(values).__name__}, wanted a list of numbers"
        raise MessageError(msg) from error
    if numbers.ndim != 1:
        msg = f"{where}: found {type(values).__name__}, wanted a list of numbers"
        raise MessageError(msg)
    return numbers


def _fields(value: object) -> str:
    if hasattr(value, "get_fields_and_field_types"):
        return ", ".join(value.get_fields_and_field_types())
    return ", ".join(getattr(value, "__dataclass_fields__", ())) or "none"
