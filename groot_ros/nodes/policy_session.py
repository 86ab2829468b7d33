"""All that exists between configure and clean-up: messages to observations to chunks to motion."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rclpy.lifecycle import LifecycleNode
from trajectory_msgs.msg import JointTrajectory

from groot_ros.alignment import Aligner, NotReady, Reason
from groot_ros.errors import ObservationError
from groot_ros.execution.state_check import StateFit, check_state
from groot_ros.execution.status import HoldReason
from groot_ros.nodes.command_messages import chunk_message
from groot_ros.nodes.edge_log import EdgeLog
from groot_ros.nodes.policy_debug_images import DebugImages
from groot_ros.nodes.policy_diagnostics import Snapshot, low_rates
from groot_ros.nodes.policy_gate import MotionGate, table
from groot_ros.nodes.policy_ingest import Ingest
from groot_ros.nodes.policy_ledger import Ledger
from groot_ros.nodes.policy_loading import LoadedPolicy
from groot_ros.nodes.policy_motion import Motion
from groot_ros.nodes.policy_outputs import Outputs
from groot_ros.nodes.policy_parameters import PolicyParameters
from groot_ros.nodes.policy_worker import InferenceWorker, Job, Outcome
from groot_ros.nodes.quiet import QUIET
from groot_ros.observation import NANOSECONDS_PER_SECOND, ActionChunk

CHUNK_DEPTH = 10
STATES_AWAITED = 10
"""So many messages of state after a frame may be the first one that is newer than it; supervision finds later ones."""
SLOW_CHECK_S = 1.0
"""How often the graph and the file system are looked at."""


class PolicySession:
    """Runs a loaded policy on a node.

    The public methods belong to the thread of the node's executor; messages come in the thread of the streams. One lock
    guards all that both touch: each callback holds it, and so does each public method for as long as it looks.

    Args:
        node: The node.
        loaded: The policy and its robot.
        parameters: Those that count while running.

    Raises:
        ContractError: A message type of the contract is not installed.

    """

    def __init__(self, node: LifecycleNode, loaded: LoadedPolicy, parameters: PolicyParameters) -> None:
        self._node = node
        self._lock = threading.RLock()
        self._clock = node.get_clock()
        self._log = EdgeLog(node.get_logger())
        self._parameters = parameters
        self.contract, self.policy = loaded.contract, loaded.policy
        self.instruction = loaded.instruction
        modalities = self.policy.embodiment.modalities
        self._aligner = Aligner(self.contract, modalities.video.delta_indices, modalities.state.delta_indices)
        self._gate = MotionGate(self.contract, self.policy.embodiment.statistics)
        self._state_names = {group: self.contract.state_dimensions(group) for group in self.contract.state}
        self._ledger = Ledger()
        self._outputs = Outputs(node, self.contract)
        self._chunks: Any = node.create_lifecycle_publisher(
            JointTrajectory, "~/action_chunk", CHUNK_DEPTH, event_callbacks=QUIET
        )
        self._debug = DebugImages(node, self.contract.cameras)
        self._motion = Motion(self.contract, loaded.executor, self._outputs, self._clock)
        self._outcomes: deque[Outcome] = deque()
        self._wake = node.create_guard_condition(self._take_outcomes)
        self._worker = InferenceWorker(self.policy, self._hand_over)
        self.is_active = False
        self.is_enabled = False
        self.has_news = False
        self._generation = 0
        self._states_awaited = 0
        self._is_inferring = False  # from the hand-over of a job until its outcome has been taken
        self._last_reference_ns: int | None = None
        self._last_inferred_ns: int | None = None
        self._last_inference_s = -float("inf")
        self._last_chunk: ActionChunk | None = None
        self._last_rolled: ActionChunk | None = None
        self._buffers: dict[str, NDArray[np.uint8]] = {}
        self._not_ready: NotReady | None = None
        self._clock_jump: NotReady | None = None  # lasts a moment, so it is kept until it has been told
        self._publishers_fault: NotReady | None = None
        self._pictures_fault: NotReady | None = None
        self._inference_fault = ""
        self._fault = ""
        self._slow_warnings: list[str] = []
        self._state_warnings: list[str] = []
        self._last_slow_check_s = -float("inf")
        self._auto_enable = parameters.auto_enable
        self._ingest = Ingest(
            node, self.contract, self._aligner, self._lock, on_frame=self._on_frame, on_state=self._on_state
        )
        self._ingest.start()  # the last: callbacks come at once, and find everything there

    def activate(self) -> None:
        """Begin to infer; in a dry run also to plan, without sending anything."""
        with self._lock:
            self.is_active = True
            self._auto_enable = self._parameters.auto_enable
            if self._parameters.dry_run:
                self._motion.start(sends=False)

    def deactivate(self) -> None:
        """Send what holds the robot, and stop."""
        with self._lock:
            self._halt()
            self.is_active = False
        self._outputs.flush()

    def destroy(self) -> bool:
        """End threads and subscriptions; whether the model's thread has ended, which a hanging model prevents."""
        with self._lock:
            self._halt()
            self.is_active = False
        self._ingest.destroy()
        self._motion.destroy()
        ended = self._worker.stop()
        self._node.destroy_guard_condition(self._wake)
        self._outputs.destroy()
        self._debug.destroy()
        self._node.destroy_lifecycle_publisher(self._chunks)
        return ended

    def enable(self, *, on: bool) -> tuple[bool, str]:
        """Switch motion; whether it was done, and a sentence."""
        with self._lock:
            return self._switch_on() if on else self._switch_off()

    def reset(self) -> tuple[bool, str]:
        """Forget plan, history and the inference in flight."""
        with self._lock:
            self._generation += 1
            self._motion.reset()
            self._ledger.stopped(self._now_ns())
            self._aligner.reset()
            self._ingest.reset()
            self._last_reference_ns = self._last_inferred_ns = None
            self._last_chunk = self._last_rolled = None
        return True, "plan and history are forgotten"

    def progress(self) -> dict[str, Any]:
        """What has been taken in so far, for a player that waits for it: time, messages by topic, whether it is busy.

        A due inference is looked for first, so that one that the answer does not speak of does not begin by itself.
        """
        with self._lock:
            if self.is_active and not self._fault:
                self._consider()
            return {
                "now_ns": self._now_ns(),
                "is_active": self.is_active,
                "is_busy": self._is_inferring,
                "chunks": self._ledger.chunks,
                "messages": dict(self._ingest.counts),
            }

    def told(self, snapshot: Snapshot) -> None:
        """Note that ``snapshot`` was published."""
        with self._lock:
            self.has_news = False
            if snapshot.not_ready is self._clock_jump:
                self._clock_jump = None

    def instruct(self, text: str) -> None:
        """Take a new task; the inference in flight is worth nothing."""
        if text == self.instruction:
            return
        if not text.strip():
            self._log.begin("instruction", "empty", f"instruction: found an empty one; {self.instruction!r} stays")
            return
        try:
            self.policy.processor.prompts.refuse_control_tokens(text)
        except ObservationError as error:
            self._log.begin("instruction", text, f"instruction refused, {self.instruction!r} stays: {error}")
            return
        with self._lock:
            self.instruction = text
            self._generation += 1
            self._motion.change_task()
            self._last_inferred_ns = None
        self._node.get_logger().info(f"instruction: {text}")

    def supervise(self) -> bool:
        """Look after what no message reports; whether the node is healthy."""
        if not self._fault:
            if not self._worker.is_alive:
                self._die(f"the model's thread has ended ({self._worker.death}); clean up and configure again")
            elif not self._motion.is_alive:
                self._die(f"the motion thread has ended ({self._motion.death}); clean up and configure again")
            elif not self._ingest.is_alive:
                self._die(f"the messages' thread has ended ({self._ingest.death}); clean up and configure again")
        now_s = time.monotonic()
        if now_s - self._last_slow_check_s >= SLOW_CHECK_S:
            self._last_slow_check_s = now_s
            self._check_surroundings()
        with self._lock:
            found = self._reference()
            self._note_not_ready(found if isinstance(found, NotReady) else self._pictures_fault)
            self._say_motion()
            if self._auto_enable and self.is_active and self._gate.readings is not None and self._not_ready is None:
                self._auto_enable = False
                done, sentence = self.enable(on=True)
                if not done:
                    self._node.get_logger().error(f"motion stays disabled: {sentence}")
            if self.is_active and not self._fault:
                self._consider()
        return not self._fault and self._motion.is_on_time

    def snapshot(self, state: str) -> Snapshot:
        """Everything for diagnostics."""
        with self._lock:
            return self._snapshot(state)

    def _switch_off(self) -> tuple[bool, str]:
        self._auto_enable = False
        if not self.is_enabled:
            return True, "motion was disabled already"
        self._halt()
        self._node.get_logger().info("motion disabled, a hold was sent")
        return True, "motion is disabled, a hold was sent"

    def _switch_on(self) -> tuple[bool, str]:
        refusal = self._enable_refusal()
        if refusal is not None:
            return False, refusal
        if self.is_enabled:
            return True, "motion was enabled already"
        for warning in self._gate.warnings():
            self._node.get_logger().warning(warning)
        self._last_rolled = None
        self.is_enabled = self.has_news = True
        self._motion.start(sends=True)
        self._node.get_logger().info("motion enabled")
        return True, "motion is enabled"

    def _snapshot(self, state: str) -> Snapshot:
        now_ns, ledger = self._now_ns(), self._ledger
        counts: dict[str, float] = {
            "observations": ledger.observations,
            "chunks": ledger.chunks,
            "rows_executed": ledger.rows_executed,
            "rows_expired": ledger.rows_expired,
            "prefix.rows": ledger.prefix_rows,
            "prefix.clipped_entries": ledger.prefix_clipped,
            "prefix.dropped": ledger.prefixes_dropped,
            **{f"refused.{reason}": count for reason, count in sorted(ledger.refusals.items())},
            **{f"latency.{stage}": value for stage, value in ledger.latencies_ms().items()},
        }
        return Snapshot(
            state=state,
            hardware_id=self.contract.robot,
            fault=self._fault,
            warnings=[*self._slow_warnings, *self._state_warnings],
            now_ns=now_ns,
            is_enabled=self.is_enabled,
            is_dry_run=self._parameters.dry_run,
            not_ready=self._clock_jump or self._not_ready,
            camera_rates_hz=self._ingest.camera_rates_hz(now_ns),
            declared_rates_hz={
                camera: source.rate_hz for camera, source in self.contract.cameras.items() if source.rate_hz
            },
            health=self._aligner.health,
            motion=self._motion.status(),
            counts=counts,
            inference_fault=self._inference_fault,
            model_busy_s=self._worker.busy_s,
        )

    def _now_ns(self) -> int:
        return int(self._clock.now().nanoseconds)

    def _on_frame(self, *, is_reference: bool) -> None:
        if is_reference:
            self._states_awaited = STATES_AWAITED
        if self.is_active:
            self._consider()

    def _on_state(self) -> None:
        if self._gate.readings is None:
            self._read_state()
        # A frame of the reference camera waits for the state after it; else states alone bring nothing new.
        if self._states_awaited > 0 and self.is_active:
            self._states_awaited -= 1
            self._consider()

    def _read_state(self) -> None:
        measured = self._ingest.measured()
        if measured is None:
            return
        readings = self._gate.read(measured)
        self._node.get_logger().info(f"the state as it is and as the policy knows it:\n{table(readings)}")
        refusal = self._gate.refusal()
        if refusal is not None:
            self._node.get_logger().error(f"motion must stay off: {refusal}")

    def _reference(self) -> int | NotReady:
        """The stamp of the newest observation, or why there is none."""
        found = self._publishers_fault or self._aligner.reference(self._now_ns())
        # This reason is given once; the others last, and are noted when they have lasted until the next supervision.
        if isinstance(found, NotReady) and found.reason is Reason.CLOCK_JUMPED_BACK:
            self._note_not_ready(found)
            self._clock_jump = found
        return found

    def _note_not_ready(self, reason: NotReady | None) -> None:
        """Keep the reason why there is no observation, and say it when it changes."""
        known, self._not_ready = self._not_ready, reason
        if reason is None:
            if known is not None:
                self.has_news = True
                self._log.end("observation", "observations are complete")
        elif known is None or (known.reason, known.stream) != (reason.reason, reason.stream):
            self.has_news = True
            self._ledger.refusals[reason.reason.value] += 1
            kind = f"{reason.reason.value} {reason.stream}"
            self._log.begin("observation", kind, f"no observation: {reason.sentence}")

    def _consider(self) -> None:
        """Take the newest observation, and infer from it where that is due."""
        reference = self._reference()
        if isinstance(reference, NotReady):
            return
        if reference != self._last_reference_ns:
            state = self._aligner.state_at(reference)
            if isinstance(state, NotReady):
                return
            self._last_reference_ns = reference
            self._states_awaited = 0
            self._ledger.observations += 1
            self._check_state(state)
            self._motion.observe(state, reference, complete=True)
        if not self._is_inferring and self._worker.is_alive:
            self._infer(reference)

    def _check_state(self, state: Mapping[str, NDArray[np.floating]]) -> None:
        """Say it when the state leaves the trained range; where it cannot be a state at all, motion is switched off."""
        fit, self._state_warnings = check_state(state, self.policy.embodiment.statistics.state, self._state_names)
        if fit is StateFit.INSIDE:
            self._log.end("state", "the state is within the trained range")
            return
        sentences = "; ".join(self._state_warnings)
        if fit is StateFit.IMPOSSIBLE and self.is_enabled:
            self._halt()
            self._node.get_logger().error(f"motion is disabled, a hold was sent: {sentences}")
        self._log.begin("state", fit.value, sentences)

    def _infer(self, reference_ns: int) -> None:
        wants_frames = self._debug.are_wanted()
        is_due = reference_ns != self._last_inferred_ns and self._inference_is_due()
        if not is_due and not wants_frames:
            return
        observation = self._aligner.observation_at(reference_ns, self.instruction, self._buffer)
        self._pictures_fault = observation if isinstance(observation, NotReady) else None
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
                    prefix = self.policy.unrolled(prefix, self._last_chunk)
        self._is_inferring = True
        self._worker.submit(
            Job(
                observation,
                self._generation,
                predict=is_due,
                inference=inference,
                prefix=prefix,
                ramp_rate=self.contract.motion.rtc_ramp_rate,
                seed=self._parameters.seed,
                frames=wants_frames,
                submitted_ns=self._now_ns(),
            )
        )

    def _inference_is_due(self) -> bool:
        if self._motion.is_running:
            return self._motion.inference_due()
        period_s = self._parameters.keep_warm_period_s
        return period_s > 0 and time.monotonic() - self._last_inference_s >= period_s

    def _buffer(self, camera: str, shape: tuple[int, int, int, int]) -> NDArray[np.uint8]:
        """One buffer a camera, used again and again: none is made while the model still reads the last."""
        buffer = self._buffers.get(camera)
        if buffer is None or buffer.shape != shape:
            buffer = self._buffers[camera] = np.empty(shape, np.uint8)
        return buffer

    def _hand_over(self, outcome: Outcome) -> None:
        """From the model's thread to the node's."""
        self._outcomes.append(outcome)
        self._wake.trigger()

    def _take_outcomes(self) -> None:
        with self._lock:
            while self._outcomes:
                self._is_inferring = False
                self._take(self._outcomes.popleft())
            if self.is_active and not self._fault:
                self._consider()

    def _take(self, outcome: Outcome) -> None:
        job = outcome.job
        if outcome.fault is not None:
            self._note_inference_fault("prediction", outcome.fault)
            if job.inference is not None:
                self._motion.cancel_inference(job.inference)
            return
        if not self.is_active:
            return
        if outcome.frames:
            self._debug.publish(outcome.frames, job.observation.stamp_ns)
        if outcome.chunk is not None:
            self._take_chunk(outcome, outcome.chunk)

    def _take_chunk(self, outcome: Outcome, chunk: ActionChunk) -> None:
        job, now_ns, ledger = outcome.job, self._now_ns(), self._ledger
        if outcome.timings is not None:
            waited_ns, total_ns = job.submitted_ns - chunk.stamp_ns, now_ns - chunk.stamp_ns
            ledger.predicted(outcome.timings, waited_ns / NANOSECONDS_PER_SECOND, total_ns / NANOSECONDS_PER_SECOND)
        ledger.prefix_rows += outcome.prefix.rows
        ledger.prefix_clipped += outcome.prefix.clipped_entries
        ledger.prefixes_dropped += outcome.prefix.dropped
        rolled = self.policy.rollout(chunk, self._last_rolled)
        if job.inference is not None and self._motion.is_running:
            acceptance = self._motion.accept(rolled, job.inference)
            if acceptance.refusal is not None:
                self._note_inference_fault(acceptance.refusal.value, acceptance.sentence)
            else:
                ledger.accepted(rolled, now_ns)
                self._last_chunk = chunk
                self._clear_inference_fault()
        else:
            self._clear_inference_fault()
        if job.generation != self._generation:
            return
        self._last_rolled = rolled
        self._chunks.publish(chunk_message(rolled))

    def _note_inference_fault(self, kind: str, sentence: str) -> None:
        self._ledger.refusals[kind] += 1
        if kind == "reset":  # as asked
            return
        self.has_news = self.has_news or sentence != self._inference_fault
        self._inference_fault = sentence
        self._log.begin("inference", kind, f"no chunk: {sentence}")

    def _clear_inference_fault(self) -> None:
        self._inference_fault = ""
        self._log.end("inference", "chunks are well again")

    def _enable_refusal(self) -> str | None:
        if self._parameters.dry_run:
            return "this is a dry run, so nothing is sent to the robot; start the node with dry_run:=false"
        if not self.is_active:
            return "the node is not active; activate it first"
        if self._fault:
            return self._fault
        measured = self._ingest.measured()
        if measured is not None:
            self._gate.read(measured)
        return self._gate.refusal() or self._outputs.refusal()

    def _halt(self) -> None:
        """Hold the robot and switch motion off."""
        self._motion.stop()
        self._ledger.stopped(self._now_ns())
        self.is_enabled = False
        self.has_news = True

    def _die(self, fault: str) -> None:
        with self._lock:
            self._fault = fault
            self._halt()
        self._node.get_logger().error(f"{fault}; motion is disabled, a hold was sent")

    def _check_surroundings(self) -> None:
        """What lies outside of the messages: other publishers, the checkpoint's folder, gripper servers."""
        sentence = self._ingest.several_publishers()
        self._publishers_fault = None
        if sentence is not None:
            self._publishers_fault = NotReady(Reason.OUT_OF_ORDER, sentence.split(":", maxsplit=1)[0], sentence)
        warnings = []
        path = self.policy.checkpoint.path
        if not (path / "config.json").is_file():
            warnings.append(
                f"checkpoint: {path} is gone; the policy goes on from memory, but it cannot be configured again"
            )
        if self.policy.checkpoint.fps is None:
            warnings.append(
                f"checkpoint: {path} does not record the rate that it was trained at, so the contract's "
                f"{self.contract.rate_hz:g} Hz is taken on trust; if it is wrong, every motion has the wrong speed"
            )
        if not self.instruction.strip():
            warnings.append("instruction: none is given; write one in the contract or publish one on ~/instruction")
        refusal = self._outputs.refusal()
        if refusal is not None:
            warnings.append(refusal)
            if self.is_enabled:
                with self._lock:
                    self._halt()
                self._node.get_logger().error(f"motion is disabled, a hold was sent: {refusal}")
        if self.is_enabled:
            warnings += self._motion.retry()
            heartbeat = self._node.resolve_topic_name("~/heartbeat")
            if not self._node.count_subscribers(heartbeat):
                warnings.append(
                    f"nobody listens to {heartbeat}: nothing holds the robot if this process dies; start the watchdog"
                )
        for warning in warnings:
            if warning not in self._slow_warnings:
                self._node.get_logger().warning(warning)
        self._slow_warnings = warnings
        lost = low_rates(self.snapshot("active"))
        if lost:
            self._log.begin("camera rate", "low", "; ".join(lost))
        else:
            self._log.end("camera rate", "the cameras' frames arrive at their declared rates")

    def _say_motion(self) -> None:
        if not self.is_enabled:
            self._log.end("motion", "motion is off")
            return
        status = self._motion.status()
        if status.holding is None:
            if self._log.end("motion", "the plan is executed"):
                self.has_news = True
        elif status.holding not in {HoldReason.REQUESTED} and self._log.begin(
            "motion", status.holding.value, f"the robot is held: {status.holding.value.replace('_', ' ')}"
        ):
            self.has_news = True
