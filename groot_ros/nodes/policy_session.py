"""All that exists between configure and clean-up: messages to observations to chunks to motion."""

from __future__ import annotations

import time
from typing import Any

from rclpy.lifecycle import LifecycleNode

from groot_ros.alignment import Aligner, NotReady
from groot_ros.errors import ObservationError
from groot_ros.execution.state_check import StateFit
from groot_ros.nodes.policy_diagnostics import Snapshot, low_rates
from groot_ros.nodes.policy_ingest import Ingest
from groot_ros.nodes.policy_loading import LoadedPolicy
from groot_ros.nodes.policy_motion import Motion
from groot_ros.nodes.policy_observer import Observer
from groot_ros.nodes.policy_outputs import Outputs
from groot_ros.nodes.policy_parameters import PolicyParameters
from groot_ros.nodes.policy_predictions import Predictions
from groot_ros.nodes.policy_state import SessionState
from groot_ros.nodes.policy_surroundings import Surroundings
from groot_ros.nodes.policy_switch import MotionSwitch

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
        self._state = SessionState.of(node)
        self._lock, self._log, self._ledger = self._state.lock, self._state.log, self._state.ledger
        self._parameters = parameters
        self.contract, self.policy = loaded.contract, loaded.policy
        modalities, statistics = self.policy.embodiment.modalities, self.policy.embodiment.statistics
        self._aligner = Aligner(self.contract, modalities.video.delta_indices, modalities.state.delta_indices)
        self._outputs = Outputs(node, self.contract)
        self._motion = Motion(self.contract, loaded.executor, self._outputs, self._state.clock)
        self._observer = Observer(self.contract, statistics, self._aligner, self._state)
        self._predictions = Predictions(
            node,
            loaded,
            parameters=parameters,
            aligner=self._aligner,
            motion=self._motion,
            state=self._state,
            on_taken=self._consider,
        )
        self._ingest = Ingest(
            node, self.contract, self._aligner, self._lock, on_frame=self._on_frame, on_state=self._on_state
        )
        self._surroundings = Surroundings(
            node, self.contract, self.policy, ingest=self._ingest, outputs=self._outputs, motion=self._motion
        )
        self._switch = MotionSwitch(
            self.contract,
            statistics,
            parameters=parameters,
            motion=self._motion,
            outputs=self._outputs,
            state=self._state,
            measured=self._ingest.measured,
            on_start=self._predictions.begin_motion,
        )
        self._last_slow_check_s = -float("inf")
        self._ingest.start()  # the last: callbacks come at once, and find everything there

    @property
    def is_active(self) -> bool:
        """Whether observations become chunks."""
        return self._state.is_active

    @property
    def is_enabled(self) -> bool:
        """Whether commands are sent."""
        return self._state.is_enabled

    @property
    def has_news(self) -> bool:
        """Whether there is something to tell before the next diagnostics are due."""
        return self._state.has_news

    @property
    def instruction(self) -> str:
        """The present task."""
        return self._predictions.instruction

    def activate(self) -> None:
        """Begin to infer; in a dry run also to plan, without sending anything."""
        with self._lock:
            self._state.is_active = True
            self._switch.activated()

    def deactivate(self) -> None:
        """Send what holds the robot, and stop."""
        with self._lock:
            self._switch.halt()
            self._state.is_active = False
        self._outputs.flush()

    def destroy(self) -> None:
        """End threads and subscriptions; the policy itself stays with its host."""
        with self._lock:
            self._switch.halt()
            self._state.is_active = False
        self._ingest.destroy()
        self._motion.destroy()
        self._predictions.destroy()
        self._outputs.destroy()

    def enable(self, *, on: bool) -> tuple[bool, str]:
        """Switch motion; whether it was done, and a sentence."""
        with self._lock:
            return self._switch.on() if on else self._switch.off()

    def reset(self) -> tuple[bool, str]:
        """Forget plan, history and the inference in flight."""
        with self._lock:
            self._predictions.forget()
            self._ledger.stopped(self._state.now_ns())
            self._observer.reset()
            self._ingest.reset()
        return True, "plan and history are forgotten"

    def progress(self) -> dict[str, Any]:
        """What has been taken in so far, for a player that waits for it: time, messages by topic, whether it is busy.

        A due inference is looked for first, so that one that the answer does not speak of does not begin by itself.
        """
        with self._lock:
            self._consider()
            return {
                "now_ns": self._state.now_ns(),
                "is_active": self.is_active,
                "is_busy": self._predictions.is_busy,
                "chunks": self._ledger.chunks,
                "messages": dict(self._ingest.counts),
            }

    def told(self, snapshot: Snapshot) -> None:
        """Note that ``snapshot`` was published."""
        with self._lock:
            self._state.has_news = False
            self._observer.told(snapshot.not_ready)

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
            self._predictions.change_task(text)
        self._node.get_logger().info(f"instruction: {text}")

    def supervise(self) -> bool:
        """Look after what no message reports; whether the node is healthy."""
        self._look_after_threads()
        now_s = time.monotonic()
        if now_s - self._last_slow_check_s >= SLOW_CHECK_S:
            self._last_slow_check_s = now_s
            self._check_surroundings()
        with self._lock:
            self._observer.supervise(self._predictions.pictures_fault)
            self._switch.supervise()
            if self._observer.sees:
                self._switch.turn_itself_on()
            self._consider()
        return not self._state.fault and self._motion.is_on_time

    def snapshot(self, state: str) -> Snapshot:
        """Everything for diagnostics."""
        with self._lock:
            now_ns = self._state.now_ns()
            return Snapshot(
                state=state,
                hardware_id=self.contract.robot,
                fault=self._state.fault,
                warnings=[*self._surroundings.warnings, *self._observer.state_warnings],
                now_ns=now_ns,
                is_enabled=self.is_enabled,
                is_dry_run=self._parameters.dry_run,
                not_ready=self._observer.not_ready,
                camera_rates_hz=self._ingest.camera_rates_hz(now_ns),
                declared_rates_hz={
                    camera: source.rate_hz for camera, source in self.contract.cameras.items() if source.rate_hz
                },
                health=self._aligner.health,
                motion=self._motion.status(),
                counts=self._ledger.values(),
                inference_fault=self._predictions.fault,
                model_busy_s=self._predictions.busy_s,
            )

    def _on_frame(self, *, is_reference: bool) -> None:
        self._observer.frame_came(is_reference=is_reference)
        self._consider()

    def _on_state(self) -> None:
        self._switch.state_came()
        if self._observer.state_may_matter():
            self._consider()

    def _consider(self) -> None:
        """Take the newest observation, and infer from it where that is due."""
        if not self._state.is_working:
            return
        reference = self._observer.reference()
        if isinstance(reference, NotReady):
            return
        if self._observer.is_new(reference):
            state = self._observer.take(reference)
            if isinstance(state, NotReady):
                return
            if self._observer.check(state) is StateFit.IMPOSSIBLE and self.is_enabled:
                self._switch.halt("; ".join(self._observer.state_warnings))
            self._motion.observe(state, reference, complete=True)
        self._predictions.consider(reference)

    def _look_after_threads(self) -> None:
        for name, part in (("model's", self._predictions), ("motion", self._motion), ("messages'", self._ingest)):
            if not self._state.fault and not part.is_alive:
                fault = f"the {name} thread has ended ({part.death}); clean up and configure again"
                with self._lock:
                    self._state.fault = fault
                    self._switch.halt()
                self._node.get_logger().error(f"{fault}; motion is disabled, a hold was sent")

    def _check_surroundings(self) -> None:
        self._observer.publishers_fault = self._surroundings.publishers_fault()
        refusal = self._surroundings.look(self.instruction, is_enabled=self.is_enabled)
        if refusal is not None and self.is_enabled:
            with self._lock:
                self._switch.halt(refusal)
        lost = low_rates(self.snapshot("active"))
        if lost:
            self._log.begin("camera rate", "low", "; ".join(lost))
        else:
            self._log.end("camera rate", "the cameras' frames arrive at their declared rates")
