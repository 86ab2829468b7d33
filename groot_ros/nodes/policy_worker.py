"""The model's thread: one inference at a time, away from every callback."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from groot_ros.errors import GrootError
from groot_ros.execution.status import Inference
from groot_ros.observation import ActionChunk, Observation
from groot_ros.policy import GrootPolicy, PrefixReport, StageTimings

LONGEST_JOIN_S = 5.0


@dataclass(frozen=True)
class Job:
    """What the model's thread is asked for.

    Attributes:
        observation: What to predict from.
        generation: Number of the plan that the outcome is for; after a reset it is worth nothing.
        predict: Whether to predict; else only the frames are wanted.
        inference: The executor's token where the chunk will be executed.
        prefix: Rows still to come, for real-time chunking.
        ramp_rate: How fast the rows after the frozen ones become free.
        seed: Seed of the noise.
        frames: Whether the frames are wanted as the network sees them.
        submitted_ns: The node's clock when it was handed over.

    """

    observation: Observation
    generation: int
    predict: bool = True
    inference: Inference | None = None
    prefix: ActionChunk | None = None
    ramp_rate: float = 6.0
    seed: int | None = None
    frames: bool = False
    submitted_ns: int = 0


@dataclass(frozen=True)
class Outcome:
    """What became of a job: a chunk, or the sentence that says why there is none."""

    job: Job
    chunk: ActionChunk | None = None
    fault: str | None = None
    timings: StageTimings | None = None
    prefix: PrefixReport = field(default_factory=PrefixReport)
    frames: Mapping[str, NDArray[np.uint8]] = field(default_factory=dict)


class InferenceWorker:
    """Runs a policy in a thread of its own.

    Args:
        policy: The policy; from now on only this thread calls its ``predict``.
        on_outcome: Called in the model's thread with each outcome; must hand it on at once.

    """

    def __init__(self, policy: GrootPolicy, on_outcome: Callable[[Outcome], None]) -> None:
        self._policy = policy
        self._on_outcome = on_outcome
        self._condition = threading.Condition()
        self._job: Job | None = None
        self._stopping = False
        self._busy_since: float | None = None
        self.death: str | None = None
        self._thread = threading.Thread(target=self._run, name="groot_policy_model", daemon=True)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether the thread runs; it ends by itself only when the model fails in a way that nobody foresaw."""
        return self._thread.is_alive()

    @property
    def is_busy(self) -> bool:
        """Whether a job is being worked on."""
        return self._busy_since is not None

    @property
    def busy_s(self) -> float:
        """For how long the present job has been worked on; 0 where there is none."""
        since = self._busy_since
        return 0.0 if since is None else time.monotonic() - since

    def submit(self, job: Job) -> None:
        """Hand over a job; only while none is worked on."""
        with self._condition:
            self._job = job
            self._busy_since = time.monotonic()
            self._condition.notify()

    def stop(self) -> bool:
        """End the thread; whether it has ended, which a hanging model prevents."""
        with self._condition:
            self._stopping = True
            self._condition.notify()
        self._thread.join(LONGEST_JOIN_S)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while True:
            with self._condition:
                while self._job is None and not self._stopping:
                    self._condition.wait()
                if self._stopping:
                    return
                job, self._job = self._job, None
            assert job is not None  # the condition above
            try:
                outcome = self._work(job)
            except GrootError as error:
                outcome = Outcome(job, fault=str(error))
            except Exception as error:  # noqa: BLE001 - said aloud by the node, which holds the robot
                self.death = f"{type(error).__name__}: {error}"
                return
            self._busy_since = None
            self._on_outcome(outcome)

    def _work(self, job: Job) -> Outcome:
        chunk = timings = None
        prefix = PrefixReport()
        if job.predict:
            frozen_rows = job.inference.frozen_rows if job.inference is not None else 0
            chunk = self._policy.predict(
                job.observation, job.prefix, job.seed, frozen_rows=frozen_rows, ramp_rate=job.ramp_rate
            )
            timings, prefix = self._policy.last_timings, self._policy.last_prefix
        frames = self._policy.processor.processed_frames(job.observation) if job.frames else {}
        return Outcome(job, chunk=chunk, timings=timings, prefix=prefix, frames=frames)
