"""The numbers of time: how streams are aligned, and how motion is planned, held and stopped."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator
from typing_extensions import Self

from groot_ros.contract.schema import (
    Count,
    FaultyKeyError,
    Name,
    NonNegativeNumber,
    Number,
    OrNone,
    Part,
    PositiveNumber,
)


class StreamTiming(Part):
    """How the stamps of one stream are read.

    Attributes:
        stamp: ``header`` takes the message's own stamp, ``receipt`` the time it arrived; by default the header's where
            the message has one.
        offset_s: Added to the stamp: -0.05 for a camera whose stamp is 50 ms later than the capture.
        max_age_s: In place of the alignment's, for a stream that speaks rarely; ``none`` for one that speaks only when
            its value changes (with ``interpolation: hold``).

    """

    stamp: Literal["header", "receipt"] | None = None
    offset_s: Number = 0.0
    max_age_s: PositiveNumber | Literal["none"] | None = None

    @property
    def offset_ns(self) -> int:
        """The offset in nanoseconds."""
        return nanoseconds(self.offset_s)


class Alignment(Part):
    """The key ``alignment``: what belongs to one instant.

    Attributes:
        tolerance_s: Largest distance between a frame and the reference stamp, and largest gap across which a state is
            taken for one that lies beside the reference stamp.
        max_age_s: Oldest observation that may be used, from its reference stamp to now.
        max_future_s: Furthest that a stamp may lie ahead of now (clocks of several machines).
        streams: By camera, state group, or (where one name is both) ``video.<camera>`` and ``state.<group>``;
            ``action.<group>`` for recorded commands.

    """

    tolerance_s: PositiveNumber = 0.03
    max_age_s: PositiveNumber = 0.2
    max_future_s: NonNegativeNumber = 0.02
    streams: dict[Name, StreamTiming] = Field(default_factory=dict)

    def max_age_ns(self, timing: StreamTiming) -> int | None:
        """Oldest newest message of a stream, nanoseconds; None where it may be of any age."""
        if timing.max_age_s == "none":
            return None
        return nanoseconds(self.max_age_s if timing.max_age_s is None else timing.max_age_s)


class Motion(Part):
    """The key ``motion``: how chunks become motion, and how motion ends.

    Attributes:
        mode: ``asynchronous`` plans over time while the model computes; ``synchronous`` executes
            ``execution_horizon`` rows and then asks again (simulators, deltas).
        strategy: How a new chunk joins the plan.
        execution_horizon: Rows executed before the next chunk, in synchronous mode; none: all of them.
        hold_s: Time without a fresh observation or plan until the hold begins.
        hold_ramp_s: Time in which the hold brings the robot to rest.
        max_ahead_s: Furthest that a trajectory already sent may reach ahead of now.
        start_tolerance: Largest distance between the first command and the measured value, in the robot's units.
        start_ramp_s: Time to ramp over a larger distance; none refuses to start instead.
        clip_hold_s: Clipped for longer than this, the chunk is refused and the robot held.
        far_beyond: Share of a joint's range by which a command may lie outside before the chunk is refused.
        blend_s: Length of the crossfade of ``blend``.
        ensemble_decay: m of ``ensemble``: the weight of the chunk that is i older than the oldest is exp(-m * i).
        rtc_ramp_rate: How fast the rows after the frozen ones are let go, for ``rtc``.
        rtc_overlap_rows: Rows of the old plan given to ``rtc``; none: all that are still to come.
        latency_percentile: Which percentile of the latest latencies counts as the latency.
        latency_window: How many latencies are kept.

    """

    mode: Literal["asynchronous", "synchronous"] = "asynchronous"
    strategy: Literal["replace", "blend", "ensemble", "rtc"] = "blend"
    execution_horizon: OrNone[Count] = None
    hold_s: PositiveNumber = 0.3
    hold_ramp_s: NonNegativeNumber = 0.2
    max_ahead_s: PositiveNumber = 0.3
    start_tolerance: PositiveNumber = 0.05
    start_ramp_s: OrNone[PositiveNumber] = 2.0
    clip_hold_s: PositiveNumber = 0.5
    far_beyond: PositiveNumber = 0.25
    blend_s: PositiveNumber = 0.2
    ensemble_decay: Number = 0.01
    rtc_ramp_rate: PositiveNumber = 6.0
    rtc_overlap_rows: OrNone[Count] = None
    latency_percentile: Number = Field(default=95.0, gt=0, le=100)
    latency_window: Count = 50


class PolicyTraining(Part):
    """The key ``policy``: what a checkpoint for a new embodiment is trained to be; else the checkpoint decides.

    Attributes:
        horizon: Rows of a chunk.
        representation: Action group to ``relative`` (to the current state) or ``absolute``.
        video_history: Rows before the present at which frames are taken, oldest first, ending with 0.

    """

    horizon: Count = 16
    representation: dict[Name, Literal["relative", "absolute"]] = Field(default_factory=dict)
    video_history: tuple[int, ...] = (0,)

    @model_validator(mode="after")
    def _check(self) -> Self:
        history = self.video_history
        if not history or history[-1] != 0 or list(history) != sorted(set(history)):
            raise FaultyKeyError(
                "video_history", f"found {list(history)}", "wanted rows in rising order that end with 0, as [-15, 0]"
            )
        return self


def nanoseconds(seconds: float) -> int:
    """Seconds as whole nanoseconds."""
    return round(seconds * 1_000_000_000)
