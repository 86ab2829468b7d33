"""The node's ears: every topic of the contract into the alignment, each callback cheap, each bad message named."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rclpy.node import Node

from groot_ros.alignment import Aligner
from groot_ros.alignment.intake import TRANSFORM_TOPICS, Intake, IntakeTopic
from groot_ros.contract import Contract
from groot_ros.nodes.message_types import message_class
from groot_ros.nodes.quality import subscription_quality
from groot_ros.nodes.streams_thread import StreamsThread
from groot_ros.observation import NANOSECONDS_PER_SECOND

RATE_FRAMES = 60


class Ingest:
    """Subscribes to all cameras and states of a contract, and to nothing else; the callbacks run in their own thread.

    Args:
        node: The node whose names, parameters and clock count.
        contract: The topics.
        aligner: Where the messages go.
        lock: Held during each callback; whoever else touches the aligner or this object holds it too.
        on_frame: Called after a frame that counts; ``is_reference`` says whether it is of the reference camera.
        on_state: Called after a state that counts.

    """

    def __init__(
        self,
        node: Node,
        contract: Contract,
        aligner: Aligner,
        lock: RLock,
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
        self._lock = lock
        # Resolved here, since the remappings of the user's node count and not those of the streams' node.
        names = {topic: node.resolve_topic_name(topic.name) for topic in self._intake.topics.values()}
        subscriptions = [
            (message_class(topic.type), name, self._callback(topic), subscription_quality(node, topic, name))
            for topic, name in names.items()
        ]
        self._streams = StreamsThread(node)
        for subscription in subscriptions:
            self._streams.subscribe(*subscription)

    def start(self) -> None:
        """Begin to listen: from now on callbacks come."""
        self._streams.start()

    def destroy(self) -> None:
        """Unsubscribe; without the lock, which a callback may wait for."""
        self._streams.stop()

    @property
    def is_alive(self) -> bool:
        """Whether messages are taken."""
        return self._streams.is_alive

    @property
    def death(self) -> str | None:
        """What ended the thread that takes messages."""
        return self._streams.death

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
        """A sentence where several nodes publish on one topic of a stream; transforms may have many. Needs no lock."""
        for topic in self._intake.topics.values():
            if topic.name in TRANSFORM_TOPICS:
                continue
            publishers = self._node.get_publishers_info_by_topic(self._node.resolve_topic_name(topic.name))
            if len(publishers) > 1:
                names = ", ".join(f"{end.node_namespace.rstrip('/')}/{end.node_name}" for end in publishers)
                what = "pictures of two cameras" if topic.cameras else "states of two robots"
                return (
                    f"{self._intake.streams(topic.name)[0]}: {len(publishers)} publishers on {topic.name} ({names}), "
                    f"so {what} would take turns; stop all but one, or give each its own topic"
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
            with self._lock:
                now_ns = int(self._clock.now().nanoseconds)
                for camera_arrivals in arrivals:
                    camera_arrivals.append(now_ns)
                taken = self._intake.take(topic.name, message, now_ns)
                if taken.frame:
                    self._on_frame(is_reference=is_reference)
                if taken.state:
                    self._on_state()

        return receive
