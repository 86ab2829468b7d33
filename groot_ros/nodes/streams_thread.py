"""A node with nothing but subscriptions, spun by a thread of its own.

rclpy looks at every service and timer of a node on each turn. Fast joint states need not pay for those of a lifecycle
node, nor wait for its service calls. And a turn costs more than a message: when one has woken the thread, it takes all
that have come, else a busy machine would read ever older messages from a queue that stays full.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile
from rclpy.subscription import Subscription

LONGEST_JOIN_S = 5.0
MOST_TAKEN = 1000
"""Messages of one topic that are taken at a time, so that no topic keeps the others waiting."""


class StreamsThread:
    """Subscriptions whose callbacks run in this thread and no other.

    Args:
        node: The node that the user knows; its name, namespace and context are taken, ``<name>_streams``.

    """

    def __init__(self, node: Node) -> None:
        self._node = Node(
            f"{node.get_name()}_streams",
            namespace=node.get_namespace(),
            context=node.context,
            use_global_arguments=False,  # `__node` among them would give it the other's name
            enable_rosout=False,
            start_parameter_services=False,
            parameter_overrides=[Parameter("start_type_description_service", value=False)],
        )
        self._executor = SingleThreadedExecutor(context=node.context)
        self._executor.add_node(self._node)
        self._subscriptions: list[tuple[Subscription, Callable[[Any], None]]] = []
        self._stopping = False
        self.death: str | None = None
        self._thread = threading.Thread(target=self._run, name="groot_policy_streams", daemon=True)

    @property
    def is_alive(self) -> bool:
        """Whether the thread runs; it ends by itself only by a fault that nobody foresaw."""
        return self._thread.is_alive()

    def subscribe(self, message_type: type, topic: str, callback: Callable[[Any], None], quality: QoSProfile) -> None:
        """Subscribe; before `start`, and to a full name."""
        self._subscriptions.append((self._node.create_subscription(message_type, topic, callback, quality), callback))

    def start(self) -> None:
        """Begin to listen."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread, then its subscriptions; whoever calls holds no lock that a callback takes."""
        self._stopping = True
        self._executor.create_task(lambda: None)  # a turn without work would go on waiting for a message
        if self._thread.ident is not None:
            self._thread.join(LONGEST_JOIN_S)
        self._executor.shutdown()
        self._node.destroy_node()

    def _run(self) -> None:
        try:
            while not self._stopping:
                self._executor.spin_once()
                self._take_what_waits()
        except ExternalShutdownException:
            self.death = "ROS was shut down"
        except Exception as error:  # noqa: BLE001 - said aloud by the node, which holds the robot
            self.death = f"{type(error).__name__}: {error}"

    def _take_what_waits(self) -> None:
        for subscription, callback in self._subscriptions:
            handle = subscription.handle
            for _ in range(MOST_TAKEN):
                with handle:
                    taken = handle.take_message(subscription.msg_type, False)
                if taken is None or self._stopping:
                    break
                callback(taken[0])
