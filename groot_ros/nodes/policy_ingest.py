"""The node's ears: every topic of the contract into the alignment, each callback cheap, each bad message named."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy
from rclpy.qos_overriding_options import QoSOverridingOptions
from rclpy.subscription import Subscription

from groot_ros.alignment import Aligner
from groot_ros.alignment.intake import Intake, IntakeTopic
from groot_ros.contract import Contract
from groot_ros.nodes.message_types import message_class
from groot_ros.observation import NANOSECONDS_PER_SECOND

CAMERA_DEPTH = 5
STATE_DEPTH = 100
"""Joint states may come at 1 kHz: a tenth of a second in which another callback may run."""
RATE_FRAMES = 60


class Ingest:
    """Subscribes to all cameras and states of a contract, and to nothing else.

    Args:
        node: The node whose subscriptions they are.
        contract: The topics.
        aligner: Where the messages go.
        on_frame: Called after a frame that counts; ``is_reference`` says whether it is of the reference camera.
        on_state: Called after a state that counts.

    """

    def __init__(
        self,
        node: Node,
        contract: Contract,
        aligner: Aligner,
        *,
        on_frame: Callable[..., None],
        on_state: Callable[[], None],
    ) -> None:
        self._node = node
        self._clock = node.get_clock()
        self._contract = contract
        self._intake = Intake(contract, aligner)
        self._on_frame = on_frame
        self._on_state = on_state
        self._arrivals = {camera: deque[int](maxlen=RATE_FRAMES) for camera in contract.cameras}
        self._subscriptions: list[Subscription[Any]] = [
            node.create_subscription(
                message_class(topic.type),
                topic.name,
                self._callback(topic),
                _quality(topic),
                qos_overriding_options=QoSOverridingOptions.with_default_policies(),
            )
            for topic in self._intake.topics.values()
        ]

    def destroy(self) -> None:
        """Unsubscribe."""
        for subscription in self._subscriptions:
            self._node.destroy_subscription(subscription)
        self._subscriptions.clear()

    @property
    def counts(self) -> Mapping[str, int]:
        """Messages that were taken, by topic as the contract writes it."""
        return self._intake.counts

    def measured(self) -> dict[str, NDArray[np.float64]] | None:
        """The newest values of all state groups in topic units ``(R,)``; None while one has not come yet."""
        return self._intake.measured()

    def camera_rates_hz(self, now_ns: int) -> dict[str, float]:
        """Frames a second by camera, over the latest frames; 0 where none came for two seconds."""
        rates = {}
        for camera, arrivals in self._arrivals.items():
            recent = [arrival for arrival in arrivals if now_ns - arrival < 2 * NANOSECONDS_PER_SECOND]
            span_ns = recent[-1] - recent[0] if len(recent) > 1 else 0
            rates[camera] = (len(recent) - 1) * NANOSECONDS_PER_SECOND / span_ns if span_ns > 0 else 0.0
        return rates

    def several_publishers(self) -> str | None:
        """A sentence where several nodes publish one camera's topic: their pictures would take turns; else None."""
        for camera, source in self._contract.cameras.items():
            publishers = self._node.get_publishers_info_by_topic(self._node.resolve_topic_name(source.topic))
            if len(publishers) > 1:
                names = ", ".join(f"{end.node_namespace.rstrip('/')}/{end.node_name}" for end in publishers)
                return (
                    f"video.{camera}: {len(publishers)} publishers on {source.topic} ({names}), so pictures of two "
                    "cameras would take turns; stop all but one, or give each its own topic"
                )
        return None

    def reset(self) -> None:
        """Forget what was heard."""
        self._intake.reset()
        for arrivals in self._arrivals.values():
            arrivals.clear()

    def _callback(self, topic: IntakeTopic) -> Callable[[Any], None]:
        arrivals = [self._arrivals[camera] for camera in topic.cameras]
        is_reference = next(iter(self._contract.cameras)) in topic.cameras

        def receive(message: Any) -> None:  # noqa: ANN401 - a ROS message
            now_ns = int(self._clock.now().nanoseconds)
            for camera_arrivals in arrivals:
                camera_arrivals.append(now_ns)
            taken = self._intake.take(topic.name, message, now_ns)
            if taken.frame:
                self._on_frame(is_reference=is_reference)
            if taken.state:
                self._on_state()

        return receive


def _quality(topic: IntakeTopic) -> QoSProfile:
    return QoSProfile(
        history=HistoryPolicy.KEEP_LAST,
        depth=CAMERA_DEPTH if topic.cameras else STATE_DEPTH,
        reliability=ReliabilityPolicy.RELIABLE if topic.reliability == "reliable" else ReliabilityPolicy.BEST_EFFORT,
        durability=DurabilityPolicy.TRANSIENT_LOCAL if topic.is_static else DurabilityPolicy.VOLATILE,
    )
