"""The pose of one frame in another from /tf messages: a small tree of transforms, for one pair of frames."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groot_ros.errors import MessageError
from groot_ros.messages.poses import read_transform
from groot_ros.messages.stamps import stamp_ns
from groot_ros.numerics.rotations import slerp_quaternion

Pose = NDArray[np.float64]
KEPT = 1000
JUMP_NS = 1_000_000_000
"""A transform older than the newest by more than this says that the clock went back; any other is merely late."""


class TransformTracker:
    """Follows a child frame in its parent frame and gives a sample whenever every link between them has moved on.

    Args:
        parent: The frame in which the pose is wanted.
        child: The frame whose pose it is.

    """

    def __init__(self, parent: str, child: str) -> None:
        self.parent = parent.lstrip("/")
        self.child = child.lstrip("/")
        self._links: dict[str, _Link] = {}
        self._given_ns = 0

    def add(self, message: Any, where: str, *, static: bool = False) -> list[tuple[int, Pose]]:  # noqa: ANN401
        """Take a tf2_msgs/TFMessage.

        Args:
            message: The message.
            where: Its topic, for errors.
            static: Whether it came from /tf_static, so that its transforms hold at all times.

        Returns:
            New samples: stamp in nanoseconds and pose of the child in the parent, float64 ``(7,)``. There are none
            while a link is missing, and none for a chain in which nothing moves.

        Raises:
            MessageError: A transform that is not finite, or whose frames are linked in a circle.

        """
        for transform in message.transforms:
            child = transform.child_frame_id.lstrip("/")
            parent = transform.header.frame_id.lstrip("/")
            link = self._links.get(child)
            if link is None or link.parent != parent or link.static != static:
                link = self._links[child] = _Link(parent, static=static)
            at_ns, pose = stamp_ns(transform.header.stamp), read_transform(transform.transform, f"{where}: {child}")
            if not static and link.stamps and at_ns < link.stamps[-1] - JUMP_NS:
                self._forget_moving()
            link.add(at_ns, pose)
        newest_ns = self._newest_common_ns(where)
        if newest_ns is None or newest_ns <= self._given_ns:
            return []
        pose = self.lookup(newest_ns, where)
        self._given_ns = newest_ns
        return [(newest_ns, pose)]

    def _forget_moving(self) -> None:
        """The clock went back: a simulation was reset, or a bag plays from its start."""
        for link in self._links.values():
            if not link.static:
                link.stamps, link.poses = [], []
        self._given_ns = 0

    def lookup(self, at_ns: int, where: str) -> Pose:
        """The pose of the child in the parent at a time, interpolated link by link.

        Raises:
            MessageError: The frames are not linked, or a link has no transform at this time.

        """
        up_child, up_parent = self._way(self.child, where), self._way(self.parent, where)
        common = next((frame for frame in up_child if frame in up_parent), None)
        if common is None:
            msg = f"{where}: no transforms link {self.child} to {self.parent}; known frames: {', '.join(self._links)}"
            raise MessageError(msg)
        to_child = self._down(up_child[: up_child.index(common)], at_ns, where)
        to_parent = self._down(up_parent[: up_parent.index(common)], at_ns, where)
        pose = _compose(_inverse(to_parent), to_child)
        pose[3:] /= np.linalg.norm(pose[3:])  # rounding adds up along a chain
        return pose

    def _way(self, frame: str, where: str) -> list[str]:
        """The frames from this one up to its root."""
        way = [frame]
        while way[-1] in self._links:
            parent = self._links[way[-1]].parent
            if parent in way:
                msg = f"{where}: the frames {', '.join(way)} are linked in a circle"
                raise MessageError(msg)
            way.append(parent)
        return way

    def _down(self, frames: list[str], at_ns: int, where: str) -> Pose:
        pose = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
        for frame in frames:  # from the lowest link upwards
            pose = _compose(self._links[frame].at(at_ns, f"{where}: {frame}"), pose)
        return pose

    def _newest_common_ns(self, where: str) -> int | None:
        """The newest time at which every moving link between the two frames is known."""
        up_child, up_parent = self._way(self.child, where), self._way(self.parent, where)
        common = next((frame for frame in up_child if frame in up_parent), None)
        if common is None:
            return None
        frames = up_child[: up_child.index(common)] + up_parent[: up_parent.index(common)]
        moving = [self._links[frame].stamps for frame in frames if not self._links[frame].static]
        return min(stamps[-1] for stamps in moving) if moving and all(moving) else None


class _Link:
    """A frame in its parent, over time."""

    def __init__(self, parent: str, *, static: bool) -> None:
        self.parent = parent
        self.static = static
        self.stamps: list[int] = []
        self.poses: list[Pose] = []

    def add(self, at_ns: int, pose: Pose) -> None:
        if self.static:
            self.stamps, self.poses = [at_ns], [pose]
            return
        if self.stamps and at_ns <= self.stamps[-1]:
            return  # several nodes repeat a transform, as tf2 allows
        self.stamps.append(at_ns)
        self.poses.append(pose)
        if len(self.stamps) > 2 * KEPT:
            del self.stamps[:-KEPT], self.poses[:-KEPT]

    def at(self, at_ns: int, where: str) -> Pose:
        if self.static:
            return self.poses[0]
        if not self.stamps:
            msg = f"{where} in {self.parent} has no transform since the clock went back"
            raise MessageError(msg)
        if not self.stamps[0] <= at_ns <= self.stamps[-1]:
            msg = f"{where} in {self.parent} is known from {self.stamps[0]} to {self.stamps[-1]} ns, not at {at_ns} ns"
            raise MessageError(msg)
        after = bisect_right(self.stamps, at_ns)
        if self.stamps[after - 1] == at_ns:
            return self.poses[after - 1]
        span = self.stamps[after] - self.stamps[after - 1]
        return interpolate_pose(self.poses[after - 1], self.poses[after], (at_ns - self.stamps[after - 1]) / span)


def interpolate_pose(start: Pose, end: Pose, fraction: float) -> Pose:
    """The pose at ``fraction`` of the way: a straight line for the position, the shortest turn for the orientation."""
    position = start[:3] + fraction * (end[:3] - start[:3])
    return np.concatenate([position, slerp_quaternion(start[3:], end[3:], np.float64(fraction))])


# A chain of a few links comes a hundred times a second: here plain floats are many times faster than arrays.


def _compose(outer: Pose, inner: Pose) -> Pose:
    """The pose ``inner``, given in the frame ``outer``, in the frame in which ``outer`` is given."""
    x, y, z, qx, qy, qz, qw = outer.tolist()
    ix, iy, iz, rx, ry, rz, rw = inner.tolist()
    turned_x, turned_y, turned_z = _turn((qx, qy, qz, qw), (ix, iy, iz))
    return np.array(
        [
            x + turned_x,
            y + turned_y,
            z + turned_z,
            qw * rx + qx * rw + qy * rz - qz * ry,
            qw * ry - qx * rz + qy * rw + qz * rx,
            qw * rz + qx * ry - qy * rx + qz * rw,
            qw * rw - qx * rx - qy * ry - qz * rz,
        ]
    )


def _inverse(pose: Pose) -> Pose:
    x, y, z, qx, qy, qz, qw = pose.tolist()
    back_x, back_y, back_z = _turn((-qx, -qy, -qz, qw), (x, y, z))
    return np.array([-back_x, -back_y, -back_z, -qx, -qy, -qz, qw])


def _turn(quaternion: Sequence[float], vector: Sequence[float]) -> tuple[float, float, float]:
    """A vector turned by a unit quaternion: v + 2 w (q x v) + 2 q x (q x v)."""
    qx, qy, qz, qw = quaternion
    x, y, z = vector
    cx, cy, cz = 2 * (qy * z - qz * y), 2 * (qz * x - qx * z), 2 * (qx * y - qy * x)
    return (
        x + qw * cx + qy * cz - qz * cy,
        y + qw * cy + qz * cx - qx * cz,
        z + qw * cz + qx * cy - qy * cx,
    )
