"""From a complete observation to a chunk in the plan: when to infer, what from, and what becomes of the answer."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Any

import torch
from rclpy.lifecycle import LifecycleNode
from trajectory_msgs.msg import JointTrajectory

from groot_ros.alignment import Aligner, NotReady, TurningBuffers
from groot_ros.nodes.command_messages import chunk_message
from groot_ros.nodes.policy_debug_images import DebugImages
from groot_ros.nodes.policy_loading import LoadedPolicy
from groot_ros.nodes.policy_motion import Motion
from groot_ros.nodes.policy_parameters import PolicyParameters
from groot_ros.nodes.policy_state import SessionState
from groot_ros.nodes.policy_worker import Job, Outcome
from groot_ros.nodes.quiet import QUIET
from groot_ros.observation import NANOSECONDS_PER_SECOND, ActionChunk
from groot_ros.policy import Prediction, PredictionRequest
from groot_ros.processing.upload import pinned_frames

CHUNK_DEPTH = 10


def frame_buffers(device: torch.device) -> TurningBuffers:
    """One buffer a camera, used again and again: none is made while the model still reads the last.

    A GPU reads by itself from those that are pinned, so their frames are not copied once more on the way to it.
    """
    return TurningBuffers(turns=1, make=pinned_frames if device.type == "cuda" else None)


class Predictions:
    """Asks the model's thread and takes its answers; whoever calls holds the session's lock unless a method says so.

    Args:
        node: The node.
        loaded: The policy and its robot.
        parameters: Those that count while running.
        aligner: Where observations come from.
        motion: Where chunks go.
        state: What the session's parts share.
        on_taken: Called, with the lock, after outcomes were taken: the next inference may be due.

    Attributes:
        instruction: The present task.
        generation: Number of the plan; an inference that was begun for an earlier one is worth nothing.
        fault: Why the last prediction gave no chunk, or its chunk was refused; empty where it was well.
        pictures_fault: Why the last observation that was wanted had no pictures.
        is_busy: From the hand-over of a job until its outcome has been taken.

    """

    def __init__(
        self,
        node: LifecycleNode,
        loaded: LoadedPolicy,
        *,
        parameters: PolicyParameters,
        aligner: Aligner,
        motion: Motion,
        state: SessionState,
        on_taken: Callable[[], None],
    ) -> None:
        self._node = node
        self._contract, self._policy = loaded.contract, loaded.policy
        self._parameters = parameters
        self._aligner = aligner
        self._motion = motion
        self._state = state
        self._on_taken = on_taken
        self._names = {group: self._contract.action_dimensions(group) for group in self._contract.actions}
        self.instruction = loaded.instruction
        self.generation = 0
        self.fault = ""
        self.pictures_fault: NotReady | None = None
        self.is_busy = False
        self._chunks: Any = node.create_lifecycle_publisher(
            JointTrajectory, "~/action_chunk", CHUNK_DEPTH, event_callbacks=QUIET
        )
        self._debug = DebugImages(node, self._contract.cameras)
        self._last_inferred_ns: int | None = None
        self._last_inference_s = -float("inf")
        self._last_chunk: ActionChunk | None = None
        self._last_rolled: ActionChunk | None = None
        self._buffers = frame_buffers(self._policy.device)
        self._outcomes: deque[Outcome] = deque()
        self._wake = node.create_guard_condition(self._take_outcomes)
        self._seat = loaded.worker.seat(self._hand_over)

    @property
    def is_alive(self) -> bool:
        """Whether the model answers."""
        return self._seat.is_alive

    @property
    def death(self) -> str | None:
        """What ended the model's thread."""
        return self._seat.death

    @property
    def busy_s(self) -> float:
        """For how long the present inference has run; 0 where there is none."""
        return self._seat.busy_s

    def consider(self, reference_ns: int) -> None:
        """Infer from the observation at a stamp where that is due."""
        if self.is_busy or not self._seat.is_alive:
            return
        wants_frames = self._debug.are_wanted()
        is_due = reference_ns != self._last_inferred_ns and self._is_due()
        if not is_due and not wants_frames:
            return
        observation = self._aligner.observation_at(reference_ns, self.instruction, self._buffers)
        self.pictures_fault = observation if isinstance(observation, NotReady) else None
        if isinstance(observation, NotReady):
            return
        inference = prefix = None
        if is_due:
            self._last_inferred_ns = reference_ns
            self._last_inference_s = time.monotonic()
            if self._motion.is_running:
                inference = self._motion.begin_inference(observation.stamp_ns)
                prefix = inference.prefix
                if prefix is not None and self._last_chunk is not None:
                    prefix = self._policy.unrolled(prefix, self._last_chunk)
        self.is_busy = True
        request = PredictionRequest(
            observation,
            previous_chunk=prefix,
            seed=self._parameters.seed,
            frozen_rows=0 if inference is None else inference.frozen_rows,
            ramp_rate=self._contract.motion.rtc_ramp_rate,
            names=self._names,
        )
        self._seat.submit(
            Job(
                request,
                self.generation,
                predict=is_due,
                inference=inference,
                frames=wants_frames,
                submitted_ns=self._state.now_ns(),
            )
        )

    def change_task(self, text: str) -> None:
        """Take a new task; the inference in flight is worth nothing."""
        self.instruction = text
        self.generation += 1
        self._motion.change_task()
        self._last_inferred_ns = None

    def begin_motion(self) -> None:
        """Note that the robot begins to move: what was said while it did not counts no more."""
        self._last_rolled = None

    def forget(self) -> None:
        """Forget the plan and the inference in flight."""
        self.generation += 1
        self._motion.reset()
        self._last_inferred_ns = None
        self._last_chunk = self._last_rolled = None

    def destroy(self) -> None:
        """Ask and take nothing more; without the lock."""
        self._seat.leave()
        self._node.destroy_guard_condition(self._wake)
        self._debug.destroy()
        self._node.destroy_lifecycle_publisher(self._chunks)

    def _is_due(self) -> bool:
        if self._motion.is_running:
            return self._motion.inference_due()
        period_s = self._parameters.keep_warm_period_s
        return period_s > 0 and time.monotonic() - self._last_inference_s >= period_s

    def _hand_over(self, outcome: Outcome) -> None:
        """From the model's thread to the node's."""
        self._outcomes.append(outcome)
        self._wake.trigger()

    def _take_outcomes(self) -> None:
        with self._state.lock:
            while self._outcomes:
                self.is_busy = False
                self._take(self._outcomes.popleft())
            self._on_taken()

    def _take(self, outcome: Outcome) -> None:
        job = outcome.job
        if outcome.fault is not None:
            self._note_fault("prediction", outcome.fault)
            if job.inference is not None:
                self._motion.cancel_inference(job.inference)
            return
        if not self._state.is_active:
            return
        if outcome.frames:
            self._debug.publish(outcome.frames, job.request.observation.stamp_ns)
        if outcome.prediction is not None:
            self._take_prediction(job, outcome.prediction)

    def _take_prediction(self, job: Job, prediction: Prediction) -> None:
        chunk, now_ns, ledger = prediction.chunk, self._state.now_ns(), self._state.ledger
        waited_ns, total_ns = job.submitted_ns - chunk.stamp_ns, now_ns - chunk.stamp_ns
        ledger.predicted(prediction.timings, waited_ns / NANOSECONDS_PER_SECOND, total_ns / NANOSECONDS_PER_SECOND)
        ledger.prefix_rows += prediction.prefix.rows
        ledger.prefix_clipped += prediction.prefix.clipped_entries
        ledger.prefixes_dropped += prediction.prefix.dropped
        rolled = self._policy.rollout(chunk, self._last_rolled)
        if job.inference is not None and self._motion.is_running:
            acceptance = self._motion.accept(rolled, job.inference)
            if acceptance.refusal is not None:
                self._note_fault(acceptance.refusal.value, acceptance.sentence)
            else:
                ledger.accepted(rolled, now_ns)
                self._last_chunk = chunk
                self._clear_fault()
        else:
            self._clear_fault()
        if job.generation != self.generation:
            return
        self._last_rolled = rolled
        self._chunks.publish(chunk_message(rolled))

    def _note_fault(self, kind: str, sentence: str) -> None:
        self._state.ledger.refusals[kind] += 1
        if kind == "reset":  # as asked
            return
        self._state.has_news = self._state.has_news or sentence != self.fault
        self.fault = sentence
        self._state.log.begin("inference", kind, f"no chunk: {sentence}")

    def _clear_fault(self) -> None:
        self.fault = ""
        self._state.log.end("inference", "chunks are well again")
