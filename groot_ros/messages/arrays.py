"""std_msgs multi arrays: bare numbers, whose order the contract writes out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groot_ros.errors import MessageError
from groot_ros.messages.fields import as_floats, finite


def read_multi_array(message: Any, names: Sequence[str], where: str) -> NDArray[np.float64]:  # noqa: ANN401
    """The values of a Float64MultiArray, float64 ``(D,)``, in the order of ``names``.

    Raises:
        MessageError: Another number of values than names, or one that is not finite.

    """
    values = as_floats(message.data, where)
    if len(values) != len(names):
        msg = f"{where}: found {len(values)} values, wanted {len(names)}: {', '.join(names)}"
        raise MessageError(msg)
    return finite(values, tuple(names), where)
