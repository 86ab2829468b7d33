"""What the nodes of the demo robot share: the arm by parameters, joint messages by name, the target's topic."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rcl_interfaces.msg import ParameterDescriptor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.time import Time
from sensor_msgs.msg import JointState

from groot_ros.demo.arm import PlanarArm, Vector, demo_arm
from groot_ros.errors import MessageError

TARGET_TOPIC = "target"
LATCHED = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL)


def declare_arm(node: Node) -> PlanarArm:
    """The arm that the node's parameters ``joints`` and ``links_m`` describe; every part must be given the same."""
    joints = node.declare_parameter(
        "joints",
        ["shoulder", "elbow"],
        ParameterDescriptor(description="revolute joints from the base on", read_only=True),
    )
    links = node.declare_parameter(
        "links_m", [0.5, 0.5], ParameterDescriptor(description="length of the link after each joint, m", read_only=True)
    )
    return demo_arm(tuple(joints.value), tuple(links.value))


def joint_state(names: Sequence[str], positions: Vector, velocities: Vector | None, stamp: Time) -> JointState:
    """A JointState of ``positions`` in rad and, where known, ``velocities`` in rad/s."""
    message = JointState(name=list(names), position=positions.tolist())
    if velocities is not None:
        message.velocity = velocities.tolist()
    message.header.stamp = stamp.to_msg()
    return message


def positions_by_name(message: JointState, names: Sequence[str]) -> Vector:
    """Positions of ``names`` in rad, in that order, whatever the message's own order."""
    by_name = dict(zip(message.name, message.position, strict=True))
    if missing := [name for name in names if name not in by_name]:
        msg = f"joint_states has {list(message.name)} but not {missing}: give every part the same joints"
        raise MessageError(msg)
    return np.array([by_name[name] for name in names])
