"""One latched text, waited for without the node that asks: the robot description while it is being configured."""

from __future__ import annotations

import time

from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from std_msgs.msg import String

from groot_ros.errors import ContractError

LATCHED = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL)
LONGEST_WAIT_S = 10.0


def receive_text(node: Node, topic: str, longest_wait_s: float = LONGEST_WAIT_S) -> str:
    """Wait for a latched std_msgs/String.

    The node's own executor runs the transition that asks, so a helper node with an executor of its own listens.

    Args:
        node: Whose context and namespace count.
        topic: The topic.
        longest_wait_s: When to give up.

    Raises:
        ContractError: Nothing came.

    """
    helper = Node(
        f"{node.get_name()}_description",
        namespace=node.get_namespace(),
        context=node.context,
        start_parameter_services=False,
        enable_rosout=False,
        use_global_arguments=False,
    )
    executor = SingleThreadedExecutor(context=node.context)
    received: list[str] = []
    helper.create_subscription(String, topic, lambda message: received.append(message.data), LATCHED)
    executor.add_node(helper)
    deadline = time.monotonic() + longest_wait_s
    try:
        while not received and time.monotonic() < deadline:
            executor.spin_once(timeout_sec=0.1)
    finally:
        executor.shutdown()
        helper.destroy_node()
    if not received:
        msg = (
            f"limits.urdf: no robot description came on {topic} within {longest_wait_s:g} s; start "
            "robot_state_publisher, or give a .urdf file in the contract"
        )
        raise ContractError(msg)
    return received[0]
