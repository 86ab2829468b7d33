"""Many stamped streams to one observation at a time, or the reason why not: one rule for live, bags and datasets.

The reference stamp is that of the newest frame of the first camera which all other streams can meet. The other cameras
give the frame nearest to it, within the tolerance; the states give their value at that very time, between the sample
before and the one after it, so a state that has not been heard of since then meets only an older frame.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from groot_ros.alignment.buffers import Allocate, new_buffer
from groot_ros.alignment.camera_streams import CameraStreams
from groot_ros.alignment.not_ready import NotReady, Reason
from groot_ros.alignment.state_streams import StateStreams
from groot_ros.alignment.states import Array, Times
from groot_ros.alignment.stream import Stream, StreamHealth, seconds
from groot_ros.contract.contract import Contract
from groot_ros.contract.timing import nanoseconds
from groot_ros.messages.frame import Frame
from groot_ros.observation import Observation

MARGIN_NS = 500_000_000
"""How much longer messages are kept than the oldest that can be asked for."""


class Aligner:
    """Gathers the streams of a contract and gives observations. It belongs to one thread.

    Args:
        contract: Cameras, states and the numbers of ``alignment``.
        video_history: Rows before the present at which frames are taken, oldest first, ending with 0: ``(-15, 0)``.
        state_history: The same for states.
        with_commands: Whether the streams of ``record`` are gathered too and must be there, for recordings.

    """

    def __init__(
        self,
        contract: Contract,
        video_history: Sequence[int] = (0,),
        state_history: Sequence[int] = (0,),
        *,
        with_commands: bool = False,
    ) -> None:
        for name, history in (("video_history", video_history), ("state_history", state_history)):
            if not history or history[-1] != 0 or max(history) != 0:
                msg = f"{name} is {tuple(history)}, wanted rows up to the present, oldest first, as (-15, 0)"
                raise ValueError(msg)
        alignment = contract.alignment
        self._max_age_ns = nanoseconds(alignment.max_age_s)
        self._max_future_ns = nanoseconds(alignment.max_future_s)
        self._state_rows_ns = [row * contract.period_ns for row in state_history]
        kept_ns = self._max_age_ns + nanoseconds(alignment.tolerance_s) + MARGIN_NS
        states_ns = kept_ns - min(state_history) * contract.period_ns
        self._cameras = CameraStreams(contract, video_history, kept_ns - min(video_history) * contract.period_ns)
        self._states = StateStreams("state", contract.state, contract, states_ns)
        self._commands = StateStreams("action", contract.record.groups if with_commands else {}, contract, states_ns)
        # A gripper that only opens and closes is recorded in the robot's values, but learnt as the policy's two levels.
        self._levels = {
            group: contract.action_map(group)
            for group in contract.record.groups
            if contract.actions[group].kind == "binary"
        }
        streams: list[Stream[Frame] | Stream[Array]] = [
            *self._cameras.streams,
            *self._states.streams,
            *self._commands.streams,
        ]
        self._streams = {stream.name: stream for stream in streams}
        self._now_ns: int | None = None
        self._clock_jump: NotReady | None = None
        self._met_ns: int | None = None  # the reference stamp that all streams meet, until another message comes

    def add_image(self, camera: str, stamp_ns: int | None, frame: Frame, received_ns: int) -> bool:
        """Take a frame; whether it counts.

        Args:
            camera: Camera key.
            stamp_ns: Stamp of the message's header, nanoseconds; None where it has none.
            frame: What `read_image` gave.
            received_ns: When it came, by the clock that also gives now.

        """
        self._watch_clock(received_ns)
        self._met_ns = None
        return self._cameras.by_camera[camera].add(stamp_ns, frame, received_ns)

    def add_state(self, group: str, source_index: int, stamp_ns: int | None, values: Array, received_ns: int) -> bool:
        """Take a state; whether it counts.

        Args:
            group: State group.
            source_index: Which of the group's sources, 0 for the first.
            stamp_ns: Stamp of the message's header, nanoseconds; None where it has none.
            values: What `read_state` gave, float64 ``(R,)`` in topic units.
            received_ns: When it came, by the clock that also gives now.

        Raises:
            ValueError: Another number of values than the source has.

        """
        self._watch_clock(received_ns)
        self._met_ns = None
        return self._states.add(group, source_index, stamp_ns, values, received_ns)

    def add_command(self, group: str, source_index: int, stamp_ns: int | None, values: Array, received_ns: int) -> bool:
        """Take a commanded value of ``record``, as `add_state` takes a state."""
        self._watch_clock(received_ns)
        self._met_ns = None
        return self._commands.add(group, source_index, stamp_ns, values, received_ns)

    def refuse(self, stream: str, sentence: str, received_ns: int) -> None:
        """Take note of a message that could not be read, so that the reason is known when there is no observation.

        Args:
            stream: A name out of `health`.
            sentence: The error's sentence.
            received_ns: When it came.

        """
        self._watch_clock(received_ns)
        self._streams[stream].refuse(sentence, received_ns)

    def observation(self, now_ns: int, instruction: str, allocate: Allocate = new_buffer) -> Observation | NotReady:
        """The newest observation.

        Args:
            now_ns: Now, nanoseconds.
            instruction: The task in words.
            allocate: Gives the buffer for a camera whose frames must be copied (a history, or another encoding than
                rgb8); else the observation shares the message's bytes.

        """
        reference = self.reference(now_ns)
        return reference if isinstance(reference, NotReady) else self.observation_at(reference, instruction, allocate)

    def reference(self, now_ns: int) -> int | NotReady:
        """The reference stamp of the newest observation, nanoseconds."""
        self._watch_clock(now_ns)
        if self._clock_jump is not None:
            jump, self._clock_jump = self._clock_jump, None
            return jump
        for stream in self._streams.values():
            fault = stream.not_ready(now_ns)
            if fault is not None:
                return fault
        if self._met_ns is not None and now_ns - self._met_ns <= self._max_age_ns:
            return self._met_ns
        first = self._cameras.streams[0]
        newest_fault: NotReady | None = None
        for index in range(len(first.ring) - 1, -1, -1):
            reference_ns = first.ring.stamp(index)
            if now_ns - reference_ns > self._max_age_ns:
                break
            fault = self._unmet(reference_ns)
            if fault is None:
                self._met_ns = reference_ns
                return reference_ns
            newest_fault = newest_fault or fault
        # The newest frame is fresh, or the stream were stale: so at least one frame was tried, and failed.
        return newest_fault or NotReady(Reason.STALE, first.name, f"{first.name}: no fresh frame")

    def observation_at(
        self, reference_ns: int, instruction: str, allocate: Allocate = new_buffer
    ) -> Observation | NotReady:
        """The observation for a reference stamp: a function of the streams alone, whatever the time is now."""
        fault = self._unmet(reference_ns)
        if fault is not None:
            return fault
        images: dict[str, NDArray[np.uint8]] = {}
        stamps: dict[str, tuple[int, ...]] = {}
        for camera in self._cameras.by_camera:
            chosen = self._cameras.choose(camera, reference_ns)
            if isinstance(chosen, NotReady):
                return chosen
            pictures = self._cameras.pictures(camera, chosen, allocate)
            if isinstance(pictures, NotReady):
                return pictures
            images[camera], stamps[camera] = pictures, self._cameras.stamps(camera, chosen)
        return Observation(
            images=images,
            state=self._state_rows(reference_ns),
            instruction=instruction,
            stamp_ns=min(row[-1] for row in stamps.values()),
            image_stamps_ns=stamps,
        )

    def state_at(self, reference_ns: int) -> dict[str, NDArray[np.float32]] | NotReady:
        """The states alone of the observation for a reference stamp, ``(T, D)`` by group: no frame is looked at."""
        return self._unmet(reference_ns) or self._state_rows(reference_ns)

    def stamp_at(self, reference_ns: int) -> int | NotReady:
        """The stamp of the observation for a reference stamp, without looking at a frame."""
        fault = self._unmet(reference_ns)
        if fault is not None:
            return fault
        rings = [stream.ring for stream in self._cameras.streams]
        return min(ring.stamp(ring.nearest(reference_ns)) for ring in rings)

    def commands_at(self, reference_ns: int) -> dict[str, Array] | NotReady:
        """The commanded values of ``record`` at a time, by action group, float64 ``(D,)`` in the policy's units."""
        fault = self._commands.unmet(reference_ns)
        if fault is not None:
            return fault
        commands = {group: self._commands.policy_values(group, reference_ns) for group in self._commands.names}
        for group in self._levels.keys() & commands.keys():
            commands[group] = self._levels[group].to_policy(commands[group])
        return commands

    def commands_over(self, times_ns: Times) -> tuple[dict[str, Array], NDArray[np.bool_]]:
        """`commands_at` at many times at once.

        Args:
            times_ns: The times ``(N,)``, nanoseconds, rising.

        Returns:
            Action group to values ``(N, D)``, NaN where they are not known; and at which times they are known ``(N,)``.

        """
        commands, known = self._commands.over(times_ns)
        for group in self._levels.keys() & commands.keys():
            commands[group][known] = self._levels[group].to_policy(commands[group][known])
        return commands, known

    def reset(self) -> None:
        """Forget all messages: a new episode, whose history begins anew. The counters go on."""
        for stream in self._streams.values():
            stream.begin_anew()
        self._clock_jump = self._met_ns = None

    @property
    def health(self) -> dict[str, StreamHealth]:
        """Counters by stream name: ``video.front``, ``state.arm``, ``state.arm[1]`` for a group's second source."""
        return {name: stream.health for name, stream in self._streams.items()}

    def _state_rows(self, reference_ns: int) -> dict[str, NDArray[np.float32]]:
        times_ns = [reference_ns + back_ns for back_ns in self._state_rows_ns]
        return {
            group: np.array([self._states.policy_values(group, time_ns) for time_ns in times_ns], np.float32)
            for group in self._states.names
        }

    def _unmet(self, reference_ns: int) -> NotReady | None:
        if reference_ns == self._met_ns:
            return None
        return (
            self._cameras.unmet(reference_ns) or self._states.unmet(reference_ns) or self._commands.unmet(reference_ns)
        )

    def _watch_clock(self, now_ns: int) -> None:
        """Forget everything when the clock goes back: a simulation was reset, or a bag plays from its start."""
        if self._now_ns is not None and now_ns < self._now_ns - self._max_future_ns:
            back = seconds(self._now_ns - now_ns)
            for stream in self._streams.values():
                stream.clear()
            self._met_ns = None
            sentence = f"clock: time went back by {back} s, so all messages before are forgotten"
            self._clock_jump = NotReady(Reason.CLOCK_JUMPED_BACK, "clock", sentence)
            self._now_ns = now_ns
        self._now_ns = now_ns if self._now_ns is None else max(self._now_ns, now_ns)
