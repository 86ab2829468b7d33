"""What is seen of the robot: where it is, and whether it is seen well enough to go on moving."""

from __future__ import annotations

from groot_ros.execution.outputs import Measurement


class Sight:
    """The newest measurement, and how long ago a complete observation was new.

    Attributes:
        measurement: Where the robot is; None before it was measured.

    """

    def __init__(self, patience_ns: int) -> None:
        """``patience_ns`` is the time without a complete observation after which the robot must be held."""
        self.measurement: Measurement | None = None
        self._patience_ns = patience_ns
        self._fresh_ns: int | None = None
        self._newest_stamp_ns: int | None = None

    def note(self, measurement: Measurement, now_ns: int, *, complete: bool) -> None:
        """Take a measurement; an older one than the last is no news, and one that was seen before is not fresh."""
        stamp_ns = measurement.stamp_ns
        if self.measurement is None or stamp_ns >= self.measurement.stamp_ns:
            self.measurement = measurement
        if complete and (self._newest_stamp_ns is None or stamp_ns > self._newest_stamp_ns):
            self._newest_stamp_ns, self._fresh_ns = stamp_ns, now_ns

    def renew(self, now_ns: int) -> None:
        """What was seen last counts as seen now: the robot has waited for the policy."""
        self._fresh_ns = now_ns

    def is_fresh(self, now_ns: int) -> bool:
        """Whether the robot may go on moving."""
        return self._fresh_ns is not None and now_ns - self._fresh_ns <= self._patience_ns

    def measured_lately(self, now_ns: int) -> Measurement | None:
        """The newest measurement, unless it is too old to say where the robot is now."""
        measurement = self.measurement
        return measurement if measurement is not None and now_ns - measurement.stamp_ns <= self._patience_ns else None

    def forget(self) -> None:
        """Begin anew."""
        self.measurement = self._fresh_ns = self._newest_stamp_ns = None
