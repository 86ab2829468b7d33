"""What the watchdog knows of the robot and says to it: overheard commands, measured states, and the hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node

from groot_ros.contract import Contract
from groot_ros.contract.outputs import GripperCommandOutput
from groot_ros.contract.sources import TransformSource
from groot_ros.errors import MessageError
from groot_ros.execution.commands import Command
from groot_ros.execution.executor import Executor
from groot_ros.execution.outputs import Route
from groot_ros.execution.urdf import UrdfLimits
from groot_ros.messages import read_state
from groot_ros.nodes.command_messages import CONVERSIONS
from groot_ros.nodes.message_types import message_class
from groot_ros.nodes.newest_messages import NewestMessages, quiet_node
from groot_ros.nodes.overheard_commands import overheard_command
from groot_ros.nodes.policy_outputs import DEPTH, MESSAGES
from groot_ros.observation import NANOSECONDS_PER_SECOND


class WatchdogHands:
    """Listens to the outputs and states of a contract, and can hold all that the outputs move.

    The hold is the policy's own: an executor is told what others have sent, and asked for the commands that stop it.
    Where nothing was heard on an output, its measured position is held. Gripper actions keep their goal, as always.

    Args:
        node: The node.
        contract: The robot.
        urdf: Its description, where the contract takes limits from it.
        complain: Called with a sentence about a message that could not be read.

    Raises:
        ContractError: The settings cannot go together, or a message type is not installed.

    """

    def __init__(
        self, node: Node, contract: Contract, urdf: UrdfLimits | None, complain: Callable[[str], None]
    ) -> None:
        self._contract = contract
        self._urdf = urdf
        self._complain = complain
        self._sent = NewestMessages(node)
        # Joint states may come at 1 kHz and matter only in the moment of the hold: nobody wakes up for them before.
        self._ears = quiet_node(node)
        self._states = NewestMessages(self._ears)
        self._waker = SingleThreadedExecutor(context=node.context)
        self._waker.add_node(self._ears)
        self._routes: dict[str, Route] = {}
        self._topics: dict[str, str] = {}
        self._publishers: dict[str, Any] = {}
        for route in self._executor().map.routes:
            if isinstance(route.target, GripperCommandOutput):
                continue
            message_type, topic = MESSAGES[type(route.target)], route.target.topic
            self._routes[route.name], self._topics[route.name] = route, topic
            self._publishers[route.name] = node.create_publisher(message_type, topic, DEPTH)
            self._sent.subscribe(topic, message_type)
        self._state_topics: dict[str, str] = {}
        for source in (source for sources in contract.state.values() for source in sources):
            if not isinstance(source, TransformSource):
                topic = self._state_topics[source.topic] = node.resolve_topic_name(source.topic)
                self._states.subscribe(topic, message_class(source.message_type))

    def hold(self, now_ns: int, since_ns: int) -> tuple[list[str], list[str]]:
        """Send what stops every output.

        Args:
            now_ns: The time.
            since_ns: What was sent before is not taken for where the robot is: much may have moved it since.

        Returns:
            The topics that a hold was sent on, and a sentence for each that could not be held.

        """
        for _ in range(2 * len(self._state_topics)):
            self._waker.spin_once(timeout_sec=0.0)
        executor = self._executor()
        executor.observe(self._measured(now_ns), now_ns, now_ns, complete=False)
        for name, route in self._routes.items():
            overheard = self._overheard(route, self._topics[name], since_ns)
            if overheard is not None:
                executor.overhear(*overheard)
        commands = {command.output: command for command in executor.hold(now_ns)}
        held, faults = [], []
        for name, publisher in self._publishers.items():
            topic = self._topics[name]
            if name in commands:
                publisher.publish(CONVERSIONS[type(commands[name])](commands[name]))
                held.append(topic)
            else:
                faults.append(
                    f"{topic} was not held: nothing was sent on it lately, and where it stands is not measured, or not "
                    "where it was sent"
                )
        return held, faults

    def destroy(self) -> None:
        """Close the second node."""
        self._waker.shutdown()
        self._ears.destroy_node()

    def _executor(self) -> Executor:
        return Executor(self._contract, horizon=1, urdf=self._urdf)

    def _overheard(self, route: Route, topic: str, since_ns: int) -> tuple[Command, int] | None:
        """The newest command of an output, and when it was heard."""
        found = self._sent.read(topic)
        if found is None or found[1] < since_ns:
            return None
        try:
            command = overheard_command(route, *found)
        except MessageError as error:
            self._complain(str(error))
            return None
        return None if command is None else (command, found[1])

    def _measured(self, now_ns: int) -> dict[str, NDArray[np.float64]]:
        """The state groups ``(1, D)`` in the policy's units whose sources have all spoken lately."""
        state = {}
        for group in self._contract.state:
            values = self._values(group, now_ns)
            if values is not None:
                state[group] = self._contract.state_map(group).to_policy(values)[None]
        return state

    def _values(self, group: str, now_ns: int) -> NDArray[np.float64] | None:
        """The robot's values ``(R,)`` of a group in topic units; None while they are not known, and for transforms.

        A message may have waited long until it was read: what is older than the policy allows does not count.
        """
        timing = self._contract.stream_timing(f"state.{group}")
        max_age_ns = None if timing.stamp == "receipt" else self._contract.alignment.max_age_ns(timing)
        parts = []
        for source in self._contract.state[group]:
            if isinstance(source, TransformSource):
                return None
            found = self._states.read(self._state_topics[source.topic])
            if found is None:
                return None
            if max_age_ns is not None and _age_ns(found[0], now_ns - timing.offset_ns) > max_age_ns:
                return None
            try:
                parts.append(read_state(source, found[0], f"state.{group} on {source.topic}"))
            except MessageError as error:
                self._complain(str(error))
                return None
        return np.concatenate(parts) if parts else None


def _age_ns(message: Any, now_ns: int) -> int:  # noqa: ANN401 - a class that rosidl generated
    """How old a message is by its stamp; 0 where it has none."""
    stamp = getattr(getattr(message, "header", None), "stamp", None)
    if stamp is None or (stamp.sec, stamp.nanosec) == (0, 0):
        return 0
    return now_ns - (int(stamp.sec) * NANOSECONDS_PER_SECOND + int(stamp.nanosec))
