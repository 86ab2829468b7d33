"""When a message was made, in nanoseconds."""

from __future__ import annotations

from typing import Any

NANOSECONDS_PER_SECOND = 1_000_000_000


def header_stamp_ns(message: Any) -> int | None:  # noqa: ANN401 - any ROS message
    """The stamp of the message's header, nanoseconds; None where the type has no header.

    A header whose stamp was never set gives 0, which the alignment refuses by name.
    """
    header = getattr(message, "header", None)
    if header is None:
        return None
    return stamp_ns(header.stamp)


def stamp_ns(stamp: Any) -> int:  # noqa: ANN401 - builtin_interfaces/Time of rclpy or rosbags
    """A builtin_interfaces/Time as nanoseconds."""
    return int(stamp.sec) * NANOSECONDS_PER_SECOND + int(stamp.nanosec)
