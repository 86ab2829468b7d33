"""Plays an episode before a pilot: what the policy node does when the clock moves or a message comes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from groot_ros.alignment import NotReady, TurningBuffers
from groot_ros.evaluation.episode import Episode
from groot_ros.evaluation.pilot import Pilot
from groot_ros.execution.status import HoldReason
from groot_ros.observation import NANOSECONDS_PER_SECOND, Observation

SUPERVISION_NS = NANOSECONDS_PER_SECOND // 10
"""How often it is looked whether there are observations, as the policy node looks."""


@dataclass
class Moment:
    """Something on the timeline.

    Attributes:
        time_ns: When.
        kind: ``observation``, ``chunk`` or ``hold``.
        reason: Why, as diagnostics name it.
        sentence: The same for a person.

    """

    time_ns: int
    kind: str
    reason: str
    sentence: str


@dataclass
class Played:
    """What came out of playing an episode, beside what the pilot's own logbook knows.

    Attributes:
        start_ns: When it began.
        end_ns: When it ended.
        first_observation_ns: When the first observation was there; None if there never was one.
        observations: Complete observations.
        not_ready: Reason to how often observations failed to come, after the first one.
        moments: Refusals and holds in the order of time.
        messages: Messages by stream.
        first_state: The states of the first observation.
        last_fault: Why there was no observation when there was none last.

    """

    start_ns: int = 0
    end_ns: int = 0
    first_observation_ns: int | None = None
    observations: int = 0
    not_ready: Counter[str] = field(default_factory=Counter)
    moments: list[Moment] = field(default_factory=list)
    messages: dict[str, int] = field(default_factory=dict)
    first_state: dict[str, NDArray[np.float32]] = field(default_factory=dict)
    last_fault: str = ""

    @property
    def duration_s(self) -> float:
        """From the first message to the last."""
        return (self.end_ns - self.start_ns) / NANOSECONDS_PER_SECOND

    @property
    def observation_rate_hz(self) -> float:
        """Observations a second, from the first one on."""
        if self.first_observation_ns is None or self.end_ns <= self.first_observation_ns:
            return 0.0
        return (self.observations - 1) * NANOSECONDS_PER_SECOND / (self.end_ns - self.first_observation_ns)


class Replay:
    """Plays an episode from its start to its end.

    Args:
        episode: The recording.
        pilot: The policy.
        instruction: The task; None takes the recording's own at each time, or the default.
        default_instruction: The task where the recording has none of its own.
        wants_pictures: Whether the next observation is wanted with pictures though the policy needs none.

    """

    def __init__(
        self,
        episode: Episode,
        pilot: Pilot,
        *,
        instruction: str | None = None,
        default_instruction: str = "",
        wants_pictures: Callable[[], bool] | None = None,
    ) -> None:
        self._episode = episode
        self._pilot = pilot
        self._instruction, self._default_instruction = instruction, default_instruction
        self._wants_pictures = wants_pictures
        self._buffers = TurningBuffers()
        self._played = Played()
        self._last_reference: int | None = None
        self._known_fault: NotReady | None = None
        self._last_hold: HoldReason | None = None
        self._next_supervision_ns: int | None = None

    def run(self) -> Played:
        """Play it.

        Raises:
            DatasetError: The recording is damaged.

        """
        for now_ns in self._episode.play():
            self._step(now_ns)
        self._pilot.finish(self._played.end_ns)
        self._played.messages = self._episode.messages()
        return self._played

    def _step(self, now_ns: int) -> None:
        """What the policy node does when the clock has moved or a message has come."""
        self._played.end_ns = now_ns
        self._pilot.advance(now_ns)
        reference = self._episode.reference(now_ns)
        self._supervise(reference, now_ns)
        if isinstance(reference, NotReady):
            return
        if reference != self._last_reference and not self._observe(reference, now_ns):
            return
        if self._pilot.inference_due(reference, now_ns):
            self._infer(reference, now_ns)

    def _observe(self, reference_ns: int, now_ns: int) -> bool:
        state = self._episode.state_at(reference_ns)
        if isinstance(state, NotReady):
            return False
        self._last_reference = reference_ns
        self._played.observations += 1
        if self._played.first_observation_ns is None:
            self._played.first_observation_ns = now_ns
            self._played.first_state = state
        self._pilot.observe(state, reference_ns, now_ns)
        return True

    def _infer(self, reference_ns: int, now_ns: int) -> None:
        with_pictures = self._pilot.wants_images or (self._wants_pictures is not None and self._wants_pictures())
        observation = self._observation(reference_ns, with_pictures=with_pictures)
        if isinstance(observation, NotReady):
            self._note_fault(observation, now_ns)
            return
        self._pilot.infer(observation, reference_ns, now_ns)

    def _observation(self, reference_ns: int, *, with_pictures: bool) -> Observation | NotReady:
        episode = self._episode
        task = self._instruction or episode.instruction(self._default_instruction)
        if with_pictures:
            return episode.observation_at(reference_ns, task, self._buffers)
        stamp_ns, state = episode.stamp_at(reference_ns), episode.state_at(reference_ns)
        if isinstance(stamp_ns, NotReady):
            return stamp_ns
        return state if isinstance(state, NotReady) else Observation({}, state, task, stamp_ns)

    def _supervise(self, reference: int | NotReady, now_ns: int) -> None:
        if self._next_supervision_ns is None:
            self._played.start_ns = self._next_supervision_ns = now_ns
        if now_ns < self._next_supervision_ns:
            return
        self._next_supervision_ns = now_ns + SUPERVISION_NS
        if isinstance(reference, NotReady):
            self._note_fault(reference, now_ns)
        else:
            self._known_fault = None
        holding = self._pilot.executor.holding
        if holding is not None and holding is not self._last_hold and self._pilot.has_moved:
            sentence = f"the robot is held: {holding.value.replace('_', ' ')}"
            self._played.moments.append(Moment(now_ns, "hold", holding.value, sentence))
        self._last_hold = holding

    def _note_fault(self, fault: NotReady, now_ns: int) -> None:
        """Count a reason when it changes, once there have been observations; before, the last one is kept."""
        known, self._known_fault = self._known_fault, fault
        self._played.last_fault = fault.sentence
        if self._played.first_observation_ns is None:
            return
        if known is None or (known.reason, known.stream) != (fault.reason, fault.stream):
            self._played.not_ready[fault.reason.value] += 1
            self._played.moments.append(Moment(now_ns, "observation", fault.reason.value, fault.sentence))
