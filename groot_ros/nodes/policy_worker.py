"""The model's thread: away from every callback, and for all robots of the process whatever waits at once."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from groot_ros.errors import GrootError
from groot_ros.execution.status import Inference
from groot_ros.policy import GrootPolicy, Prediction, PredictionRequest

LONGEST_JOIN_S = 5.0

Result = TypeVar("Result")


@dataclass(frozen=True)
class Job:
    """What the model's thread is asked for.

    Attributes:
        request: What to predict from.
        generation: Number of the plan that the outcome is for; after a reset it is worth nothing.
        predict: Whether to predict; else only the frames are wanted.
        inference: The executor's token where the chunk will be executed.
        frames: Whether the frames are wanted as the network sees them.
        submitted_ns: The node's clock when it was handed over.

    """

    request: PredictionRequest
    generation: int
    predict: bool = True
    inference: Inference | None = None
    frames: bool = False
    submitted_ns: int = 0


@dataclass(frozen=True)
class Outcome:
    """What became of a job: a prediction, or the sentence that says why there is none."""

    job: Job
    prediction: Prediction | None = None
    fault: str | None = None
    frames: Mapping[str, NDArray[np.uint8]] = field(default_factory=dict)


class Seat:
    """One robot's place at the model's thread.

    Args:
        worker: The thread.
        on_outcome: Called in the model's thread with each outcome; must hand it on at once.

    Attributes:
        death: What the model failed with in a way that nobody foresaw, in a prediction for this robot.

    """

    def __init__(self, worker: InferenceWorker, on_outcome: Callable[[Outcome], None]) -> None:
        self._worker = worker
        self.on_outcome = on_outcome
        self.job: Job | None = None
        self.busy_since: float | None = None
        self.death: str | None = None

    @property
    def is_alive(self) -> bool:
        """Whether jobs are worked on."""
        return self.death is None and self._worker.is_alive

    @property
    def busy_s(self) -> float:
        """For how long the present job has waited or been worked on; 0 where there is none."""
        since = self.busy_since
        return 0.0 if since is None else time.monotonic() - since

    def submit(self, job: Job) -> None:
        """Hand over a job; only while none is worked on."""
        self._worker.submit(self, job)

    def leave(self) -> None:
        """Give the place up: no outcome comes any more."""
        self._worker.remove(self)


class InferenceWorker:
    """Runs a policy in a thread of its own, for any number of robots.

    Whenever the thread becomes free, it takes the jobs of all robots that wait; a robot that is alone waits for nobody.

    Args:
        policy: The policy; from now on only this thread calls its ``predict_batch``.

    """

    def __init__(self, policy: GrootPolicy) -> None:
        self.policy = policy
        self._condition = threading.Condition()
        self._seats: list[Seat] = []
        self._chores: deque[Callable[[], None]] = deque()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="groot_policy_model", daemon=True)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def seat(self, on_outcome: Callable[[Outcome], None]) -> Seat:
        """A place for a robot."""
        seat = Seat(self, on_outcome)
        with self._condition:
            self._seats.append(seat)
        return seat

    def submit(self, seat: Seat, job: Job) -> None:
        """See `Seat.submit`."""
        with self._condition:
            seat.job = job
            seat.busy_since = time.monotonic()
            self._condition.notify()

    def remove(self, seat: Seat) -> None:
        """See `Seat.leave`."""
        with self._condition:
            self._seats.remove(seat)

    def call(self, work: Callable[[], Result]) -> Result:
        """Do something in the model's thread, between predictions, and wait for what it gives."""
        future: Future[Result] = Future()

        def chore() -> None:
            try:
                future.set_result(work())
            except Exception as error:  # noqa: BLE001 - raised where it is waited for
                future.set_exception(error)

        with self._condition:
            self._chores.append(chore)
            self._condition.notify()
        return future.result()

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
                self._condition.wait_for(self._has_work)
                if self._stopping:
                    return
                waiting = [(seat, seat.job) for seat in self._seats if seat.job is not None]
                for seat, _ in waiting:
                    seat.job = None
                chores, self._chores = self._chores, deque()
            self._work(waiting)
            for chore in chores:
                chore()

    def _has_work(self) -> bool:
        return self._stopping or bool(self._chores) or any(seat.job is not None for seat in self._seats)

    def _work(self, waiting: Sequence[tuple[Seat, Job]]) -> None:
        asked = [(seat, job) for seat, job in waiting if job.predict]
        for seat, job in waiting:
            if not job.predict:
                self._finish(seat, job, None)
        try:
            together = self.policy.together([job.request.observation for _, job in asked]) if asked else []
        except GrootError:  # alone, the robot whose observation it is hears why
            together = [[place] for place in range(len(asked))]
        for places in together:
            self._predict([asked[place] for place in places])

    def _predict(self, asked: Sequence[tuple[Seat, Job]]) -> None:
        """Predict for robots together; where that fails for each alone, so that a fault is that of its robot."""
        try:
            predictions = self.policy.predict_batch([job.request for _, job in asked])
        except Exception as error:  # noqa: BLE001 - said aloud by the node, which holds the robot
            if len(asked) > 1:
                for seat, job in asked:
                    self._predict([(seat, job)])
            else:
                self._fail(*asked[0], error)
            return
        for (seat, job), prediction in zip(asked, predictions, strict=True):
            self._finish(seat, job, prediction)

    def _finish(self, seat: Seat, job: Job, prediction: Prediction | None) -> None:
        try:
            frames = self.policy.processor.processed_frames(job.request.observation) if job.frames else {}
        except Exception as error:  # noqa: BLE001 - as above
            self._fail(seat, job, error)
            return
        self._hand_out(seat, Outcome(job, prediction, frames=frames))

    def _fail(self, seat: Seat, job: Job, error: Exception) -> None:
        if isinstance(error, GrootError):
            self._hand_out(seat, Outcome(job, fault=str(error)))
        else:
            seat.death = f"{type(error).__name__}: {error}"

    def _hand_out(self, seat: Seat, outcome: Outcome) -> None:
        with self._condition:
            if seat in self._seats:
                seat.busy_since = None
                seat.on_outcome(outcome)
