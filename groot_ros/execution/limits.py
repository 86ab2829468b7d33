"""What no command may exceed, and the arithmetic that keeps commands within it and tells where it had to."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from groot_ros.contract import Contract
from groot_ros.contract.actions import Meaning
from groot_ros.execution.columns import Array, Columns
from groot_ros.execution.outputs import Route
from groot_ros.execution.urdf import UrdfLimits
from groot_ros.observation import NANOSECONDS_PER_SECOND

ROUNDING = 1e-6
"""A limit of 0.8 is 0.80000001 in the float32 of datasets and networks: so little beyond it, as a share of the value
(of 1 for small ones), is no excess. Clamped it is all the same."""


@dataclass(frozen=True)
class ColumnLimits:
    """Limits of an output's columns in the robot's units; infinity where there is none.

    Attributes:
        lower: Lowest value ``(J,)``; for a pose the corner of the workspace.
        upper: Highest value ``(J,)``.
        rate: Fastest change ``(J,)``, units per second.
        linear_rate: Fastest motion of a pose's origin, m/s.
        angular_rate: Fastest turn of a pose, rad/s.

    """

    lower: Array
    upper: Array
    rate: Array
    linear_rate: float = np.inf
    angular_rate: float = np.inf

    @cached_property
    def has_rates(self) -> bool:
        """Whether any column has a fastest change."""
        return bool(np.isfinite(self.rate).any())

    @cached_property
    def finite_rate(self) -> Array:
        """The fastest change ``(J,)``; 0 where there is none."""
        return np.where(np.isfinite(self.rate), self.rate, 0.0)

    @classmethod
    def none(cls, width: int) -> ColumnLimits:
        """No limit for any of ``width`` columns."""
        return cls(np.full(width, -np.inf), np.full(width, np.inf), np.full(width, np.inf))

    def excess(self, rows: Array) -> Array:
        """How far each entry lies outside, as a share of the allowed span ``(N, J)``; 0 inside or without limits."""
        outside = np.maximum(np.maximum(self.lower - rows, rows - self.upper), 0.0)
        outside = np.where(outside > _rounding(rows), outside, 0.0)
        span = self.upper - self.lower
        return np.where(np.isfinite(span), outside / np.where(np.isfinite(span), span, 1.0), 0.0)


@dataclass(frozen=True)
class Limited:
    """Rows within their limits.

    Attributes:
        rows: ``(N, J)``.
        clipped: Which entries a position limit changed, bool ``(N, J)``.
        slowed: Which entries a rate limit changed, bool ``(N, J)``.

    """

    rows: Array
    clipped: NDArray[np.bool_]
    slowed: NDArray[np.bool_]


def limit_rows(
    columns: Columns,
    limits: ColumnLimits,
    times_ns: NDArray[np.int64],
    rows: Array,
    *,
    previous: Array | None,
    previous_ns: int,
) -> Limited:
    """Bring rows within position limits, then within what can be reached from the row before in the time between.

    Args:
        columns: What the columns are.
        limits: Their limits.
        times_ns: Times of the rows ``(N,)``, increasing.
        rows: Wanted values ``(N, J)``.
        previous: The command before the first row ``(J,)``; None when there is none (then the first row is free).
        previous_ns: When it was given.

    """
    clamped = np.clip(rows, limits.lower, limits.upper)
    clipped = np.abs(clamped - rows) > _rounding(rows)
    result = clamped.copy()
    if _is_within_reach(columns, limits, times_ns, clamped, previous=previous, previous_ns=previous_ns):
        return Limited(result, clipped, np.zeros_like(clipped))
    for index, time_ns in enumerate(times_ns):
        if previous is not None:
            seconds = max(int(time_ns) - previous_ns, 0) / NANOSECONDS_PER_SECOND
            result[index] = _reachable(columns, limits, previous, clamped[index], seconds)
        previous, previous_ns = result[index], int(time_ns)
    return Limited(result, clipped, result != clamped)


def _rounding(rows: Array) -> Array:
    return ROUNDING * np.maximum(np.abs(rows), 1.0)


def _is_within_reach(
    columns: Columns,
    limits: ColumnLimits,
    times_ns: NDArray[np.int64],
    rows: Array,
    *,
    previous: Array | None,
    previous_ns: int,
) -> bool:
    """Whether each row ``(N, J)`` can be reached from the one before, as most can; then none needs its own look."""
    if columns.quaternions:
        return False
    if not limits.has_rates:
        return True
    if previous is not None:
        times_ns, rows = np.concatenate([[previous_ns], times_ns]), np.concatenate([previous[None], rows])
    seconds = np.maximum(np.diff(times_ns), 0)[:, None] / NANOSECONDS_PER_SECOND
    change = np.abs(columns.difference(rows[:-1], rows[1:]))
    return bool(np.all((change <= limits.finite_rate * seconds) | np.isinf(limits.rate)))


def limit_twist(limits: ColumnLimits, twist: Array) -> Limited:
    """A twist ``(6,)`` with its linear and angular part shortened to the limits, direction kept."""
    linear, slow_linear = _shorten(twist[:3], limits.linear_rate)
    angular, slow_angular = _shorten(twist[3:], limits.angular_rate)
    rows = np.concatenate([linear, angular])[None]
    slowed = np.array([[slow_linear] * 3 + [slow_angular] * 3])
    return Limited(rows, np.zeros_like(slowed), slowed)


def far_beyond_sentence(route: Route, limits: ColumnLimits, rows: Array, allowed: float) -> str | None:
    """What is wrong when plan rows ``(N, columns)`` lie outside by more than a share of the allowed span, or None."""
    values = route.values(rows)
    excess = limits.excess(values)
    excess[:, list(route.levels)] = 0.0  # a two-position gripper's columns are in the policy's units
    if excess.size == 0 or excess.max() <= allowed:
        return None
    row, column = np.unravel_index(int(np.argmax(excess)), excess.shape)
    return (
        f"output {route.name}: the policy wants {route.names[column]} at {values[row, column]:.3f}, but its limits are "
        f"{limits.lower[column]:.3f} to {limits.upper[column]:.3f}; check the units and limits of the contract"
    )


def route_limits(contract: Contract, route: Route, urdf: UrdfLimits | None) -> ColumnLimits:
    """The limits of an output: the contract's own and the robot description's, the narrower of each."""
    limits = ColumnLimits.none(len(route.names))
    if route.is_cartesian:
        cartesian = contract.cartesian_limits(route.name)
        if cartesian is None:
            return limits
        if cartesian.workspace is not None and len(route.names) == 7:
            limits.lower[:3], limits.upper[:3] = cartesian.workspace.min, cartesian.workspace.max
        return ColumnLimits(
            limits.lower, limits.upper, limits.rate, cartesian.linear or np.inf, cartesian.angular or np.inf
        )
    for index, (name, meaning) in enumerate(zip(route.names, route.meanings, strict=True)):
        lower, upper, velocity, step = _joint_limits(contract, name, urdf)
        if meaning is Meaning.VELOCITY:
            lower, upper, velocity = -velocity, velocity, np.inf
        elif meaning is Meaning.DELTA:
            furthest = min(velocity, step) * contract.period_s
            lower, upper, velocity, step = -furthest, furthest, np.inf, np.inf
        limits.lower[index], limits.upper[index], limits.rate[index] = lower, upper, min(velocity, step)
    return limits


def _joint_limits(contract: Contract, name: str, urdf: UrdfLimits | None) -> tuple[float, float, float, float]:
    """Lowest and highest position, velocity, and step a second of a joint; infinity where nothing is said."""
    lower, upper, velocity, step = -np.inf, np.inf, np.inf, np.inf
    own = contract.joint_limits(name)
    if own is not None:
        lower, upper = own.position or (lower, upper)
        velocity, step = own.velocity or velocity, own.step_per_s or step
    described = urdf.joints.get(name) if urdf is not None else None
    if described is not None:
        lower, upper = max(lower, described.lower), min(upper, described.upper)
        velocity = min(velocity, described.velocity)
    return lower, upper, velocity, step


def _reachable(columns: Columns, limits: ColumnLimits, start: Array, target: Array, seconds: float) -> Array:
    """The target, or the furthest point on the way to it that the rates allow."""
    change = columns.difference(start[None], target[None])[0]
    limited = np.isfinite(limits.rate)
    reach = np.where(limited, np.where(limited, limits.rate, 0.0) * seconds, np.inf)
    reached = np.where(np.abs(change) <= reach, target, start + np.clip(change, -reach, reach))
    for turn in columns.quaternions:
        origin = slice(turn.start - 3, turn.start)
        moved, shortened = _shorten(target[origin] - start[origin], _reach(limits.linear_rate, seconds))
        reached[origin] = start[origin] + moved if shortened else target[origin]
        reached[turn] = _turn_towards(start[turn], target[turn], _reach(limits.angular_rate, seconds))
    return reached


def _reach(rate: float, seconds: float) -> float:
    return rate * seconds if np.isfinite(rate) else np.inf


def _shorten(vector: Array, longest: float) -> tuple[Array, bool]:
    length = float(np.linalg.norm(vector))
    if length <= longest:
        return vector, False
    return vector * (longest / length), True


def _turn_towards(start: Array, target: Array, furthest: float) -> Array:
    begin = Rotation.from_quat(start)
    turn, shortened = _shorten((Rotation.from_quat(target) * begin.inv()).as_rotvec(), furthest)
    if not shortened:
        return target
    quaternion: Array = (Rotation.from_rotvec(turn) * begin).as_quat()
    return quaternion if quaternion[3] >= 0 else -quaternion
