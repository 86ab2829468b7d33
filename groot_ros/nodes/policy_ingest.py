"""The node's ears: every topic of the contract into the alignment, each callback cheap, each bad message named."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy
from rclpy.qos_overriding_options import QoSOverridingOptions
from rclpy.subscription import Subscription

from groot_ros.alignment import Aligner
from groot_ros.contract import Contract
from groot_ros.contract.sources import StateSource, TransformSource
from groot_ros.errors import MessageError
from groot_ros.messages import TransformTracker, header_stamp_ns, read_image, read_state
from groot_ros.nodes.message_types import message_class
from groot_ros.observation import NANOSECONDS_PER_SECOND

CAMERA_DEPTH = 5
STATE_DEPTH = 100
"""Joint states may come at 1 kHz: a tenth of a second in which another callback may run."""
TF_DEPTH = 100
RATE_FRAMES = 60


class Ingest:
    """Subscribes to all cameras and states of a contract, and to nothing else.

    Args:
        node: The node whose subscriptions they are.
        contract: The topics.
        aligner: Where the messages go.
        on_frame: Called after a frame that counts.
        on_state: Called after a state that counts.

    """

    def __init__(
        self,
        node: Node,
        contract: Contract,
        aligner: Aligner,
        *,
        on_frame: Callable[[], None],
        on_state: Callable[[], None],
    ) -> None:
        self._node = node
        self._clock = node.get_clock()
        self._contract = contract
        self._aligner = aligner
        self._on_frame = on_frame
        self._on_state = on_state
        self._subscriptions: list[Subscription[Any]] = []
        self._raw: dict[tuple[str, int], NDArray[np.float64]] = {}
        self._arrivals = {camera: deque[int](maxlen=RATE_FRAMES) for camera in contract.cameras}
        for camera, source in contract.cameras.items():
            self._subscribe(source.message_type, source.topic, self._camera_callback(camera), CAMERA_DEPTH, source.qos)
        self._subscribe_states()

    def destroy(self) -> None:
        """Unsubscribe."""
        for subscription in self._subscriptions:
            self._node.destroy_subscription(subscription)
        self._subscriptions.clear()

    def measured(self) -> dict[str, NDArray[np.float64]] | None:
        """The newest values of all state groups in topic units ``(R,)``; None while one has not come yet."""
        values: dict[str, NDArray[np.float64]] = {}
        for group, sources in self._contract.state.items():
            parts = [self._raw.get((group, index)) for index in range(len(sources))]
            known = [part for part in parts if part is not None]
            if len(known) != len(parts):
                return None
            values[group] = np.concatenate(known) if known else np.empty(0)
        return values

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
        self._raw.clear()
        for arrivals in self._arrivals.values():
            arrivals.clear()

    def _now_ns(self) -> int:
        return int(self._clock.now().nanoseconds)

    def _subscribe(
        self, type_name: str, topic: str, callback: Callable[[Any], None], depth: int, reliability: str
    ) -> None:
        qos = QoSProfile(
            history=HistoryPolicy.KEEP_LAST,
            depth=depth,
            reliability=ReliabilityPolicy.RELIABLE if reliability == "reliable" else ReliabilityPolicy.BEST_EFFORT,
            durability=DurabilityPolicy.VOLATILE,
        )
        self._add(type_name, topic, callback, qos)

    def _add(self, type_name: str, topic: str, callback: Callable[[Any], None], qos: QoSProfile) -> None:
        self._subscriptions.append(
            self._node.create_subscription(
                message_class(type_name),
                topic,
                callback,
                qos,
                qos_overriding_options=QoSOverridingOptions.with_default_policies(),
            )
        )

    def _camera_callback(self, camera: str) -> Callable[[Any], None]:
        stream, arrivals = f"video.{camera}", self._arrivals[camera]
        where = f"{stream} on {self._contract.cameras[camera].topic}"

        def receive(message: Any) -> None:  # noqa: ANN401 - a ROS message
            now_ns = self._now_ns()
            arrivals.append(now_ns)
            try:
                frame = read_image(message, where)
            except MessageError as error:
                self._aligner.refuse(stream, str(error), now_ns)
                return
            if self._aligner.add_image(camera, header_stamp_ns(message), frame, now_ns):
                self._on_frame()

        return receive

    def _subscribe_states(self) -> None:
        """One subscription a topic, however many groups draw on it."""
        by_topic: dict[tuple[str, str, str], list[tuple[str, int, StateSource]]] = defaultdict(list)
        transforms: list[tuple[str, int, TransformSource]] = []
        for group, sources in self._contract.state.items():
            for index, source in enumerate(sources):
                if isinstance(source, TransformSource):
                    transforms.append((group, index, source))
                else:
                    by_topic[source.topic, source.message_type, source.qos].append((group, index, source))
        for (topic, type_name, reliability), readers in by_topic.items():
            self._subscribe(type_name, topic, self._state_callback(topic, readers), STATE_DEPTH, reliability)
        if transforms:
            trackers = [
                (group, index, TransformTracker(source.tf[0], source.tf[1])) for group, index, source in transforms
            ]
            type_name = transforms[0][2].message_type
            moving = QoSProfile(depth=TF_DEPTH)
            fixed = QoSProfile(depth=TF_DEPTH, durability=DurabilityPolicy.TRANSIENT_LOCAL)
            self._add(type_name, "/tf", self._transform_callback("/tf", trackers, static=False), moving)
            self._add(type_name, "/tf_static", self._transform_callback("/tf_static", trackers, static=True), fixed)

    def _state_callback(self, topic: str, readers: Sequence[tuple[str, int, StateSource]]) -> Callable[[Any], None]:
        named = [(group, index, source, _stream(group, index)) for group, index, source in readers]

        def receive(message: Any) -> None:  # noqa: ANN401 - a ROS message
            now_ns, counts = self._now_ns(), False
            stamp_ns = header_stamp_ns(message)
            for group, index, source, stream in named:
                try:
                    values = read_state(source, message, f"{stream} on {topic}")
                except MessageError as error:
                    self._aligner.refuse(stream, str(error), now_ns)
                    continue
                self._raw[group, index] = values
                counts = self._aligner.add_state(group, index, stamp_ns, values, now_ns) or counts
            if counts:
                self._on_state()

        return receive

    def _transform_callback(
        self, topic: str, trackers: Sequence[tuple[str, int, TransformTracker]], *, static: bool
    ) -> Callable[[Any], None]:
        def receive(message: Any) -> None:  # noqa: ANN401 - a ROS message
            now_ns, counts = self._now_ns(), False
            for group, index, tracker in trackers:
                stream = _stream(group, index)
                try:
                    samples = tracker.add(message, f"{stream} on {topic}", static=static)
                except MessageError as error:
                    self._aligner.refuse(stream, str(error), now_ns)
                    continue
                for stamp_ns, pose in samples:
                    self._raw[group, index] = pose
                    counts = self._aligner.add_state(group, index, stamp_ns, pose, now_ns) or counts
            if counts:
                self._on_state()

        return receive


def _stream(group: str, index: int) -> str:
    """The alignment's name for a source."""
    return f"state.{group}" if index == 0 else f"state.{group}[{index}]"
