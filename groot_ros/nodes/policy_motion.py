"""Motion in the node: the executor behind a lock, and the thread that sends its commands in time."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from rclpy.clock import Clock

from groot_ros.contract import Contract
from groot_ros.execution.executor import Executor
from groot_ros.execution.status import Acceptance, ExecutorStatus, Inference
from groot_ros.nodes.policy_outputs import Outputs
from groot_ros.observation import NANOSECONDS_PER_SECOND, ActionChunk

EVENT_RATE_HZ = 100.0
"""How often trajectories and gripper goals, which are sent on a change, and holds are looked after."""
SIMULATED_TIME_POLL_S = 0.001
LONGEST_WAIT_S = 0.1
LONGEST_JOIN_S = 2.0
STALLED_S = 0.5


class Motion:
    """Everything between accepted chunks and sent commands; safe to call from any thread.

    While it runs, a thread of its own asks the executor at each output's rate, by the node's clock. In a dry run all
    is computed and nothing is sent.

    Args:
        contract: The outputs and their rates.
        executor: The rules.
        outputs: Where commands go.
        clock: The node's clock.

    """

    def __init__(self, contract: Contract, executor: Executor, outputs: Outputs, clock: Clock) -> None:
        self._executor = executor
        self._outputs = outputs
        self._clock = clock
        self._lock = threading.RLock()
        self._wake = threading.Event()
        self._stopping = False
        self._is_running = False
        self._sends = False
        self._periods_ns = {
            name: round(NANOSECONDS_PER_SECOND / float(getattr(target, "rate_hz", EVENT_RATE_HZ)))
            for name, target in contract.outputs.items()
        }
        self._longest_turn_ns = round(NANOSECONDS_PER_SECOND / EVENT_RATE_HZ)
        self._next_ns: dict[str, int] = {}
        self._last_turn = time.monotonic()
        self.death: str | None = None
        self._thread = threading.Thread(target=self._run, name="groot_policy_motion", daemon=True)
        self._thread.start()

    @property
    def is_running(self) -> bool:
        """Whether chunks are executed, were it in a dry run."""
        return self._is_running

    @property
    def is_alive(self) -> bool:
        """Whether the thread runs; it ends by itself only by a fault that nobody foresaw."""
        return self._thread.is_alive()

    @property
    def is_on_time(self) -> bool:
        """Whether the thread takes its turns, as the heartbeat promises."""
        return not self._is_running or time.monotonic() - self._last_turn < STALLED_S

    def start(self, *, sends: bool) -> None:
        """Execute chunks from now on; ``sends`` is false in a dry run."""
        with self._lock:
            self._sends, self._is_running = sends, True
            self._next_ns.clear()
            self._last_turn = time.monotonic()
            self._wake.set()

    def stop(self) -> None:
        """Send what holds the robot, and nothing after it."""
        with self._lock:
            if not self._is_running:
                return
            commands = self._executor.hold(self._now_ns())
            if self._sends:
                self._outputs.send(commands)
                self._outputs.drop()
            self._is_running = self._sends = False
            self._wake.clear()

    def observe(self, state: Mapping[str, NDArray[np.floating]], stamp_ns: int, *, complete: bool) -> None:
        """See `Executor.observe`."""
        with self._lock:
            self._executor.observe(state, stamp_ns, self._now_ns(), complete=complete)

    def inference_due(self) -> bool:
        """See `Executor.inference_due`."""
        with self._lock:
            return self._executor.inference_due(self._now_ns())

    def begin_inference(self, observation_stamp_ns: int) -> Inference:
        """See `Executor.begin_inference`."""
        with self._lock:
            return self._executor.begin_inference(observation_stamp_ns, self._now_ns())

    def cancel_inference(self, inference: Inference) -> None:
        """See `Executor.cancel_inference`."""
        with self._lock:
            self._executor.cancel_inference(inference, self._now_ns())

    def accept(self, chunk: ActionChunk, inference: Inference) -> Acceptance:
        """See `Executor.accept`."""
        with self._lock:
            return self._executor.accept(chunk, inference, self._now_ns())

    def reset(self) -> None:
        """See `Executor.reset`."""
        with self._lock:
            self._executor.reset(self._now_ns())

    def change_task(self) -> None:
        """See `Executor.change_task`."""
        with self._lock:
            self._executor.change_task(self._now_ns())

    def retry(self) -> list[str]:
        """Send gripper goals whose server was not there; what keeps commands from arriving, as sentences."""
        with self._lock:
            if self._sends:
                self._outputs.retry()
            return self._outputs.faults()

    def status(self) -> ExecutorStatus:
        """See `Executor.status`."""
        with self._lock:
            return self._executor.status(self._now_ns())

    def destroy(self) -> None:
        """Hold, and end the thread."""
        self.stop()
        self._stopping = True
        self._wake.set()
        self._thread.join(LONGEST_JOIN_S)

    def _now_ns(self) -> int:
        return int(self._clock.now().nanoseconds)

    def _run(self) -> None:
        try:
            while not self._stopping:
                if not self._wake.wait(LONGEST_WAIT_S) or self._stopping:
                    continue
                time.sleep(self._turn())
        except Exception as error:  # noqa: BLE001 - said aloud by the node, which holds the robot
            self.death = f"{type(error).__name__}: {error}"

    def _turn(self) -> float:
        """Send what is due; how long to sleep then, seconds."""
        with self._lock:
            self._last_turn = time.monotonic()
            if not self._is_running:
                return 0.0
            now_ns = self._now_ns()
            due = {name for name in self._periods_ns if self._is_due(name, now_ns)}
            # Also where no output is due: the executor sees by itself when a hold must begin.
            commands = self._executor.commands(now_ns, due)
            if self._sends:
                self._outputs.send(commands)
            if self._clock.ros_time_is_active:
                return SIMULATED_TIME_POLL_S
            next_ns = min(self._next_ns.values(), default=now_ns + self._longest_turn_ns)
            left_ns = min(next_ns - self._now_ns(), self._longest_turn_ns)
        return max(left_ns / NANOSECONDS_PER_SECOND, 0.0)

    def _is_due(self, name: str, now_ns: int) -> bool:
        """Whether it is an output's turn; a turn that came late moves none of the later ones."""
        period_ns = self._periods_ns[name]
        next_ns = self._next_ns.get(name, now_ns)
        if next_ns - now_ns > period_ns:  # the clock was set back
            next_ns = now_ns
        if now_ns < next_ns:
            self._next_ns[name] = next_ns
            return False
        missed = (now_ns - next_ns) // period_ns
        self._next_ns[name] = next_ns + (missed + 1) * period_ns
        return True
