"""A state between two samples: straight, by the shortest arc for angles that wrap, by slerp for poses, or held."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from groot_ros.alignment.ring import StampedRing
from groot_ros.contract.sources import NumberKeys, PoseSource, StateSource, TransformSource
from groot_ros.messages.transforms import interpolate_pose

Array = NDArray[np.float64]
Times = NDArray[np.int64]


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
        self._any_wraps = bool(periods)
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
        start, end = ring.value(after - 1), ring.value(after)
        return interpolate_pose(start, end, fraction) if self.is_pose else self._between(start, end, fraction)

    def over(self, stamps_ns: Times, samples: Array, times_ns: Times) -> Array:
        """The values at many times ``(N, R)``, each as `at` gives it.

        Args:
            stamps_ns: Stamps of the samples ``(M,)``, rising.
            samples: The samples ``(M, R)``.
            times_ns: The times ``(N,)``; none before the first sample, and none after the last unless it holds.

        """
        after = np.searchsorted(stamps_ns, times_ns)
        before = np.maximum(after - 1, 0)
        after = np.minimum(after, len(stamps_ns) - 1)
        is_sample = stamps_ns[after] == times_ns
        if self.holds:
            return samples[np.where(is_sample, after, before)]
        passed, span = times_ns - stamps_ns[before], np.maximum(stamps_ns[after] - stamps_ns[before], 1)
        if self.is_nearest:
            return samples[np.where(~is_sample & (passed <= span - passed), before, after)]
        if self.is_pose:
            fractions = (passed / span).tolist()
            rows = [interpolate_pose(*pair) for pair in zip(samples[before], samples[after], fractions, strict=True)]
            values = np.array(rows).reshape(len(times_ns), samples.shape[1])
        else:
            values = self._between(samples[before], samples[after], (passed / span)[:, np.newaxis])
        values[is_sample] = samples[after[is_sample]]
        return values

    def _between(self, start: Array, end: Array, fraction: float | Array) -> Array:
        if not self._any_wraps:
            return start + fraction * (end - start)
        way = end - start
        values = start + fraction * (way - self._whole_turns(way))
        # Which of the two ends of the circle the topic uses is not known; it lies opposite to the samples' middle.
        return values - self._whole_turns(values - (start + end) / 2)

    def _whole_turns(self, way: Array) -> Array:
        turns: Array = np.round(way / self._periods) * self._periods * self._wraps
        return turns
