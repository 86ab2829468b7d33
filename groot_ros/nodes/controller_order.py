"""Whether a controller that takes bare numbers takes them in the contract's order: asked of the controller itself."""

from __future__ import annotations

from typing import Any

from rcl_interfaces.msg import ParameterType
from rcl_interfaces.srv import GetParameters
from rclpy.node import Node

from groot_ros.contract.outputs import PositionCommandOutput

PARAMETER = "joints"


class ControllerOrder:
    """Compares the ``names`` of a position_command with the parameter ``joints`` of its controller.

    ros2_control's controllers listen to a topic below their own name, as ``/arm_controller/commands``. Where no such
    node answers, or it has no such parameter, nothing is known and nothing is said.

    Args:
        node: The node that asks.
        name: The output's name in the contract.
        target: The output.

    """

    def __init__(self, node: Node, name: str, target: PositionCommandOutput) -> None:
        self._node = node
        self._name = name
        self._wanted = list(target.names)
        self._controller = node.resolve_topic_name(target.topic).rpartition("/")[0]
        self._client: Any = None
        if self._controller:
            self._client = node.create_client(GetParameters, f"{self._controller}/get_parameters")
        self._is_asked = False
        self.fault: str | None = None

    def ask(self) -> None:
        """Ask once, as soon as the controller is there; never waits."""
        if self._client is None or self._is_asked or not self._client.service_is_ready():
            return
        self._is_asked = True
        self._client.call_async(GetParameters.Request(names=[PARAMETER])).add_done_callback(self._hear)

    def destroy(self) -> None:
        """Close the client."""
        if self._client is not None:
            self._node.destroy_client(self._client)

    def _hear(self, future: Any) -> None:  # noqa: ANN401 - rclpy's Future
        answer = future.result()
        values = answer.values if answer is not None else []
        if not values or values[0].type != ParameterType.PARAMETER_STRING_ARRAY:
            return
        found = list(values[0].string_array_value)
        if found != self._wanted:
            self.fault = (
                f"outputs.{self._name}.names: found {', '.join(self._wanted)}, but {self._controller} takes them in "
                f"the order {', '.join(found)} (its parameter {PARAMETER}); write names and from in this order"
            )
