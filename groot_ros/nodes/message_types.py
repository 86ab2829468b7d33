"""ROS message classes by their type's name, imported only where a contract asks for them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from groot_ros.errors import ContractError


def message_class(type_name: str) -> Any:  # noqa: ANN401 - a class that rosidl generated
    """The class of a type such as ``sensor_msgs/msg/Image``.

    Raises:
        ContractError: The package is not installed, or has no such type.

    """
    package, kind, name = type_name.split("/")
    try:
        return getattr(import_module(f"{package}.{kind}"), name)
    except ImportError as error:
        msg = f"{type_name}: the ROS package {package} is not installed here; install ros-<distribution>-{package}"
        raise ContractError(msg) from error
    except AttributeError as error:
        msg = f"{type_name}: the package {package} has no {name} among its {kind} types; correct the contract"
        raise ContractError(msg) from error
