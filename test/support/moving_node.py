"""A node with the outputs of a contract and the motion thread of the policy, but no policy: tests bring the chunks."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import rclpy
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.lifecycle import LifecycleNode

from groot_ros.execution.executor import Executor
from groot_ros.nodes.policy_motion import Motion
from groot_ros.nodes.policy_outputs import Outputs
from groot_ros.observation import ActionChunk
from support.motion import arm_contract
from support.ros import Listener


class MovingNode:
    """A lifecycle node with the outputs of a contract and the motion thread, and a listener beside it."""

    def __init__(self, outputs: Mapping[str, Any], **changes: Any) -> None:
        self.contract = arm_contract(outputs=outputs, **changes)
        self.context = Context()
        rclpy.init(context=self.context)
        self.node = LifecycleNode("mover", context=self.context)
        self.executor = SingleThreadedExecutor(context=self.context)
        self.executor.add_node(self.node)
        self.outputs = Outputs(self.node, self.contract)
        self.node.trigger_configure()
        self.node.trigger_activate()
        self.motion = Motion(self.contract, Executor(self.contract, horizon=16), self.outputs, self.node.get_clock())
        self.listener = Listener()

    def now_ns(self) -> int:
        return int(self.node.get_clock().now().nanoseconds)

    def listen(self, name: str, message_type: type) -> list:
        topic = self.contract.outputs[name].topic
        heard = self.listener.listen(message_type, topic, 50)
        self.listener.wait_for(lambda: self.node.count_subscribers(topic), f"subscription of {topic}")
        time.sleep(0.2)
        return heard

    def execute(self, state: dict, plan: ActionChunk) -> None:
        """Let the robot be somewhere and a chunk arrive."""
        self.motion.start(sends=True)
        measured = {key: np.atleast_2d(np.asarray(value, np.float32)) for key, value in state.items()}
        self.motion.observe(measured, plan.stamp_ns, complete=True)
        acceptance = self.motion.accept(plan, self.motion.begin_inference(plan.stamp_ns))
        assert acceptance.accepted, acceptance.sentence

    def close(self) -> None:
        self.motion.destroy()
        self.outputs.destroy()
        self.executor.shutdown()
        self.node.destroy_node()
        rclpy.shutdown(context=self.context)
        self.listener.close()
