"""What no message reports: other publishers, the checkpoint's folder, controllers, gripper servers, the watchdog."""

from __future__ import annotations

from rclpy.node import Node

from groot_ros.alignment import NotReady, Reason
from groot_ros.contract import Contract
from groot_ros.nodes.policy_ingest import Ingest
from groot_ros.nodes.policy_motion import Motion
from groot_ros.nodes.policy_outputs import Outputs
from groot_ros.policy import GrootPolicy


class Surroundings:
    """Looks at the graph and the file system now and then: slow, so without the session's lock.

    Args:
        node: The node.
        contract: The robot.
        policy: The policy.
        ingest: The messages' side.
        outputs: The commands' side.
        motion: What sends the commands.

    Attributes:
        warnings: What was wrong at the last look.

    """

    def __init__(
        self, node: Node, contract: Contract, policy: GrootPolicy, *, ingest: Ingest, outputs: Outputs, motion: Motion
    ) -> None:
        self._node = node
        self._contract = contract
        self._policy = policy
        self._ingest = ingest
        self._outputs = outputs
        self._motion = motion
        self.warnings: list[str] = []

    def publishers_fault(self) -> NotReady | None:
        """Why the messages of a stream cannot be trusted: several nodes publish them."""
        sentence = self._ingest.several_publishers()
        if sentence is None:
            return None
        return NotReady(Reason.OUT_OF_ORDER, sentence.split(":", maxsplit=1)[0], sentence)

    def look(self, instruction: str, *, is_enabled: bool) -> str | None:
        """Keep what is wrong, and say what is new; why the robot must not move, where that was found."""
        warnings = self._checkpoint_warnings()
        if not instruction.strip():
            warnings.append("instruction: none is given; write one in the contract or publish one on ~/instruction")
        refusal = self._outputs.refusal()
        if refusal is not None:
            warnings.append(refusal)
        elif is_enabled:
            warnings += self._motion.retry()
            heartbeat = self._node.resolve_topic_name("~/heartbeat")
            if not self._node.count_subscribers(heartbeat):
                warnings.append(
                    f"nobody listens to {heartbeat}: nothing holds the robot if this process dies; start the watchdog"
                )
        for warning in warnings:
            if warning not in self.warnings:
                self._node.get_logger().warning(warning)
        self.warnings = warnings
        return refusal

    def _checkpoint_warnings(self) -> list[str]:
        checkpoint, warnings = self._policy.checkpoint, []
        if not (checkpoint.path / "config.json").is_file():
            warnings.append(
                f"checkpoint: {checkpoint.path} is gone; the policy goes on from memory, but it cannot be configured "
                "again"
            )
        if checkpoint.fps is None:
            warnings.append(
                f"checkpoint: {checkpoint.path} does not record the rate that it was trained at, so the contract's "
                f"{self._contract.rate_hz:g} Hz is taken on trust; if it is wrong, every motion has the wrong speed"
            )
        return warnings
