"""Node ``groot_player``: plays a bag as a robot's topics, with /clock; in lock-step where that is asked for."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
from builtin_interfaces.msg import Time
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rosgraph_msgs.msg import Clock
from trajectory_msgs.msg import JointTrajectory

from groot_ros.alignment import Aligner
from groot_ros.alignment.intake import Intake, IntakeTopic
from groot_ros.contract import Contract
from groot_ros.dataset.bag import Bag, BagMessage
from groot_ros.errors import EvaluationError
from groot_ros.evaluation.bag_episode import absolute, check_topics
from groot_ros.evaluation.live_chunks import LiveChunk, chunk_of
from groot_ros.nodes.lock_step import LockStep
from groot_ros.nodes.message_types import message_class
from groot_ros.observation import NANOSECONDS_PER_SECOND

DEPTH = 100
CLOCK_PERIOD_S = 0.01
SUBSCRIBER_DEADLINE_S = 30.0
LAST_CHUNK_S = 1.0
"""How long a chunk is waited for after the last message, where nobody says whether one will come."""


@dataclass(frozen=True)
class PlayedLive:
    """What came out of playing.

    Attributes:
        messages: Messages sent.
        chunks: Chunks that the policy node sent meanwhile, in their order.

    """

    messages: int
    chunks: list[LiveChunk]


class Player(Node):
    """Publishes a contract's topics out of a bag, byte for byte as they were recorded.

    Args:
        contract: Which topics.
        policy: Name of the policy node whose chunks are gathered.
        options: rclpy's own.

    """

    def __init__(self, contract: Contract, policy: str = "/groot_policy", **options: Any) -> None:  # noqa: ANN401
        super().__init__("groot_player", **options)
        self._contract = contract
        self._policy = policy if policy.startswith("/") else f"/{policy}"
        self._executor = SingleThreadedExecutor(context=self.context)
        self._executor.add_node(self)
        self._clock_publisher = self.create_publisher(Clock, "/clock", QoSProfile(depth=1))
        self._now_ns = 0
        self._chunks: list[LiveChunk] = []
        self._publishers_by_topic: dict[str, Any] = {}
        reliable = QoSProfile(depth=DEPTH, reliability=ReliabilityPolicy.RELIABLE)
        self.create_subscription(JointTrajectory, f"{self._policy}/action_chunk", self._take_chunk, reliable)

    def play(self, path: Path, *, rate: float = 1.0, lock_step: bool = False) -> PlayedLive:
        """Play a bag once.

        Args:
            path: The bag.
            rate: How many times faster than recorded; of no account in lock-step.
            lock_step: Whether each message waits until the node has taken the one before, and thought about it.

        Raises:
            GrootError: The bag is damaged or lacks a topic, or the node does not keep up in lock-step.

        """
        intake = Intake(self._contract, Aligner(self._contract))
        topics = {absolute(name): topic for name, topic in intake.topics.items()}
        with Bag(path) as bag:
            check_topics(bag, intake)
            for name, topic in topics.items():
                if name in bag.topics:
                    self._advertise(name, topic)
            self._wait_for_subscribers()
            messages = bag.messages(self._publishers_by_topic)
            names = {name: topic.name for name, topic in topics.items()}
            count = self._play_in_lock_step(messages, names) if lock_step else self._play_in_time(messages, rate)
        if not lock_step:
            self._spin_for(LAST_CHUNK_S)
        return PlayedLive(count, list(self._chunks))

    def close(self) -> None:
        """Take the node down."""
        self._executor.shutdown()
        self.destroy_node()

    def _play_in_time(self, messages: Iterable[BagMessage], rate: float) -> int:
        count = 0
        start_ns, start_s, next_clock_s = None, time.monotonic(), 0.0
        for message in messages:
            if start_ns is None:
                start_ns = message.received_ns
            due_s = start_s + (message.received_ns - start_ns) / NANOSECONDS_PER_SECOND / rate
            while True:
                now_s = time.monotonic()
                if now_s >= due_s:
                    break
                if now_s >= next_clock_s:
                    next_clock_s = now_s + CLOCK_PERIOD_S
                    self._tell_time(start_ns + round((now_s - start_s) * rate * NANOSECONDS_PER_SECOND))
                self._executor.spin_once(timeout_sec=min(due_s - now_s, CLOCK_PERIOD_S))
            self._tell_time(message.received_ns)
            self._publish(message)
            count += 1
        return count

    def _play_in_lock_step(self, messages: Iterable[BagMessage], names: dict[str, str]) -> int:
        step = LockStep(self, self._executor, self._policy)
        step.begin()
        count = 0
        for message in messages:
            if message.received_ns != self._now_ns:
                self._tell_time(message.received_ns)
                step.clock_taken(self._now_ns, lambda: self._tell_time(self._now_ns))
                self._await_chunks(step)
            self._publish(message)
            step.message_taken(names[message.topic])
            self._await_chunks(step)
            count += 1
        return count

    def _await_chunks(self, step: LockStep) -> None:
        """Wait for chunks that the node has sent but that have not arrived."""
        self._wait_until(lambda: len(self._chunks) >= step.chunks, f"{self._policy}/action_chunk brings no chunk")

    def _advertise(self, name: str, topic: IntakeTopic) -> None:
        durability = DurabilityPolicy.TRANSIENT_LOCAL if topic.is_static else DurabilityPolicy.VOLATILE
        qos = QoSProfile(depth=DEPTH, reliability=ReliabilityPolicy.RELIABLE, durability=durability)
        self._publishers_by_topic[name] = self.create_publisher(message_class(topic.type), name, qos)

    def _publish(self, message: BagMessage) -> None:
        # The bytes as they were recorded: nothing is read and written again.
        self._publishers_by_topic[message.topic].publish(bytes(message.data))

    def _tell_time(self, now_ns: int) -> None:
        self._now_ns = max(now_ns, self._now_ns)
        seconds, nanoseconds = divmod(self._now_ns, NANOSECONDS_PER_SECOND)
        self._clock_publisher.publish(Clock(clock=Time(sec=seconds, nanosec=nanoseconds)))

    def _take_chunk(self, message: JointTrajectory) -> None:
        offsets = [
            point.time_from_start.sec * NANOSECONDS_PER_SECOND + point.time_from_start.nanosec
            for point in message.points
        ]
        stamp_ns = message.header.stamp.sec * NANOSECONDS_PER_SECOND + message.header.stamp.nanosec
        rows = np.array([point.positions for point in message.points], np.float64)
        chunk = chunk_of(message.joint_names, rows, stamp_ns + offsets[0], self._contract.period_s)
        self._chunks.append(LiveChunk(chunk, self._now_ns))

    def _wait_for_subscribers(self) -> None:
        for name, publisher in self._publishers_by_topic.items():
            self._wait_until(publisher.get_subscription_count, f"nobody listens to {name}; is {self._policy} running?")

    def _wait_until(self, condition: Callable[[], Any], sentence: str) -> None:
        end_s = time.monotonic() + SUBSCRIBER_DEADLINE_S
        while not condition():
            if time.monotonic() > end_s:
                msg = f"{sentence} (waited {SUBSCRIBER_DEADLINE_S:.0f} s)"
                raise EvaluationError(msg)
            self._executor.spin_once(timeout_sec=0.02)

    def _spin_for(self, duration_s: float) -> None:
        end_s = time.monotonic() + duration_s
        while time.monotonic() < end_s:
            self._executor.spin_once(timeout_sec=0.05)


def play_once(
    path: Path,
    contract: Contract,
    *,
    policy: str = "/groot_policy",
    rate: float = 1.0,
    lock_step: bool = False,
    ros_arguments: Sequence[str] | None = None,
) -> PlayedLive:
    """Start ROS, play a bag, and take everything down; see `Player.play`."""
    context = Context()
    rclpy.init(args=None if ros_arguments is None else list(ros_arguments), context=context)
    try:
        player = Player(contract, policy, context=context)
        try:
            return player.play(path, rate=rate, lock_step=lock_step)
        finally:
            player.close()
    finally:
        rclpy.try_shutdown(context=context)
