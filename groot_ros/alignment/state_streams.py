"""The streams of all groups of states, or of commands: one a source, each with its values at any time it covers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from groot_ros.alignment.not_ready import NotReady, Reason
from groot_ros.alignment.ring import StampedRing
from groot_ros.alignment.states import Array, Places, StateInterpolation, Times
from groot_ros.alignment.stream import Stream, seconds
from groot_ros.contract.contract import Contract
from groot_ros.contract.groups import GroupMap, state_map
from groot_ros.contract.sources import StateSource

MOST_SAMPLES = 20_000


class StateStreams:
    """Groups of values over time.

    Args:
        prefix: ``state`` or ``action``; the streams are ``<prefix>.<group>``, and ``<prefix>.<group>[1]`` for a
            group's second source.
        groups: The sources of each group.
        contract: The numbers of ``alignment``.
        span_ns: How far back samples are kept.

    """

    def __init__(
        self, prefix: str, groups: Mapping[str, Sequence[StateSource]], contract: Contract, span_ns: int
    ) -> None:
        self._maps: dict[str, GroupMap] = {}
        self._groups: dict[str, list[tuple[Stream[Array], StateInterpolation, int]]] = {}
        for group, sources in groups.items():
            self._maps[group] = state_map(sources)
            self._groups[group] = []
            for index, source in enumerate(sources):
                name = f"{prefix}.{group}" if index == 0 else f"{prefix}.{group}[{index}]"
                timing = contract.stream_timing(f"{prefix}.{group}")
                ring: StampedRing[Array] = StampedRing(span_ns, MOST_SAMPLES)
                stream = Stream(name, source.topic, timing, ring, contract.alignment)
                width = state_map([source]).robot_width
                self._groups[group].append((stream, StateInterpolation(source), width))

    @property
    def names(self) -> list[str]:
        """The groups."""
        return list(self._groups)

    @property
    def streams(self) -> list[Stream[Array]]:
        """All streams."""
        return [stream for group in self._groups.values() for stream, _, _ in group]

    def add(self, group: str, source_index: int, header_ns: int | None, values: Array, received_ns: int) -> bool:
        """Take the values ``(R,)`` of one message; whether they count.

        Raises:
            ValueError: Another number of values than the source has.

        """
        stream, _, width = self._groups[group][source_index]
        if values.shape != (width,):
            msg = f"{stream.name}: found values of shape {values.shape}, wanted ({width},)"
            raise ValueError(msg)
        if not math.isfinite(values.sum()):
            stream.refuse(
                f"{stream.name}: a message on {stream.topic} holds {values}; a state must be finite", received_ns
            )
            return False
        return stream.add(header_ns, values, received_ns)

    def unmet(self, stamp_ns: int) -> NotReady | None:
        """The first stream that has no value at a time; None where all have one."""
        for group in self._groups.values():
            for stream, interpolation, _ in group:
                why = _why_unmet(stream, stamp_ns, holds=interpolation.holds)
                if why is not None:
                    sentence = f"{stream.name}: no value on {stream.topic} belongs to the reference stamp: {why}"
                    return NotReady(Reason.UNMATCHED, stream.name, sentence)
        return None

    def policy_values(self, group: str, stamp_ns: int) -> Array:
        """The values of a group at a time in the policy's units, float64 ``(D,)``; before the first sample, its values.

        Only after `unmet` has found nothing at this time, or at a later one.
        """
        values = [interpolation.at(stream.ring, stamp_ns) for stream, interpolation, _ in self._groups[group]]
        whole = values[0] if len(values) == 1 else np.concatenate([np.empty(0), *values])
        return self._maps[group].to_policy(whole)

    def over(self, times_ns: Times) -> tuple[dict[str, Array], NDArray[np.bool_]]:
        """The values of all groups at many times at once: each as `policy_values` gives it where `unmet` finds nothing.

        Args:
            times_ns: The times ``(N,)``, rising.

        Returns:
            Group to values in the policy's units, float64 ``(N, D)``, NaN where they are not known; and at which times
            they are known ``(N,)``.

        """
        known = np.ones(len(times_ns), np.bool_)
        places: list[Places] = []
        for sources in self._groups.values():
            for stream, interpolation, _ in sources:
                found = Places.find(stream.ring, times_ns)
                if found is None:
                    known[:] = False
                else:
                    places.append(found)
                    known &= _is_met(stream, found, holds=interpolation.holds)
        if not known.any():
            widths = {group: len(group_map.dimensions) for group, group_map in self._maps.items()}
            return {group: np.full((len(times_ns), width), np.nan) for group, width in widths.items()}, known
        values, remaining = {}, iter(places)
        for group, sources in self._groups.items():
            parts = [interpolation.over(next(remaining)) for _, interpolation, _ in sources]
            whole = parts[0] if len(parts) == 1 else np.concatenate([np.empty((len(times_ns), 0)), *parts], axis=1)
            values[group] = self._maps[group].to_policy(whole)
            values[group][~known] = np.nan
        return values, known


def _why_unmet(stream: Stream[Array], stamp_ns: int, *, holds: bool) -> str | None:
    """Why a stream has no value at a time; None where it has one."""
    ring = stream.ring
    after = ring.at_or_after(stamp_ns)
    if after < len(ring) and ring.stamp(after) == stamp_ns:
        return None
    if not len(ring):
        return "it has no samples"
    if after == 0:
        return f"its first sample came {seconds(ring.stamp(0) - stamp_ns)} s after it"
    if holds:
        gap_ns, what = stamp_ns - ring.stamp(after - 1), "the last sample came {} s before it"
    elif after == len(ring):
        return f"the newest sample is {seconds(stamp_ns - ring.stamp(-1))} s before it, and none has come since"
    else:
        gap_ns, what = ring.stamp(after) - ring.stamp(after - 1), "it lies in a gap of {} s between two samples"
    if stream.max_age_ns is None or gap_ns <= stream.max_age_ns:
        return None
    return f"{what.format(seconds(gap_ns))}, allowed are {seconds(stream.max_age_ns)} s"


def _is_met(stream: Stream[Array], places: Places, *, holds: bool) -> NDArray[np.bool_]:
    """At which times ``(N,)`` a stream has a value, as `_why_unmet` has it."""
    met = places.is_begun if holds else places.is_covered
    if stream.max_age_ns is not None:
        until_ns = places.times_ns if holds else places.after_ns
        met = met & (until_ns - places.before_ns <= stream.max_age_ns)
    return met | places.is_sample
