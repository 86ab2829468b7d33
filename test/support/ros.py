"""Processes and a listening node for tests over real DDS, kept apart from everything else on the machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import rclpy
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node

ROOT = Path(__file__).parents[2]
PROFILE = str(ROOT / "config" / "fastdds_shared_memory.xml")
# Long, since a busy machine is slow to start processes and nobody waits longer than it takes.
DEADLINE_S = 60.0
SETTLING_S = 0.5


def isolate(domain_id: int, log_folder: Path) -> None:
    """Let this process and those it starts speak on a domain of their own, within this machine."""
    os.environ.update(
        ROS_DOMAIN_ID=str(domain_id),
        ROS_AUTOMATIC_DISCOVERY_RANGE="LOCALHOST",
        ROS_LOG_DIR=str(log_folder),
    )
    older = os.environ.get("ROS_DISTRO") in ("humble", "iron", "jazzy")
    os.environ["FASTRTPS_DEFAULT_PROFILES_FILE" if older else "FASTDDS_DEFAULT_PROFILES_FILE"] = PROFILE


def own_domain() -> int:
    """A domain that another run on this machine is unlikely to use."""
    return 1 + os.getpid() % 100


@contextmanager
def tool(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run ``python -m groot_ros ...`` until the block ends, then stop it as a user would."""
    command = [sys.executable, "-m", "groot_ros", *arguments]
    process = subprocess.Popen(command, cwd=ROOT, text=True, stderr=subprocess.PIPE)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        try:
            process.communicate(timeout=DEADLINE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            raise


class Listener:
    """A node in the test that keeps what it hears; everything happens while it waits."""

    def __init__(self, name: str = "listener", namespace: str = "") -> None:
        self.context = Context()
        rclpy.init(context=self.context)
        self.node = Node(name, context=self.context, namespace=namespace)
        self.executor = SingleThreadedExecutor(context=self.context)
        self.executor.add_node(self.node)
        self.heard: dict[str, list[Any]] = {}
        self._clients: dict[str, Any] = {}

    def listen(self, message_type: type, topic: str, qos: Any) -> list[Any]:
        """Subscribe; the list that is returned fills while the listener waits."""
        messages = self.heard.setdefault(topic, [])
        self.node.create_subscription(message_type, topic, messages.append, qos)
        return messages

    def wait_for(self, condition: Callable[[], Any], what: str, deadline_s: float = DEADLINE_S) -> Any:
        """Spin until ``condition()`` is true and return it, or fail with what was waited for."""
        end = time.monotonic() + deadline_s
        while time.monotonic() < end:
            if result := condition():
                return result
            self.executor.spin_once(timeout_sec=0.05)
        heard = {topic: len(messages) for topic, messages in self.heard.items()}
        msg = f"after {deadline_s} s there is still no {what}; heard so far: {heard}"
        raise AssertionError(msg)

    def spin(self, duration_s: float) -> None:
        """Listen for a while."""
        end = time.monotonic() + duration_s
        while time.monotonic() < end:
            self.executor.spin_once(timeout_sec=0.05)

    def call(self, service_type: type, name: str, request: Any) -> Any:
        """Call a service and return its response."""
        client = self._clients.get(name) or self.node.create_client(service_type, name)
        self._clients[name] = client
        if not client.service_is_ready():
            self.wait_for(client.service_is_ready, f"service {name}")
            # Ready says that the client has found the server; an answer before the server has found the client is lost.
            self.spin(SETTLING_S)
        future = client.call_async(request)
        return self.wait_for(lambda: future.done() and future.result(), f"answer of {name}")

    def close(self) -> None:
        """Take the node down."""
        self.executor.shutdown()
        self.node.destroy_node()
        rclpy.shutdown(context=self.context)


def stamps_ns(messages: Sequence[Any]) -> list[int]:
    """Header stamps in nanoseconds."""
    return [message.header.stamp.sec * 1_000_000_000 + message.header.stamp.nanosec for message in messages]
