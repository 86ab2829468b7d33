"""The recorder's ears: raw subscriptions, as reliable as the publishers of each topic offer.

They are read some 50 times a second, each until it is empty. An executor would take one message a turn and look at
everything else before each: at 500 joint states a second that costs half a core and is still too slow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any

import yaml
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy
from rclpy.subscription import Subscription

from groot_ros.nodes.message_types import message_class
from groot_ros.nodes.newest_messages import quiet_node
from groot_ros.recording import RecordedTopic

CAMERA_DEPTH = 60
OTHER_DEPTH = 5000
"""Two seconds of frames at 30 Hz, which cost a megabyte each, and ten seconds of joint states at 500 Hz: what a process
that is kept waiting may miss."""


class RecorderTopics:
    """Subscribes to topics as soon as they are published, and anew when a publisher comes that offers less.

    Args:
        node: The recorder's node, whose clock and view of the graph they use. The subscriptions belong to another one,
            ``<name>_ears``, which no executor spins.
        topics: What to subscribe to, by full name.
        hear: Takes topic, time of arrival in nanoseconds and serialised message.
        note_qos: Takes topic and what its publishers offer, as rosbag2 keeps it.

    """

    def __init__(
        self,
        node: Node,
        topics: Mapping[str, RecordedTopic],
        hear: Callable[[str, int, bytes], None],
        note_qos: Callable[[str, str], None],
    ) -> None:
        self._node = node
        self._ears = quiet_node(node)
        self._topics = topics
        self._hear = hear
        self._note_qos = note_qos
        self._classes = {name: message_class(topic.type_name) for name, topic in topics.items()}
        self._subscriptions: dict[str, tuple[tuple[bool, bool], Subscription[Any]]] = {}
        self._offered: dict[str, list[QoSProfile]] = {}

    def look(self) -> None:
        """Subscribe to what has appeared. Call it now and then."""
        for name in self._topics:
            offered = [end.qos_profile for end in self._node.get_publishers_info_by_topic(name)]
            if not offered or offered == self._offered.get(name):
                continue
            self._offered[name] = offered
            # A subscription that asks for more than one of the publishers offers would not hear that one at all.
            reliable = all(profile.reliability == ReliabilityPolicy.RELIABLE for profile in offered)
            latched = all(profile.durability == DurabilityPolicy.TRANSIENT_LOCAL for profile in offered)
            self._subscribe(name, reliable=reliable, latched=latched)
            self._note_qos(name, _as_yaml(offered))

    def take(self) -> None:
        """Hear all that has come, in the order in which it came."""
        came: list[tuple[int, str, bytes]] = []
        for name, (_, subscription) in self._subscriptions.items():
            handle = subscription.handle
            with handle:
                while (taken := handle.take_message(subscription.msg_type, True)) is not None:
                    came.append((self._arrival_ns(taken[1]["received_timestamp"]), name, taken[0]))
        came.sort(key=itemgetter(0))
        for received_ns, name, data in came:
            self._hear(name, received_ns, data)

    def close(self) -> None:
        """End all subscriptions."""
        self._ears.destroy_node()

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
            self.take()  # what has come stays heard
            self._ears.destroy_subscription(known[1])
        profile = QoSProfile(
            history=HistoryPolicy.KEEP_LAST,
            depth=CAMERA_DEPTH if self._topics[name].is_camera else OTHER_DEPTH,
            reliability=ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT,
            durability=DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE,
        )
        subscription = self._ears.create_subscription(self._classes[name], name, _never_called, profile, raw=True)
        self._subscriptions[name] = ((reliable, latched), subscription)

    def _arrival_ns(self, middleware_ns: int) -> int:
        """When a message came, by the node's clock.

        The middleware notes it, to the microsecond, but by the system's clock; some middlewares do not (0).
        """
        clock = self._node.get_clock()
        if middleware_ns > 0 and not clock.ros_time_is_active:
            return middleware_ns
        return int(clock.now().nanoseconds)


def _never_called(_data: bytes) -> None:
    """A subscription must have a callback; `RecorderTopics.take` takes its messages."""


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
