"""``~/debug/<camera>``: the frames as the network sees them, made only while somebody looks."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rclpy.lifecycle import LifecycleNode
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import Image

from groot_ros.nodes.command_messages import image_message
from groot_ros.nodes.quiet import QUIET

SHORTEST_PERIOD_S = 0.2


class DebugImages:
    """Publishers of what the network is shown.

    Args:
        node: The node.
        cameras: Camera keys.

    """

    def __init__(self, node: LifecycleNode, cameras: Iterable[str]) -> None:
        self._node = node
        self._publishers: dict[str, Any] = {
            camera: node.create_lifecycle_publisher(
                Image, f"~/debug/{camera}", qos_profile_sensor_data, event_callbacks=QUIET
            )
            for camera in cameras
        }
        self._last = 0.0

    def are_wanted(self) -> bool:
        """Whether somebody looks and the last ones are not fresh any more."""
        if time.monotonic() - self._last < SHORTEST_PERIOD_S:
            return False
        return any(publisher.get_subscription_count() for publisher in self._publishers.values())

    def publish(self, frames: Mapping[str, NDArray[np.uint8]], stamp_ns: int) -> None:
        """Publish the frames ``(T, H, W, 3)`` of each camera side by side."""
        self._last = time.monotonic()
        for camera, pictures in frames.items():
            self._publishers[camera].publish(image_message(pictures, stamp_ns, camera))

    def destroy(self) -> None:
        """Close the publishers."""
        for publisher in self._publishers.values():
            self._node.destroy_lifecycle_publisher(publisher)
        self._publishers.clear()
