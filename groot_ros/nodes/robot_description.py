"""The robot description that a contract takes its limits from, wherever the contract says it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from groot_ros.contract import Contract
from groot_ros.execution.urdf import UrdfLimits, parse_urdf, read_urdf


def robot_description(contract: Contract, receive: Callable[[str], str]) -> UrdfLimits | None:
    """The limits of the robot description; None where the contract needs none.

    Args:
        contract: The contract.
        receive: Waits for the text of a robot description on a topic.

    Raises:
        ContractError: It does not come, or cannot be read.

    """
    if contract.limits is None:
        return None
    if contract.limits.urdf_topic is not None:
        topic = contract.limits.urdf_topic
        return parse_urdf(receive(topic), topic)
    path = contract.limits.urdf_file(contract.path.parent if contract.path else Path())
    return None if path is None else read_urdf(path)
