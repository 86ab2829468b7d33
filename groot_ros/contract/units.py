"""Units: what a topic carries against what the policy was trained on, dimension by dimension, both ways."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator

from groot_ros.contract.schema import FaultyKeyError, Number, Part

UNITS: dict[str, tuple[str, float]] = {
    "rad": ("angle", 1.0),
    "deg": ("angle", math.pi / 180),
    "m": ("length", 1.0),
    "cm": ("length", 0.01),
    "mm": ("length", 0.001),
    "rad/s": ("angular velocity", 1.0),
    "deg/s": ("angular velocity", math.pi / 180),
    "m/s": ("velocity", 1.0),
    "cm/s": ("velocity", 0.01),
    "mm/s": ("velocity", 0.001),
    "ratio": ("ratio", 1.0),
    "percent": ("ratio", 0.01),
    "N": ("force", 1.0),
    "Nm": ("torque", 1.0),
}
"""Unit name to its quantity and the size of one unit in SI."""

SI_UNITS = {quantity: name for name, (quantity, size) in UNITS.items() if size == 1.0}


def _known_unit(value: object) -> object:
    if value not in UNITS:
        raise FaultyKeyError("", f"found {value!r}", f"allowed are {', '.join(UNITS)}")
    return value


UnitName = Annotated[str, BeforeValidator(_known_unit)]
Sign = Literal[1, -1]
T = TypeVar("T")


@dataclass(frozen=True)
class JointMap:
    """Topic values to policy values and back, one affine map a dimension: ``policy = factor * topic + offset``.

    Attributes:
        names: The D dimension names.
        factor: ``(D,)`` float64, never zero.
        offset: ``(D,)`` float64, in the policy's units.

    """

    names: tuple[str, ...]
    factor: NDArray[np.float64]
    offset: NDArray[np.float64]

    def to_policy(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Topic values ``(..., D)`` in the policy's units."""
        return values * self.factor + self.offset

    def to_topic(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Policy values ``(..., D)`` in the topic's units."""
        return (values - self.offset) / self.factor

    def differences(self) -> JointMap:
        """The map of differences and velocities: the same factors, no offset."""
        return JointMap(self.names, self.factor, np.zeros_like(self.offset))

    def select(self, names: Sequence[str]) -> JointMap:
        """The map of some of the dimensions, in the order asked for."""
        rows = [self.names.index(name) for name in names]
        return JointMap(tuple(names), self.factor[rows], self.offset[rows])


class UnitKeys(Part):
    """The keys that say how topic values become policy values: ``policy = sign * scale * convert(topic) + offset``.

    Each is one value for all dimensions, a list in the order of the dimensions, or a mapping by dimension name (what it
    leaves out takes the default). ``policy_unit`` alone means that the topic is in SI; a ``topic_unit`` needs a
    ``policy_unit``; without both nothing is converted. ``offset`` is in the policy's units.
    """

    topic_unit: UnitName | tuple[UnitName, ...] | dict[str, UnitName] | None = None
    policy_unit: UnitName | tuple[UnitName, ...] | dict[str, UnitName] | None = None
    sign: Sign | tuple[Sign, ...] | dict[str, Sign] = 1
    scale: Number | tuple[Number, ...] | dict[str, Number] = 1.0
    offset: Number | tuple[Number, ...] | dict[str, Number] = 0.0

    @property
    def has_units(self) -> bool:
        """Whether any of the unit keys is written."""
        return bool(self.model_fields_set & UnitKeys.model_fields.keys())

    def joint_map(self, names: Sequence[str]) -> JointMap:
        """The map of the dimensions ``names``.

        Raises:
            FaultyKeyError: A list of the wrong length, an unknown dimension, a scale of zero, or units of two kinds.

        """
        topic_units = _spread("topic_unit", self.topic_unit, names, None)
        policy_units = _spread("policy_unit", self.policy_unit, names, None)
        signs = _spread("sign", self.sign, names, 1)
        scales = _spread("scale", self.scale, names, 1.0)
        offsets = _spread("offset", self.offset, names, 0.0)
        if 0.0 in scales:
            raise FaultyKeyError("scale", "found 0", "a scale must not be zero, since commands divide by it")
        factors = [
            sign * scale * _conversion(name, topic_unit, policy_unit)
            for name, sign, scale, topic_unit, policy_unit in zip(
                names, signs, scales, topic_units, policy_units, strict=True
            )
        ]
        return JointMap(tuple(names), np.array(factors, np.float64), np.array(offsets, np.float64))

    def turns(self, wraps: Sequence[str], names: Sequence[str]) -> dict[str, float]:
        """Of each dimension in ``wraps``, the full turn in topic units.

        Raises:
            FaultyKeyError: A dimension that is no angle.

        """
        topic_units = _spread("topic_unit", self.topic_unit, names, None)
        policy_units = _spread("policy_unit", self.policy_unit, names, None)
        periods = {}
        for name in wraps:
            row = list(names).index(name)
            unit = topic_units[row] or SI_UNITS[UNITS[policy_units[row] or "rad"][0]]
            quantity, size = UNITS[unit]
            if quantity != "angle":
                raise FaultyKeyError("wraps", f"found {name!r} in {unit}", "only an angle, in rad or deg, wraps")
            periods[name] = 2 * math.pi / size
        return periods


def _spread(key: str, value: T | Sequence[T] | Mapping[str, T], names: Sequence[str], default: T) -> list[T]:
    """One value a dimension, from one of the three ways to write them."""
    if isinstance(value, Mapping):
        unknown = [name for name in value if name not in names]
        if unknown:
            raise FaultyKeyError(key, f"found dimension {unknown[0]!r}", f"known here are {', '.join(names)}")
        return [value.get(name, default) for name in names]
    if isinstance(value, tuple):
        if len(value) != len(names):
            raise FaultyKeyError(
                key, f"found {len(value)} values", f"wanted {len(names)}, one for each of {', '.join(names)}"
            )
        return list(value)
    return [value] * len(names)  # type: ignore[list-item]  # the value itself


def _conversion(name: str, topic_unit: str | None, policy_unit: str | None) -> float:
    """How many policy units one topic unit is."""
    if policy_unit is None:
        if topic_unit is None:
            return 1.0
        raise FaultyKeyError(
            "policy_unit",
            f"found no unit for {name!r}, whose topic_unit is {topic_unit}",
            "write the unit that the checkpoint was trained on",
        )
    quantity, policy_size = UNITS[policy_unit]
    topic_quantity, topic_size = UNITS[topic_unit or SI_UNITS[quantity]]
    if topic_quantity != quantity:
        raise FaultyKeyError(
            "policy_unit",
            f"found {policy_unit} ({quantity}) for {name!r}, whose topic_unit is {topic_unit} ({topic_quantity})",
            "both must measure the same quantity",
        )
    return topic_size / policy_size
