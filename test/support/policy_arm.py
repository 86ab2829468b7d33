"""An arm with two cameras for the tests of the policy node: its contract, and its life period by period."""

from __future__ import annotations

import time

import numpy as np
from sensor_msgs.msg import Image, JointState
from trajectory_msgs.msg import JointTrajectory

from support.policy_node import RELIABLE, Robot, image, joints, values_of
from support.ros import Listener

NAMES = ["pan", "lift", "elbow", "flex", "roll", "finger"]
POSITIONS = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
CONTRACT = {
    "contract_version": 1,
    "robot": "test_arm",
    "embodiment_tag": "new_embodiment",
    "rate_hz": 10,
    "instruction": "put the cube in the bowl",
    "cameras": {
        "front": {"topic": "front/image_raw", "qos": "reliable"},
        "wrist": {"topic": "wrist/image_raw", "qos": "reliable"},
    },
    "state": {
        "single_arm": {"topic": "joint_states", "joints": NAMES[:5], "qos": "reliable"},
        "gripper": {"topic": "joint_states", "joints": NAMES[5:], "qos": "reliable"},
    },
    "actions": {"single_arm": {"meaning": "unused"}, "gripper": {"meaning": "unused"}},
    "limits": "none",
}
SECOND = 1_000_000_000


class Arm(Robot):
    """A robot that does everything right unless a test says otherwise."""

    def __init__(self, listener: Listener) -> None:
        super().__init__(listener)
        self.chunks = listener.listen(JointTrajectory, f"{self.namespace}/action_chunk", RELIABLE)
        for topic, kind in (("front/image_raw", Image), ("wrist/image_raw", Image), ("joint_states", JointState)):
            self.publisher(topic, kind)
        self.wait_until_heard("front/image_raw", "wrist/image_raw", "joint_states")
        listener.wait_for(lambda: listener.node.count_publishers(f"{self.namespace}/action_chunk"), "~/action_chunk")
        self._last_ns = 0

    def picture(self, height: int = 60, width: int = 80) -> np.ndarray:
        return np.full((height, width, 3), 90, np.uint8)

    def feed(self, *, front=True, wrist=True, states=True, age_ns: int = 0) -> None:
        """One period of the robot's life: a frame of each camera, and a state sample before and after them."""
        stamp_ns = max(self.now_ns() - age_ns, self._last_ns + 1)
        self._last_ns = stamp_ns
        if states:
            self.publish("joint_states", self.state(stamp_ns))
        for camera, what in (("front", front), ("wrist", wrist)):
            if what is True:
                self.publish(f"{camera}/image_raw", image(self.picture(), stamp_ns))
            elif isinstance(what, Image):
                what.header.stamp = image(self.picture(1, 1), stamp_ns).header.stamp
                self.publish(f"{camera}/image_raw", what)
        if states:
            self._last_ns = stamp_ns + 1
            self.publish("joint_states", self.state(stamp_ns + 1))
        time.sleep(0.02)

    def state(self, stamp_ns: int) -> JointState:
        return joints(NAMES, POSITIONS, stamp_ns)

    def observation_fault(self, text: str, feed) -> dict[str, str]:
        status = self.wait_for_message("observation", text, feed)
        assert status.level != b"\x00"
        return values_of(status)

    def wait_for_chunk(self, feed=None) -> JointTrajectory:
        self.chunks.clear()

        def arrived():
            (feed or self.feed)()
            return self.chunks

        return self.listener.wait_for(arrived, "chunk")[0]
