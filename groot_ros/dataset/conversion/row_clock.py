"""Which frames of the reference camera become rows: one a period, without drift against the camera's own clock."""

from __future__ import annotations

FOLLOWING = 0.02
"""Share of a frame's distance from the expected time that the clock follows: jitter averages out, drift of up to a
hundredth does not. Over the first rows it follows faster, so that one odd first frame is forgotten."""


class RowClock:
    """Chooses the stamps of rows from those of frames, one frame behind.

    A camera at the rate of the dataset gives each frame; a faster one the frame nearest to each expected time.

    Args:
        period_ns: Time between two rows, nanoseconds.
        max_gap_ns: A longer interval between two frames begins anew.

    """

    def __init__(self, period_ns: int, max_gap_ns: int) -> None:
        self._period_ns = period_ns
        self._max_gap_ns = max_gap_ns
        self._expected_ns = 0.0
        self._rows = 0  # since the last beginning
        self._row_ns: int | None = None
        self._frame_ns: int | None = None

    def add(self, stamp_ns: int) -> list[int]:
        """Take the next frame; the stamps that are now known to be rows."""
        before_ns, self._frame_ns = self._frame_ns, stamp_ns
        if self._row_ns is None or before_ns is None:
            return [self._begin(stamp_ns)]
        rows = []
        if stamp_ns - before_ns > self._max_gap_ns:
            rows += self._last_before_gap(before_ns)
            return [*rows, self._begin(stamp_ns)]
        while stamp_ns >= self._expected_ns:
            is_before_nearer = self._expected_ns - before_ns < stamp_ns - self._expected_ns
            if is_before_nearer and before_ns > self._row_ns:
                rows.append(self._choose(before_ns))
            elif stamp_ns > self._row_ns:
                rows.append(self._choose(stamp_ns))
            else:
                break
        return rows

    def finish(self) -> list[int]:
        """The last row, where it was still open."""
        return [] if self._frame_ns is None else self._last_before_gap(self._frame_ns)

    def _last_before_gap(self, frame_ns: int) -> list[int]:
        is_due = self._expected_ns - frame_ns < self._period_ns / 2
        if self._row_ns is not None and frame_ns > self._row_ns and is_due:
            return [self._choose(frame_ns)]
        return []

    def _begin(self, stamp_ns: int) -> int:
        self._rows = 0
        self._expected_ns = float(stamp_ns)
        return self._choose(stamp_ns)

    def _choose(self, stamp_ns: int) -> int:
        self._rows += 1
        self._row_ns = stamp_ns
        following = max(FOLLOWING, 1 / self._rows)
        self._expected_ns += following * (stamp_ns - self._expected_ns) + self._period_ns
        return stamp_ns
