"""A state between two samples: straight, by the shortest arc for angles that wrap, by slerp for poses, or held."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from groot_ros.alignment.ring import StampedRing
from groot_ros.contract.sources import NumberKeys, PoseSource, StateSource, TransformSource
from groot_ros.messages.transforms import interpolate_pose

Array = NDArray[np.float64]


class StateInterpolation:
    """How the values of one source lie between two samples.

    Args:
        source: The source; its values are in topic units.

    """

    def __init__(self, source: StateSource) -> None:
        self.is_pose = isinstance(source, PoseSource | TransformSource)
        rule = source.interpolation if isinstance(source, NumberKeys) else "linear"
        self.is_nearest = rule == "nearest"
        self.holds = rule == "hold"
        periods = source.periods if isinstance(source, NumberKeys) else {}
        self._wraps = np.array([name in periods for name in source.dimensions])
        self._periods = np.array([periods.get(name, 1.0) for name in source.dimensions])

    def at(self, ring: StampedRing[Array], stamp_ns: int) -> Array:
        """The values at a time between the ring's oldest and newest sample; the first one's before them.

        Args:
            ring: The samples.
            stamp_ns: The time; not after the newest sample, unless the last value holds.

        """
        after = ring.at_or_after(stamp_ns)
        if after == 0 or (after < len(ring) and ring.stamp(after) == stamp_ns):
            return ring.value(after)
        if self.holds:
            return ring.value(after - 1)
        if self.is_nearest:
            return ring.value(ring.nearest(stamp_ns))
        before_ns = ring.stamp(after - 1)
        fraction = (stamp_ns - before_ns) / (ring.stamp(after) - before_ns)
        return self._between(ring.value(after - 1), ring.value(after), fraction)

    def _between(self, start: Array, end: Array, fraction: float) -> Array:
        if self.is_pose:
            return interpolate_pose(start, end, fraction)
        if not self._wraps.any():
            return start + fraction * (end - start)
        way = end - start
        values = start + fraction * (way - self._whole_turns(way))
        # Which of the two ends of the circle the topic uses is not known; it lies opposite to the samples' middle.
        return values - self._whole_turns(values - (start + end) / 2)

    def _whole_turns(self, way: Array) -> Array:
        turns: Array = np.round(way / self._periods) * self._periods * self._wraps
        return turns
