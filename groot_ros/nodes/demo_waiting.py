"""A node of the demo's tools: time passes for it only while it waits for something."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from rclpy.client import Client
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node

from groot_ros.errors import GrootError

LONGEST_WAIT_S = 0.05
SERVICE_DEADLINE_S = 10.0


class WaitingNode(Node):
    """Hears and asks in ``wait_until``, ``listen`` and ``ask``.

    Args:
        name: Of the node.
        alive: Raises when it is no longer worth waiting.

    """

    def __init__(self, name: str) -> None:
        super().__init__(name, start_parameter_services=False, enable_rosout=False)
        self.alive: Callable[[], None] = lambda: None
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(self)

    def now_ns(self) -> int:
        """Now, by the node's clock."""
        return int(self.get_clock().now().nanoseconds)

    def listen(self, duration_s: float) -> None:
        """Hear what comes for a while."""
        end = time.monotonic() + duration_s
        while time.monotonic() < end:
            self._executor.spin_once(timeout_sec=LONGEST_WAIT_S)
            self.alive()

    def rest(self, duration_s: float) -> None:
        """Let time pass without hearing anything, which costs nothing."""
        end = time.monotonic() + duration_s
        while time.monotonic() < end:
            time.sleep(max(0.0, min(LONGEST_WAIT_S, end - time.monotonic())))
            self.alive()

    def wait_until(self, condition: Callable[[], bool], deadline_s: float) -> bool:
        """Hear what comes until ``condition()``; False where it is not so within ``deadline_s``."""
        end = time.monotonic() + deadline_s
        while not condition():
            if time.monotonic() > end:
                return False
            self._executor.spin_once(timeout_sec=LONGEST_WAIT_S)
            self.alive()
        return True

    def ask(self, client: Client[Any, Any], request: Any, what: str) -> Any:  # noqa: ANN401 - a service's messages
        """Call a service and return its response.

        Raises:
            GrootError: It does not answer.

        """
        ready = self.wait_until(client.service_is_ready, SERVICE_DEADLINE_S)
        future = client.call_async(request)
        if not ready or not self.wait_until(future.done, SERVICE_DEADLINE_S):
            msg = f"{what} does not answer within {SERVICE_DEADLINE_S:.0f} s"
            raise GrootError(msg)
        return future.result()

    def close(self) -> None:
        """Take the node down."""
        self._executor.shutdown()
        self.destroy_node()
