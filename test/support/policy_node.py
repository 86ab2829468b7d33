"""The policy node in the test's own process but on its own ROS context, and a robot's topics to feed it."""

from __future__ import annotations

import threading
from array import array
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
import yaml
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import Image, JointState
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import SetBool, Trigger

from groot_ros.nodes.command_messages import time_message
from groot_ros.nodes.latched_text import LATCHED
from groot_ros.nodes.policy_host import PolicyHost
from groot_ros.nodes.policy_node import PolicyNode
from support.golden import TINY_SINGLE
from support.ros import Listener

RELIABLE = QoSProfile(depth=20, reliability=ReliabilityPolicy.RELIABLE)
SUCCESS = TransitionCallbackReturn.SUCCESS


class RunningPolicy:
    """A policy node that spins in a thread. Lifecycle transitions are made in that thread, as its services do."""

    def __init__(
        self,
        contract: Mapping[str, Any],
        folder: Path,
        namespace: str = "",
        host: PolicyHost | None = None,
        **parameters: Any,
    ) -> None:
        path = folder / "contract.yaml"
        path.write_text(yaml.safe_dump(dict(contract), sort_keys=False))
        values = {"checkpoint": str(TINY_SINGLE), "contract": str(path), "device": "cpu", **parameters}
        self.context = Context()
        rclpy.init(context=self.context)
        self.node = PolicyNode(
            namespace=namespace,
            host=host,
            context=self.context,
            parameter_overrides=[Parameter(name, value=value) for name, value in values.items()],
        )
        self.executor = SingleThreadedExecutor(context=self.context)
        self.executor.add_node(self.node)
        self._stopping = False
        self._thread = threading.Thread(target=self._spin)
        self._thread.start()

    def _spin(self) -> None:
        while not self._stopping:
            self.executor.spin_once(timeout_sec=0.05)

    def do(self, work: Callable[[], Any], deadline_s: float = 60.0) -> Any:
        """Run something in the node's own thread and return what it gives."""
        future = self.executor.create_task(work)
        done = threading.Event()
        future.add_done_callback(lambda _: done.set())
        assert done.wait(deadline_s), "the node's thread does not answer"
        return future.result()

    def activate(self) -> None:
        assert self.do(self.node.trigger_configure) == SUCCESS, self.node._fault
        assert self.do(self.node.trigger_activate) == SUCCESS, self.node._fault

    def close(self) -> None:
        self.do(self.node.stop)
        self._stopping = True
        self._thread.join()
        self.executor.shutdown()
        self.node.destroy_node()
        rclpy.shutdown(context=self.context)


class Robot:
    """A robot's cameras and joint states, and ears for everything that the policy says."""

    def __init__(self, listener: Listener) -> None:
        self.listener = listener
        self.namespace = f"{listener.node.get_namespace().rstrip('/')}/groot_policy"
        self._publishers: dict[str, Any] = {}
        self.diagnostics = listener.listen(DiagnosticArray, "/diagnostics", RELIABLE)

    def now_ns(self) -> int:
        return int(self.listener.node.get_clock().now().nanoseconds)

    def publish(self, topic: str, message: Any) -> None:
        self.publisher(topic, type(message)).publish(message)

    def publish_latched(self, topic: str, message: Any) -> None:
        if topic not in self._publishers:
            self._publishers[topic] = self.listener.node.create_publisher(type(message), topic, LATCHED)
        self._publishers[topic].publish(message)

    def publisher(self, topic: str, message_type: type) -> Any:
        if topic not in self._publishers:
            self._publishers[topic] = self.listener.node.create_publisher(message_type, topic, RELIABLE)
        return self._publishers[topic]

    def wait_until_heard(self, *topics: str) -> None:
        """Wait until the policy has subscribed to topics that were published on before."""
        for topic in topics:
            publisher = self._publishers[topic]
            self.listener.wait_for(publisher.get_subscription_count, f"subscription of {topic}")

    def enable(self, *, on: bool) -> Any:
        return self.listener.call(SetBool, f"{self.namespace}/enable", SetBool.Request(data=on))

    def reset(self) -> None:
        assert self.listener.call(Trigger, f"{self.namespace}/reset", Trigger.Request()).success

    def part(self, name: str) -> DiagnosticStatus | None:
        """The newest status of a part: node, observation, inference or motion."""
        for message in reversed(self.diagnostics):
            for status in message.status:
                if status.name == f"{self.namespace.lstrip('/')}: {name}":
                    return status
        return None

    def wait_for_message(self, part: str, text: str, feed: Callable[[], None] = lambda: None) -> DiagnosticStatus:
        """Wait until a part of the diagnostics says something, feeding the node meanwhile."""
        self.diagnostics.clear()

        def said() -> DiagnosticStatus | None:
            feed()
            status = self.part(part)
            return status if status is not None and text in status.message else None

        try:
            return self.listener.wait_for(said, f"{part}: {text!r}")
        except AssertionError as error:
            status = self.part(part)
            msg = f"{error}; {part} says {status.message if status else None!r}"
            raise AssertionError(msg) from None


def image(pixels: np.ndarray, stamp_ns: int, encoding: str = "rgb8", **changes: Any) -> Image:
    """An RGB picture ``(H, W, 3)`` as a message; bgr8 swaps its colours."""
    height, width, _ = pixels.shape
    data = pixels[..., ::-1] if encoding == "bgr8" else pixels
    message = Image(height=height, width=width, encoding=encoding, step=3 * width)
    message.data = array("B", np.ascontiguousarray(data).tobytes())
    message.header.stamp = time_message(stamp_ns)
    for name, value in changes.items():
        setattr(message, name, value)
    return message


def joints(names: Sequence[str], values: Sequence[float], stamp_ns: int) -> JointState:
    message = JointState(name=list(names), position=[float(value) for value in values])
    message.header.stamp = time_message(stamp_ns)
    return message


def numbers(values: Sequence[float]) -> Float64MultiArray:
    return Float64MultiArray(data=[float(value) for value in values])


def values_of(status: DiagnosticStatus) -> dict[str, str]:
    return {value.key: value.value for value in status.values}
