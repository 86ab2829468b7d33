"""The newest message of each topic, kept as it came and read only when somebody asks."""

from __future__ import annotations

from typing import Any

from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.serialization import deserialize_message

DEPTH = 1


def quiet_node(node: Node) -> Node:
    """A second node in the process of another, without services, parameters and logs of its own."""
    return Node(
        f"{node.get_name()}_ears",
        namespace=node.get_namespace(),
        context=node.context,
        start_parameter_services=False,
        enable_rosout=False,
        use_global_arguments=False,
        parameter_overrides=[Parameter("start_type_description_service", value=False)],
    )


class NewestMessages:
    """Subscribes to topics and keeps the last message of each.

    Args:
        node: The node whose subscriptions they are.

    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._types: dict[str, Any] = {}
        self._newest: dict[str, tuple[bytes, int]] = {}

    def subscribe(self, topic: str, message_type: Any) -> None:  # noqa: ANN401 - a class that rosidl generated
        """Begin to listen to a topic; once for each topic, however often it is asked for."""
        if topic in self._types:
            return
        self._types[topic] = message_type

        def keep(message: bytes) -> None:
            self._newest[topic] = message, int(self._node.get_clock().now().nanoseconds)

        qos = QoSProfile(depth=DEPTH, reliability=ReliabilityPolicy.BEST_EFFORT)
        self._node.create_subscription(message_type, topic, keep, qos, raw=True)

    def read(self, topic: str) -> tuple[Any, int] | None:
        """The newest message and when it came, nanoseconds by the node's clock; None where none has come."""
        found = self._newest.get(topic)
        if found is None:
            return None
        message, received_ns = found
        return deserialize_message(message, self._types[topic]), received_ns
