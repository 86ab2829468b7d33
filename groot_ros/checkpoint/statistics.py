"""``statistics.json``: the numbers that normalisation is made of, per embodiment tag."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groot_ros.checkpoint.fields import Fields
from groot_ros.errors import CheckpointError


@dataclass(frozen=True)
class KeyStatistics:
    """Statistics of one modality key, float64.

    Each array is ``(D,)``; for relative actions ``(T, D)``, one row per time step of the chunk (a file may also give
    ``(D,)`` there). ``q01`` and ``q99`` are None where a file has none.
    """

    min: NDArray[np.float64]
    max: NDArray[np.float64]
    mean: NDArray[np.float64]
    std: NDArray[np.float64]
    q01: NDArray[np.float64] | None = None
    q99: NDArray[np.float64] | None = None

    @property
    def dimension(self) -> int:
        """Number of dimensions D."""
        return int(self.min.shape[-1])


@dataclass(frozen=True)
class TagStatistics:
    """Statistics of one embodiment tag, by modality key."""

    state: dict[str, KeyStatistics] = field(default_factory=dict)
    action: dict[str, KeyStatistics] = field(default_factory=dict)
    relative_action: dict[str, KeyStatistics] = field(default_factory=dict)


def parse_statistics(data: dict[str, Any], where: str) -> dict[str, TagStatistics]:
    """Read the content of ``statistics.json``: tag to statistics. It may be empty.

    Args:
        data: The parsed JSON.
        where: The file, for the messages.

    Raises:
        CheckpointError: An entry is missing, not a list of finite numbers, or of another length than its neighbours.

    """
    statistics = {}
    for tag, entries in data.items():
        fields = Fields(entries, f"{where}: {tag}")
        statistics[tag] = TagStatistics(
            state=_group(fields, "state"),
            action=_group(fields, "action"),
            relative_action=_group(fields, "relative_action", per_step=True),
        )
        fields.refuse_unknown()
    return statistics


def _group(fields: Fields, modality: str, *, per_step: bool = False) -> dict[str, KeyStatistics]:
    if fields.value(modality) is None:
        return {}
    group = fields.inner(modality)
    return {key: _key_statistics(group.inner(key), per_step=per_step) for key in group.keys()}  # noqa: SIM118


def _key_statistics(fields: Fields, *, per_step: bool) -> KeyStatistics:
    arrays: dict[str, NDArray[np.float64]] = {}
    for name in ("min", "max", "mean", "std", "q01", "q99"):
        value = fields.value(name)
        if value is None:
            if name in ("q01", "q99"):
                continue
            msg = f"{fields.where}: {name} is missing."
            raise CheckpointError(msg)
        wanted = "a list of numbers, or one such list for each time step" if per_step else "a list of numbers"
        try:
            array = np.asarray(value, dtype=np.float64)
        except (TypeError, ValueError):
            fields.refuse(name, wanted)
        if array.ndim not in ((1, 2) if per_step else (1,)):
            fields.refuse(name, wanted)
        if not np.isfinite(array).all():
            fields.refuse(name, "a list of finite numbers: these statistics were taken from damaged data")
        if arrays and array.shape != arrays["min"].shape:
            msg = f"{fields.where}: {name} has the shape {array.shape}, but min has {arrays['min'].shape}."
            raise CheckpointError(msg)
        array.setflags(write=False)
        arrays[name] = array
    return KeyStatistics(**arrays)
