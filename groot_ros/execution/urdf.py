"""Joint limits from a robot description (URDF)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from groot_ros.errors import ContractError

MOVING_TYPES = {"revolute", "prismatic", "continuous"}


@dataclass(frozen=True)
class UrdfJoint:
    """Limits of one joint in rad or m, and per second; infinity where the description has none."""

    lower: float
    upper: float
    velocity: float
    continuous: bool


@dataclass(frozen=True)
class UrdfLimits:
    """Joint name to limits, for the joints that move."""

    joints: Mapping[str, UrdfJoint]


def read_urdf(path: Path) -> UrdfLimits:
    """Read the limits in a URDF file.

    Raises:
        ContractError: The file cannot be read, or its limits cannot be used.

    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        msg = f"{path}: the robot description cannot be read ({error}); correct limits.urdf in the contract"
        raise ContractError(msg) from error
    return parse_urdf(text, str(path))


def parse_urdf(text: str, where: str) -> UrdfLimits:
    """Read the limits in the text of a URDF.

    Args:
        text: XML, as in a file or on ``/robot_description``.
        where: Its origin, for messages.

    Raises:
        ContractError: It is not a URDF, is an unexpanded xacro, or a moving joint has no usable limits.

    """
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        # Entities can blow a small text up to gigabytes, and no robot description needs them.
        msg = f"{where}: found a document type or an entity, but a robot description needs none; remove it"
        raise ContractError(msg)
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        msg = f"{where}: not XML ({error}); wanted a URDF"
        raise ContractError(msg) from error
    if root.tag != "robot":
        msg = f"{where}: found <{root.tag}> at the top, wanted <robot>; expand a xacro file first"
        raise ContractError(msg)
    joints = {}
    for element in root.findall("joint"):
        if element.get("type") in MOVING_TYPES:
            name = element.get("name") or ""
            joints[name] = _joint(element, f"{where}: joint {name!r}")
    return UrdfLimits(joints)


def _joint(element: ElementTree.Element, where: str) -> UrdfJoint:
    continuous = element.get("type") == "continuous"
    limit = element.find("limit")
    if limit is None:
        if not continuous:
            msg = f"{where}: has no <limit>, which a {element.get('type')} joint needs"
            raise ContractError(msg)
        return UrdfJoint(-math.inf, math.inf, math.inf, continuous=True)
    velocity = _number(limit, "velocity", math.inf, where)
    if not velocity > 0:
        msg = f"{where}: the velocity limit is {velocity}, wanted a number above 0"
        raise ContractError(msg)
    if continuous:
        return UrdfJoint(-math.inf, math.inf, velocity, continuous=True)
    # The format's default for both is 0: a joint without them could not move, so the description is wrong.
    lower, upper = _number(limit, "lower", 0.0, where), _number(limit, "upper", 0.0, where)
    if not lower < upper:
        msg = f"{where}: the limits are lower {lower} and upper {upper}, wanted lower below upper"
        raise ContractError(msg)
    return UrdfJoint(lower, upper, velocity, continuous=False)


def _number(limit: ElementTree.Element, key: str, default: float, where: str) -> float:
    text = limit.get(key)
    if text is None:
        return default
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if math.isnan(value):
        msg = f"{where}: {key} is {text!r}, wanted a number; expand a xacro file first"
        raise ContractError(msg)
    return value
