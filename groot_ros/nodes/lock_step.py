"""Waiting for a policy node: nothing more is sent until it has taken in what was sent, and has thought about it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rclpy.executors import Executor
from rclpy.node import Node
from std_srvs.srv import Trigger

from groot_ros.errors import EvaluationError

STEP_DEADLINE_S = 60.0
"""Longer than any inference: what takes longer is lost."""
TURN_S = 0.05


@dataclass
class LockStep:
    """Asks the node's ``~/progress`` until it says what is waited for.

    Attributes:
        node: The player's node.
        executor: Its executor, which spins while waiting.
        policy: Name of the policy node, as ``/groot_policy``.

    """

    node: Node
    executor: Executor
    policy: str
    _counts: dict[str, int] = field(default_factory=dict)
    _chunks: int = 0
    _last_chunks: int = 0

    def __post_init__(self) -> None:
        """Find the service."""
        self._client = self.node.create_client(Trigger, f"{self.policy}/progress")

    def begin(self) -> None:
        """Wait until the node is active, and note what it had taken in before.

        Raises:
            EvaluationError: It is not there, or not active.

        """
        end_s = time.monotonic() + STEP_DEADLINE_S
        last = "it does not answer"
        while time.monotonic() < end_s:
            if self._client.service_is_ready():
                progress = self._ask()
                if isinstance(progress, str):
                    last = progress
                elif progress["is_active"]:
                    self._counts = dict(progress["messages"])
                    self._chunks = self._last_chunks = progress["chunks"]
                    return
                else:
                    last = "it is configured but not active"
            self.executor.spin_once(timeout_sec=TURN_S)
        msg = f"{self.policy} is not ready after {STEP_DEADLINE_S:.0f} s: {last}; start it with autostart:=true"
        raise EvaluationError(msg)

    def clock_taken(self, now_ns: int, again: Callable[[], None]) -> None:
        """Wait until the node's clock shows a time; ``again()`` sends it once more, since clocks are best effort.

        Raises:
            EvaluationError: It never does.

        """
        self._wait(lambda progress: progress["now_ns"] >= now_ns, f"take the time from /clock ({now_ns} ns)", again)

    def message_taken(self, topic: str) -> None:
        """Wait until the node has taken one more message on a topic.

        Raises:
            EvaluationError: It never does.

        """
        self._counts[topic] = wanted = self._counts.get(topic, 0) + 1
        advice = "write qos: reliable for it in the contract"
        self._wait(
            lambda progress: progress["messages"].get(topic, 0) >= wanted, f"take a message on {topic}; {advice}"
        )

    @property
    def chunks(self) -> int:
        """Chunks that the node has made since the beginning, as it said last."""
        return self._last_chunks - self._chunks

    def _wait(
        self, is_done: Callable[[dict[str, Any]], bool], what: str, again: Callable[[], None] | None = None
    ) -> None:
        end_s = time.monotonic() + STEP_DEADLINE_S
        asked = 0
        while time.monotonic() < end_s:
            progress = self._ask()
            if isinstance(progress, str):
                msg = f"{self.policy} stopped while the bag was played: {progress}"
                raise EvaluationError(msg)
            self._last_chunks = progress["chunks"]
            if is_done(progress) and not progress["is_busy"]:
                return
            asked += 1
            if again is not None and asked % 10 == 0:
                again()
        msg = f"{self.policy} did not {what} within {STEP_DEADLINE_S:.0f} s"
        raise EvaluationError(msg)

    def _ask(self) -> dict[str, Any] | str:
        """The node's progress, or why there is none."""
        future = self._client.call_async(Trigger.Request())
        self.executor.spin_until_future_complete(future, timeout_sec=STEP_DEADLINE_S)
        response = future.result() if future.done() else None
        if response is None:
            return f"{self.policy}/progress does not answer"
        if not response.success:
            return str(response.message)
        progress: dict[str, Any] = json.loads(response.message)
        return progress
