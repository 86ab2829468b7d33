"""Compare one quantity of two implementations: how far apart, where most, and whether that is allowed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groot_ros.parity.tolerances import EXACT, Tolerance

Array = NDArray[Any]


@dataclass(frozen=True)
class Comparison:
    """The result for one quantity.

    Attributes:
        part: ``preprocessor``, ``model``, ``decoder``, ``chunking`` or ``training``.
        quantity: What was compared.
        shape: Shape on the other side.
        passed: Whether all is within the tolerance.
        largest: Largest difference; not a number where the shapes differ.
        mean: Mean difference.
        worst: Index of the element that exceeds its tolerance most, or comes nearest to it; empty where all are equal.
        tolerance: In words.
        remark: What the numbers do not say.

    """

    part: str
    quantity: str
    shape: tuple[int, ...]
    passed: bool
    largest: float
    mean: float
    worst: tuple[int, ...]
    tolerance: str
    remark: str = ""


def compare(part: str, quantity: str, ours: Array, theirs: Array, tolerance: Tolerance = EXACT) -> Comparison:
    """Compare numbers."""
    if ours.shape != theirs.shape:
        remark = f"shape {ours.shape} here, {theirs.shape} there"
        return Comparison(part, quantity, theirs.shape, False, np.nan, np.nan, (), str(tolerance), remark)
    if theirs.size == 0:
        return Comparison(part, quantity, theirs.shape, True, 0.0, 0.0, (), str(tolerance))
    difference = np.abs(ours.astype(np.float64) - theirs.astype(np.float64))
    # What is not a number on one side alone is as far away as can be.
    difference = np.where(np.isnan(difference), np.where(np.isnan(ours) == np.isnan(theirs), 0.0, np.inf), difference)
    excess = difference - tolerance.allowed(np.nan_to_num(theirs))
    worst = np.unravel_index(int(np.argmax(excess)), excess.shape)
    return Comparison(
        part,
        quantity,
        theirs.shape,
        bool(excess.max() <= 0.0),
        float(difference.max()),
        float(difference.mean()),
        tuple(int(index) for index in worst) if difference.any() else (),
        str(tolerance),
    )


def compare_texts(part: str, quantity: str, ours: list[str], theirs: list[str]) -> Comparison:
    """Compare texts, exactly."""
    apart = [index for index, (mine, other) in enumerate(zip(ours, theirs, strict=False)) if mine != other]
    same = not apart and len(ours) == len(theirs)
    remark = f"{ours[apart[0]]!r} here, {theirs[apart[0]]!r} there" if apart else ""
    worst = tuple(apart[:1])
    return Comparison(part, quantity, (len(theirs),), same, float(len(apart)), 0.0, worst, str(EXACT), remark)
