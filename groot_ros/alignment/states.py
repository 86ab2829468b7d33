"""A state between two samples: straight, by the shortest arc for angles that wrap, by slerp for poses, or held."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from groot_ros.alignment.ring import StampedRing
from groot_ros.contract.sources import NumberKeys, PoseSource, StateSource, TransformSource
from groot_ros.messages.transforms import interpolate_pose

Array = NDArray[np.float64]
Times = NDArray[np.int64]


@dataclass(frozen=True)
class Places:
    """Where many times lie between the samples of a ring.

    Attributes:
        times_ns: The times ``(N,)``, rising.
        samples: The samples around them ``(M, R)``; with none of them nothing else is known.
        before: Which is the last one before each time ``(N,)``; the first where there is none.
        after: Which is the first one at or after each time ``(N,)``; the last where there is none.
        before_ns: Its stamp.
        after_ns: Its stamp.
        is_sample: Which times are those of a sample ``(N,)``.
        is_covered: Which times have a sample before them and one at or after them ``(N,)``.
        is_begun: Which times have a sample before them ``(N,)``.

    """

    times_ns: Times
    samples: Array
    before: NDArray[np.intp]
    after: NDArray[np.intp]
    before_ns: Times
    after_ns: Times
    is_sample: NDArray[np.bool_]
    is_begun: NDArray[np.bool_]
    is_covered: NDArray[np.bool_]

    @classmethod
    def find(cls, ring: StampedRing[Array], times_ns: Times) -> Places | None:
        """Find them; None in a ring without samples."""
        stamps, samples = ring.between(int(times_ns[0]), int(times_ns[-1]))
        if not stamps:
            return None
        stamps_ns = np.array(stamps, np.int64)
        following = stamps_ns.searchsorted(times_ns)
        before, after = np.maximum(following - 1, 0), np.minimum(following, len(stamps) - 1)
        before_ns, after_ns = stamps_ns[before], stamps_ns[after]
        is_begun = following > 0
        return cls(
            times_ns=times_ns,
            samples=np.array(samples),
            before=before,
            after=after,
            before_ns=before_ns,
            after_ns=after_ns,
            is_sample=after_ns == times_ns,
            is_begun=is_begun,
            is_covered=is_begun & (following < len(stamps)),
        )


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

    def over(self, places: Places) -> Array:
        """The values at many times ``(N, R)``, each as `at` gives it where `Places.met` holds."""
        before, after = places.samples[places.before], places.samples[places.after]
        if self.holds:
            return np.where(places.is_sample[:, np.newaxis], after, before)
        passed, span = places.times_ns - places.before_ns, np.maximum(places.after_ns - places.before_ns, 1)
        if self.is_nearest:
            is_before = ~places.is_sample & (passed <= span - passed)
            return np.where(is_before[:, np.newaxis], before, after)
        fraction = passed / span
        if self.is_pose:
            values = np.array([interpolate_pose(*row) for row in zip(before, after, fraction.tolist(), strict=True)])
        else:
            values = self._between(before, after, fraction[:, np.newaxis])
        values[places.is_sample] = after[places.is_sample]
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
