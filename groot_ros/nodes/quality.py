"""Quality of service of a contract's topics, with rclpy's own parameters ``qos_overrides.<topic>.subscription.*``."""

from __future__ import annotations

from rcl_interfaces.msg import ParameterDescriptor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy

from groot_ros.alignment.intake import IntakeTopic
from groot_ros.errors import ContractError

CAMERA_DEPTH = 5
STATE_DEPTH = 100
"""Joint states may come at 1 kHz: a tenth of a second in which another callback may run."""
HISTORIES = {"keep_last": HistoryPolicy.KEEP_LAST, "keep_all": HistoryPolicy.KEEP_ALL}
RELIABILITIES = {"reliable": ReliabilityPolicy.RELIABLE, "best_effort": ReliabilityPolicy.BEST_EFFORT}


def subscription_quality(node: Node, topic: IntakeTopic, resolved: str) -> QoSProfile:
    """The quality of service for a topic, as the parameters of ``node`` override it.

    rclpy itself declares such parameters only on the node that subscribes, which is not the one that the user knows.

    Args:
        node: Whose parameters count.
        topic: The topic.
        resolved: Its full name.

    Raises:
        ContractError: A parameter's value is no such quality of service.

    """
    prefix = f"qos_overrides.{resolved}.subscription"
    values = {
        "history": _parameter(node, f"{prefix}.history", "keep_last"),
        "depth": _parameter(node, f"{prefix}.depth", CAMERA_DEPTH if topic.cameras else STATE_DEPTH),
        "reliability": _parameter(node, f"{prefix}.reliability", topic.reliability),
    }
    for key, allowed in (("history", HISTORIES), ("reliability", RELIABILITIES)):
        if values[key] not in allowed:
            msg = f"parameter {prefix}.{key}: found {values[key]!r}, allowed are {', '.join(allowed)}"
            raise ContractError(msg)
    return QoSProfile(
        history=HISTORIES[str(values["history"])],
        depth=int(values["depth"]),
        reliability=RELIABILITIES[str(values["reliability"])],
        durability=DurabilityPolicy.TRANSIENT_LOCAL if topic.is_static else DurabilityPolicy.VOLATILE,
    )


def _parameter(node: Node, name: str, default: str | int) -> str | int:
    """What the user has set, else the default, which may be another when the node is configured again."""
    if not node.has_parameter(name):
        node.declare_parameter(name, None, ParameterDescriptor(read_only=True, dynamic_typing=True))
    value: str | int | None = node.get_parameter(name).value
    return default if value is None else value
