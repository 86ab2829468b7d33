"""The recorder's ears: raw subscriptions, as reliable as the publishers of each topic offer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import yaml
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy
from rclpy.subscription import Subscription

from groot_ros.nodes.message_types import message_class
from groot_ros.recording import RecordedTopic

CAMERA_DEPTH = 15
OTHER_DEPTH = 1000
"""Half a second of frames at 30 Hz, which cost a megabyte each, and two seconds of joint states at 500 Hz."""


class RecorderTopics:
    """Subscribes to topics as soon as they are published, and anew when a publisher comes that offers less.

    Args:
        node: The node whose subscriptions they are.
        topics: What to subscribe to, by full name.
        hear: Takes topic and serialised message.
        note_qos: Takes topic and what its publishers offer, as rosbag2 keeps it.

    """

    def __init__(
        self,
        node: Node,
        topics: Mapping[str, RecordedTopic],
        hear: Callable[[str, bytes], None],
        note_qos: Callable[[str, str], None],
    ) -> None:
        self._node = node
        self._topics = topics
        self._hear = hear
        self._note_qos = note_qos
        self._classes = {name: message_class(topic.type_name) for name, topic in topics.items()}
        self._subscriptions: dict[str, tuple[tuple[bool, bool], Subscription[Any]]] = {}

    def look(self) -> None:
        """Subscribe to what has appeared. Call it now and then."""
        for name in self._topics:
            offered = [end.qos_profile for end in self._node.get_publishers_info_by_topic(name)]
            if not offered:
                continue
            # A subscription that asks for more than one of the publishers offers would not hear that one at all.
            reliable = all(profile.reliability == ReliabilityPolicy.RELIABLE for profile in offered)
            latched = all(profile.durability == DurabilityPolicy.TRANSIENT_LOCAL for profile in offered)
            self._subscribe(name, reliable=reliable, latched=latched)
            self._note_qos(name, _as_yaml(offered))

    def publishers(self, name: str) -> int:
        """How many nodes publish a topic."""
        return int(self._node.count_publishers(name))

    def is_reliable(self, name: str) -> bool | None:
        """Whether lost messages are sent again; None where nothing is published yet."""
        known = self._subscriptions.get(name)
        return known[0][0] if known else None

    def _subscribe(self, name: str, *, reliable: bool, latched: bool) -> None:
        known = self._subscriptions.get(name)
        if known is not None:
            if known[0] == (reliable, latched):
                return
            self._node.destroy_subscription(known[1])
        profile = QoSProfile(
            history=HistoryPolicy.KEEP_LAST,
            depth=CAMERA_DEPTH if self._topics[name].is_camera else OTHER_DEPTH,
            reliability=ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT,
            durability=DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE,
        )
        hear = self._hear
        subscription = self._node.create_subscription(
            self._classes[name], name, lambda data: hear(name, data), profile, raw=True
        )
        self._subscriptions[name] = ((reliable, latched), subscription)


def _as_yaml(profiles: Sequence[QoSProfile]) -> str:
    """QoS profiles as rosbag2 keeps them: numbers for the policies."""

    def span(duration: Any) -> dict[str, int]:  # noqa: ANN401 - rclpy's Duration
        return {"sec": duration.nanoseconds // 10**9, "nsec": duration.nanoseconds % 10**9}

    return yaml.safe_dump(
        [
            {
                "history": int(profile.history),
                "depth": int(profile.depth),
                "reliability": int(profile.reliability),
                "durability": int(profile.durability),
                "deadline": span(profile.deadline),
                "lifespan": span(profile.lifespan),
                "liveliness": int(profile.liveliness),
                "liveliness_lease_duration": span(profile.liveliness_lease_duration),
                "avoid_ros_namespace_conventions": bool(profile.avoid_ros_namespace_conventions),
            }
            for profile in profiles
        ],
        sort_keys=False,
    )
