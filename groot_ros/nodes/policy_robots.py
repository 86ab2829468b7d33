"""Several robots in one process: a policy node for each in its own namespace, and one policy for all."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rclpy.parameter import Parameter

from groot_ros.errors import GrootError
from groot_ros.nodes.policy_host import PolicyHost
from groot_ros.nodes.policy_node import PolicyNode

NAMESPACE = re.compile(r"/?[A-Za-z_]\w*(/[A-Za-z_]\w*)*", re.ASCII)


@dataclass(frozen=True)
class Robot:
    """One robot of a process.

    Attributes:
        namespace: Where its node and its relative topics are, ``/left``.
        contract: Its own contract; None where the parameter ``contract`` is for it, too.

    """

    namespace: str
    contract: Path | None = None


def parse_robots(words: Sequence[str]) -> list[Robot]:
    """Read ``NAMESPACE`` or ``NAMESPACE=CONTRACT`` for each robot.

    Raises:
        GrootError: A namespace is none, or there twice.

    """
    robots: list[Robot] = []
    for word in words:
        namespace, _, contract = word.partition("=")
        if NAMESPACE.fullmatch(namespace) is None:
            msg = f"--robots: found {word!r}; write a namespace, or namespace=contract.yaml, for each robot"
            raise GrootError(msg)
        robot = Robot("/" + namespace.lstrip("/"), Path(contract).expanduser() if contract else None)
        if robot.namespace in {other.namespace for other in robots}:
            msg = f"--robots: {robot.namespace} is there twice; each robot needs a namespace of its own"
            raise GrootError(msg)
        robots.append(robot)
    return robots


def make_robots(robots: Sequence[Robot]) -> list[PolicyNode]:
    """The nodes of robots that share one policy.

    Raises:
        GrootError: ROS's remapping put a node elsewhere.

    """
    host = PolicyHost(len(robots))
    nodes: list[PolicyNode] = []
    try:
        for robot in robots:
            contract = [] if robot.contract is None else [Parameter("contract", value=str(robot.contract))]
            nodes.append(PolicyNode(namespace=robot.namespace, host=host, parameter_overrides=contract))
            _refuse_another_place(robot, nodes[-1])
    except BaseException:
        for node in nodes:
            node.destroy_node()
        raise
    return nodes


def _refuse_another_place(robot: Robot, node: PolicyNode) -> None:
    found = node.get_namespace()
    if found != robot.namespace:
        msg = (
            f"--robots: {robot.namespace} became {found} by the remapping of __ns; leave that out and write whole "
            "namespaces, as lab/left"
        )
        raise GrootError(msg)
