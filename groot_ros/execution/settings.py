"""Whether a contract's motion, limits and robot description can go together: said before anything moves."""

from __future__ import annotations

from groot_ros.contract import Contract
from groot_ros.contract.actions import Meaning
from groot_ros.errors import ContractError
from groot_ros.execution.outputs import CommandMap
from groot_ros.execution.urdf import UrdfLimits


def check_settings(contract: Contract, commands: CommandMap, urdf: UrdfLimits | None) -> None:
    """Check what the executor is made from.

    Raises:
        ContractError: The robot description is missing or lacks a joint, or rtc is asked for with deltas.

    """
    where = contract.path or contract.robot
    limits = contract.limits
    if limits is not None and limits.urdf is not None and urdf is None:
        msg = f"{where}: limits.urdf names {limits.urdf!r}, but no robot description was handed over"
        raise ContractError(msg)
    if urdf is not None and limits is not None:
        for route in commands.routes:
            for name in () if route.is_cartesian else route.names:
                if name not in urdf.joints and name not in limits.joints:
                    msg = (
                        f"{where}: outputs.{route.name} sends {name!r}, which the robot description does not have as a "
                        f"moving joint; it has {', '.join(urdf.joints)}; write limits.joints.{name}"
                    )
                    raise ContractError(msg)
    deltas = [key for key, action in contract.actions.items() if action.meaning is Meaning.DELTA]
    if contract.motion.strategy == "rtc" and deltas:
        msg = (
            f"{where}: motion.strategy rtc continues absolute targets, but {', '.join(deltas)} holds deltas; use "
            "replace, blend or ensemble"
        )
        raise ContractError(msg)
