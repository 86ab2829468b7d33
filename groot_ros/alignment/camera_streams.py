"""The streams of all cameras: which frames belong to a time, and their pictures side by side."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from groot_ros.alignment.buffers import Allocate
from groot_ros.alignment.not_ready import NotReady, Reason
from groot_ros.alignment.ring import StampedRing
from groot_ros.alignment.stream import Stream, seconds
from groot_ros.contract.contract import Contract
from groot_ros.contract.timing import nanoseconds
from groot_ros.errors import MessageError
from groot_ros.messages.frame import Frame

MOST_FRAMES = 1_000


class CameraStreams:
    """All cameras over time.

    Args:
        contract: The cameras, and the numbers of ``alignment``.
        history: Rows before the present at which frames are taken, oldest first, ending with 0.
        span_ns: How far back frames are kept.

    Attributes:
        by_camera: Camera key to its stream.
        streams: All streams, the reference camera first.

    """

    def __init__(self, contract: Contract, history: Sequence[int], span_ns: int) -> None:
        self._history_ns = [row * contract.period_ns for row in history[:-1]]
        self._tolerance_ns = nanoseconds(contract.alignment.tolerance_s)
        self.by_camera: dict[str, Stream[Frame]] = {}
        for camera, source in contract.cameras.items():
            name = f"video.{camera}"
            ring: StampedRing[Frame] = StampedRing(span_ns, MOST_FRAMES)
            self.by_camera[camera] = Stream(name, source.topic, contract.stream_timing(name), ring, contract.alignment)

        self.streams = list(self.by_camera.values())

    def unmet(self, stamp_ns: int) -> NotReady | None:
        """The first camera that has no frame within the tolerance of a time; None where all have one."""
        for stream in self.streams:
            ring = stream.ring
            distance_ns = abs(ring.stamp(ring.nearest(stamp_ns)) - stamp_ns) if len(ring) else None
            if distance_ns is None or distance_ns > self._tolerance_ns:
                nearest = "there is none" if distance_ns is None else f"the nearest is {seconds(distance_ns)} s away"
                sentence = (
                    f"{stream.name}: no frame on {stream.topic} belongs to the reference stamp: {nearest}, "
                    f"allowed are {seconds(self._tolerance_ns)} s (alignment.tolerance_s)"
                )
                return NotReady(Reason.UNMATCHED, stream.name, sentence)
        return None

    def choose(self, camera: str, stamp_ns: int) -> list[int] | NotReady:
        """Which frames of a camera belong to a time: its history in time before the nearest frame, oldest first.

        Each is the frame nearest to its time, within the tolerance; before the camera's first frame, the first repeats.
        """
        stream = self.by_camera[camera]
        ring = stream.ring
        current = ring.nearest(stamp_ns)
        chosen = []
        for back_ns in self._history_ns:
            wanted_ns = ring.stamp(current) + back_ns
            index = ring.nearest(wanted_ns)
            distance_ns = abs(ring.stamp(index) - wanted_ns)
            is_before_first = wanted_ns < ring.stamp(0) and not ring.has_let_go
            if distance_ns > self._tolerance_ns and not is_before_first:
                sentence = (
                    f"{stream.name}: no frame on {stream.topic} is there for {seconds(-back_ns)} s ago: the nearest is "
                    f"{seconds(distance_ns)} s away, allowed are {seconds(self._tolerance_ns)} s; frames were lost"
                )
                return NotReady(Reason.HISTORY_GAP, stream.name, sentence)
            chosen.append(index)
        return [*chosen, current]

    def pictures(self, camera: str, chosen: Sequence[int], allocate: Allocate) -> NDArray[np.uint8] | NotReady:
        """The chosen frames as RGB, uint8 ``(T, H, W, 3)``: a view where one frame is rgb8 already, else one copy."""
        stream = self.by_camera[camera]
        frames = [stream.ring.value(index) for index in chosen]
        sizes = {(frame.height, frame.width) for frame in frames}
        if len(sizes) > 1:
            written = " and ".join(sorted(f"{width}x{height}" for height, width in sizes))
            sentence = f"{stream.name}: the frames on {stream.topic} changed their size within the history: {written}"
            return NotReady(Reason.SIZE_CHANGED, stream.name, sentence)
        try:
            if len(frames) == 1 and frames[0].shares_storage:
                return frames[0].rgb()[np.newaxis]
            buffer = allocate(camera, (len(frames), *sizes.pop(), 3))
            for row, frame in enumerate(frames):
                frame.copy_into(buffer[row])
        except MessageError as error:
            return NotReady(Reason.BAD_MESSAGE, stream.name, str(error))
        return buffer

    def stamps(self, camera: str, chosen: Sequence[int]) -> tuple[int, ...]:
        """The stamps of the chosen frames, nanoseconds."""
        return tuple(self.by_camera[camera].ring.stamp(index) for index in chosen)
