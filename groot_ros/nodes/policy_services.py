"""What people and programs ask of the node: ``~/enable``, ``~/reset``, ``~/progress`` and ``~/instruction``."""

from __future__ import annotations

from typing import Protocol

from rclpy.node import Node
from std_msgs.msg import String
from std_srvs.srv import SetBool, Trigger

from groot_ros.nodes.latched_text import LATCHED


class Answers(Protocol):
    """Who answers; each answer is whether it was done, and a sentence."""

    def enable(self, *, on: bool) -> tuple[bool, str]:
        """Switch motion on or off."""

    def reset(self) -> tuple[bool, str]:
        """Forget the plan and the history."""

    def progress(self) -> tuple[bool, str]:
        """What has been taken in so far."""

    def instruct(self, text: str) -> None:
        """Take a new task."""


class PolicyServices:
    """The services and the instruction topic, which are there in every state of the node.

    Args:
        node: The node.
        answers: Who answers.

    """

    def __init__(self, node: Node, answers: Answers) -> None:
        self._answers = answers
        node.create_service(SetBool, "~/enable", self._enable)
        node.create_service(Trigger, "~/reset", self._reset)
        node.create_service(Trigger, "~/progress", self._progress)
        node.create_subscription(String, "~/instruction", lambda message: answers.instruct(message.data), LATCHED)

    def _enable(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        response.success, response.message = self._answers.enable(on=request.data)
        return response

    def _reset(self, _request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        response.success, response.message = self._answers.reset()
        return response

    def _progress(self, _request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        response.success, response.message = self._answers.progress()
        return response
