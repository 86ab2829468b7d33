"""One policy with its executor while a recording is played: when it infers, what it plans, and what it would send.

The calls are those of the policy node, in the node's order, but for threads: a prediction is made at once and its chunk
is handed over when the simulated latency has passed.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from groot_ros.contract import Contract
from groot_ros.evaluation.latency import Latency
from groot_ros.evaluation.policies import PREDICTION_FAULTS, DebugPolicy, ReplayablePolicy, without_images
from groot_ros.evaluation.sent_rows import SentRows
from groot_ros.evaluation.timing import Times, row_times_ns
from groot_ros.execution.executor import Executor
from groot_ros.execution.status import Inference
from groot_ros.execution.urdf import UrdfLimits
from groot_ros.observation import NANOSECONDS_PER_SECOND, ActionChunk, Observation

TURN_NS = NANOSECONDS_PER_SECOND // 50
"""How often the executor is asked for commands: as seldom as it allows, since nothing is sent."""
PREDICTION_FAILED = "prediction"
"""The refusal of a prediction that gave no chunk; all others are those of the executor."""


@dataclass(frozen=True)
class Prediction:
    """A chunk, and what became of it.

    Attributes:
        observation: What it was predicted from.
        chunk: As predicted.
        began_ns: When the inference began.
        arrived_ns: When the chunk was there.
        refusal: Why it is not executed; empty where it is.
        sentence: The same for a person.
        stages_s: Stage to seconds, as the policy measured; empty where it did not.
        rows_expired: Rows that were past when it arrived, where it was accepted.
        rows_before: Rows of the recording that had been sent when it arrived.

    """

    observation: Observation
    chunk: ActionChunk
    began_ns: int
    arrived_ns: int
    refusal: str = ""
    sentence: str = ""
    stages_s: Mapping[str, float] = field(default_factory=dict)
    rows_expired: int = 0
    rows_before: int = 0


@dataclass(frozen=True)
class InFlight:
    """A chunk that is under way."""

    inference: Inference
    observation: Observation
    chunk: ActionChunk
    began_ns: int
    arrives_ns: int
    stages_s: Mapping[str, float] = field(default_factory=dict)


class Pilot:
    """Runs a policy through one episode. The clock is told to it.

    Args:
        contract: Outputs, limits and motion.
        policy: The policy.
        latency: How long a prediction takes by the recording's clock.
        seed: Seed of every prediction; None draws anew each time.
        urdf: The robot's description, where the contract wants it.
        on_observation: Called with each observation that a chunk is to come from, before it is asked for.
        on_prediction: Called with each chunk that has arrived.
        on_failure: Called with an observation that no chunk comes from, the time, and why in one sentence.
        on_rows: Called with the times of rows that have come ``(N,)`` and what the robot is told to do then: action
            group to values ``(N, D)``; not at once, but before the next chunk's length has passed.

    """

    def __init__(
        self,
        contract: Contract,
        policy: ReplayablePolicy,
        latency: Latency,
        *,
        seed: int | None,
        urdf: UrdfLimits | None = None,
        on_observation: Callable[[Observation], None],
        on_prediction: Callable[[Prediction], None],
        on_failure: Callable[[Observation, int, str], None],
        on_rows: Callable[[Times, dict[str, NDArray[np.float64]]], None],
    ) -> None:
        self.policy = policy
        self.executor = Executor(contract, horizon=policy.horizon, urdf=urdf)
        self.refusals: Counter[str] = Counter()
        self.rows_executed = 0
        self._contract = contract
        self._latency = latency
        self._seed = seed
        self._on_observation, self._on_prediction = on_observation, on_prediction
        self._on_failure, self._on_rows = on_failure, on_rows
        self._sent = SentRows(self.executor)
        self._in_flight: InFlight | None = None
        self._last_inferred_ns: int | None = None
        self._last_chunk: ActionChunk | None = None
        self._last_rolled: ActionChunk | None = None
        self._running: tuple[Times, int] | None = None  # the times of the rows that are executed, and since when
        self._next_turn_ns: int | None = None
        self._next_row: tuple[int, int] | None = None  # start of the grid of rows, number of the next row

    @property
    def has_moved(self) -> bool:
        """Whether a chunk has ever been accepted."""
        return self._last_chunk is not None

    @property
    def is_waiting(self) -> bool:
        """Whether a chunk is under way."""
        return self._in_flight is not None

    @property
    def wants_images(self) -> bool:
        """Whether the policy looks at pictures."""
        return not isinstance(self.policy, DebugPolicy)

    def advance(self, now_ns: int) -> None:
        """Let the time pass: commands are sent and chunks arrive."""
        if self._next_turn_ns is None:
            self._next_turn_ns = now_ns
        while True:
            arrives_ns = self._in_flight.arrives_ns if self._in_flight is not None else None
            if arrives_ns is not None and arrives_ns <= min(now_ns, self._next_turn_ns):
                self._arrive()
            elif self._next_turn_ns <= now_ns:
                self._note_rows(self._next_turn_ns)
                self.executor.commands(self._next_turn_ns)
                self._next_turn_ns += TURN_NS
            else:
                return

    def observe(self, state: Mapping[str, NDArray[np.float32]], reference_ns: int, now_ns: int) -> None:
        """Note a new observation's state."""
        if self._next_row is None:
            self._next_row = (reference_ns, 0)
        self.executor.observe(state, reference_ns, now_ns, complete=True)

    def inference_due(self, reference_ns: int, now_ns: int) -> bool:
        """Whether a prediction from this observation must begin now."""
        if self._in_flight is not None or reference_ns == self._last_inferred_ns:
            return False
        return self.executor.inference_due(now_ns)

    def infer(self, observation: Observation, reference_ns: int, now_ns: int) -> None:
        """Predict; without latency the chunk arrives at once."""
        self._last_inferred_ns = reference_ns
        self._on_observation(observation)
        inference = self.executor.begin_inference(observation.stamp_ns, now_ns)
        prefix = inference.prefix
        if prefix is not None and self._last_chunk is not None:
            prefix = self.policy.unrolled(prefix, self._last_chunk)
        started_s = time.perf_counter()
        try:
            chunk = self.policy.predict(
                observation if self.wants_images else without_images(observation),
                prefix,
                self._seed,
                frozen_rows=inference.frozen_rows,
                ramp_rate=self._contract.motion.rtc_ramp_rate,
            )
        except PREDICTION_FAULTS as error:
            self.executor.cancel_inference(inference, now_ns)
            self.refusals[PREDICTION_FAILED] += 1
            self._on_failure(observation, now_ns, str(error))
            return
        latency_ns = self._latency.of(time.perf_counter() - started_s)
        timings = self.policy.last_timings
        stages = (
            {}
            if timings is None
            else {
                "data_processing": timings.data_processing_s,
                "backbone": timings.backbone_s,
                "action_head": timings.action_head_s,
                "decode": timings.decode_s,
                "prediction": timings.total_s,
            }
        )
        self.hand_over(InFlight(inference, observation, chunk, now_ns, now_ns + latency_ns, stages))

    def hand_over(self, flight: InFlight) -> None:
        """Let a chunk arrive when its time has come; at once where that is now."""
        self._in_flight = flight
        if flight.arrives_ns <= flight.began_ns:
            self._arrive()

    def finish(self, now_ns: int) -> None:
        """The recording has ended."""
        self._stopped(now_ns)
        self._report_rows()

    def _arrive(self) -> None:
        assert self._in_flight is not None  # asked before
        flight, self._in_flight = self._in_flight, None
        now_ns, chunk = flight.arrives_ns, flight.chunk
        rolled = self.policy.rollout(chunk, self._last_rolled)
        acceptance = self.executor.accept(rolled, flight.inference, now_ns)
        expired = 0
        if acceptance.refusal is not None:
            self.refusals[acceptance.refusal.value] += 1
        else:
            self._stopped(now_ns)
            self._running = (row_times_ns(rolled), now_ns)
            expired = _rows_until(self._running[0], now_ns)
            self._last_chunk = chunk
        self._last_rolled = rolled
        self._on_prediction(
            Prediction(
                observation=flight.observation,
                chunk=chunk,
                began_ns=flight.began_ns,
                arrived_ns=now_ns,
                refusal="" if acceptance.refusal is None else acceptance.refusal.value,
                sentence=acceptance.sentence,
                stages_s=flight.stages_s,
                rows_expired=expired,
                rows_before=self._next_row[1] if self._next_row is not None else 0,
            )
        )

    def _stopped(self, now_ns: int) -> None:
        """Count the rows of the chunk that was executed until now."""
        if self._running is not None:
            times_ns, since_ns = self._running
            self.rows_executed += max(_rows_until(times_ns, now_ns) - _rows_until(times_ns, since_ns), 0)
        self._running = None

    def _note_rows(self, now_ns: int) -> None:
        """Note what is sent at every row time before now."""
        if self._next_row is None:
            return
        start_ns, number = self._next_row
        while (row_ns := start_ns + round(number * NANOSECONDS_PER_SECOND / self._contract.rate_hz)) < now_ns:
            self._sent.note(row_ns)
            number += 1
        self._next_row = (start_ns, number)
        # What was demonstrated is remembered for no longer than a chunk.
        if len(self._sent) >= self.policy.horizon:
            self._report_rows()

    def _report_rows(self) -> None:
        if len(self._sent):
            self._on_rows(*self._sent.take())


def _rows_until(times_ns: Times, time_ns: int) -> int:
    """How many rows lie before or at a time."""
    return int(np.searchsorted(times_ns, time_ns, side="right"))
