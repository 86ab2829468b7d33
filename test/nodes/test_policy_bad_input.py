"""What a robot can do wrong, one test each: there is no observation, and the diagnostics say why in a sentence."""

from __future__ import annotations

import shutil
import time
from array import array

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytestmark = pytest.mark.dds

from sensor_msgs.msg import Image, JointState  # noqa: E402
from support.golden import BACKBONE, TINY_SINGLE  # noqa: E402
from support.policy_node import RELIABLE, Robot, RunningPolicy, image, joints, values_of  # noqa: E402
from support.ros import Listener, isolate, own_domain  # noqa: E402
from trajectory_msgs.msg import JointTrajectory  # noqa: E402

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


class TestArm(Robot):
    """A robot that does everything right unless a test says otherwise."""

    __test__ = False

    def __init__(self, listener: Listener) -> None:
        super().__init__(listener)
        self.chunks = listener.listen(JointTrajectory, "/groot_policy/action_chunk", RELIABLE)
        for topic, kind in (("front/image_raw", Image), ("wrist/image_raw", Image), ("joint_states", JointState)):
            self.publisher(topic, kind)
        self.wait_until_heard("front/image_raw", "wrist/image_raw", "joint_states")
        listener.wait_for(lambda: listener.node.count_publishers("/groot_policy/action_chunk"), "~/action_chunk")
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


@pytest.fixture(scope="module", autouse=True)
def _own_domain(tmp_path_factory):
    isolate(own_domain(), tmp_path_factory.mktemp("ros_log"))


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    running = RunningPolicy(CONTRACT, tmp_path_factory.mktemp("contract"), seed=1)
    running.activate()
    yield running
    running.close()


@pytest.fixture(scope="module")
def arm_of_all(policy):
    listener = Listener("test_arm")
    yield TestArm(listener)
    listener.close()


@pytest.fixture
def arm(arm_of_all):
    """The robot, after a reset: what an earlier test said is forgotten."""
    arm_of_all.reset()
    return arm_of_all


def test_a_robot_that_does_everything_right_gets_chunks(arm):
    chunk = arm.wait_for_chunk()
    assert chunk.joint_names == [f"single_arm/{name}" for name in NAMES[:5]] + ["gripper/finger"]
    assert len(chunk.points) == 16
    arm.wait_for_message("observation", "observations are complete", arm.feed)


def test_a_missing_camera(arm):
    values = arm.observation_fault(
        "video.wrist: no message has come yet on wrist/image_raw", lambda: arm.feed(wrist=False)
    )
    assert values["not_ready"] == "missing"


def test_cameras_whose_processed_sizes_differ(arm):
    def feed():
        arm.feed(wrist=image(arm.picture(80, 80), 0))

    status = arm.wait_for_message("inference", "the frames end at different sizes", feed)
    assert "wrist 80x80 becomes" in status.message
    assert "one aspect ratio" in status.message


def test_an_encoding_that_has_no_colours(arm):
    def feed():
        depth = Image(height=60, width=80, encoding="16UC1", step=160)
        depth.data = array("B", bytes(160 * 60))
        arm.feed(front=depth)

    arm.observation_fault("video.front on front/image_raw: found encoding '16UC1' (a depth image has no colours)", feed)


def test_an_image_of_no_size(arm):
    arm.observation_fault(
        "the image is 0x0, so it has no pixels; check the camera driver",
        lambda: arm.feed(front=Image(encoding="rgb8")),
    )


def test_a_step_that_is_smaller_than_a_row(arm):
    arm.observation_fault(
        "step is 239 bytes, but a row of 80 rgb8 pixels has 240",
        lambda: arm.feed(front=image(arm.picture(), 0, step=239)),
    )


def test_truncated_data(arm):
    arm.observation_fault(
        "the data is truncated: 100 bytes, wanted 60 rows of 240 = 14400",
        lambda: arm.feed(front=image(arm.picture(), 0, data=array("B", bytes(100)))),
    )


def feed_states(arm: TestArm, make_state) -> None:
    arm.feed(states=False)
    arm.publish("joint_states", make_state(arm.now_ns()))


def test_a_missing_joint(arm):
    arm.observation_fault(
        "state.gripper on joint_states: the message has no joint finger; it has pan, lift, elbow, flex, roll",
        lambda: feed_states(arm, lambda stamp_ns: joints(NAMES[:5], POSITIONS[:5], stamp_ns)),
    )


def test_a_joint_that_stands_twice(arm):
    arm.observation_fault(
        "the joint name pan stands twice in one message, so its value is unknown",
        lambda: feed_states(arm, lambda stamp_ns: joints([*NAMES, "pan"], [*POSITIONS, 0.0], stamp_ns)),
    )


def test_permuted_joints_give_the_same_chunk(arm, monkeypatch):
    rows = [point.positions for point in arm.wait_for_chunk().points]
    arm.reset()
    order = [5, 2, 0, 4, 1, 3]
    monkeypatch.setattr(
        arm, "state", lambda stamp_ns: joints([NAMES[i] for i in order], [POSITIONS[i] for i in order], stamp_ns)
    )
    permuted = [point.positions for point in arm.wait_for_chunk().points]
    np.testing.assert_allclose(permuted, rows, atol=1e-9)


def test_nan_in_the_state(arm):
    arm.observation_fault(
        "lift",
        lambda: feed_states(arm, lambda stamp_ns: joints(NAMES, [0.1, float("nan"), *POSITIONS[2:]], stamp_ns)),
    )
    assert "nan" in arm.part("observation").message


def test_stamps_of_zero(arm):
    arm.observation_fault(
        "video.front: messages on front/image_raw have a stamp of zero; let the driver fill it in, or write "
        "stamp: receipt for this stream in alignment.streams",
        lambda: arm.feed(front=False) or arm.publish("front/image_raw", image(arm.picture(), 0)),
    )


def test_stamps_in_the_future(arm):
    values = arm.observation_fault(
        "s ahead of now, allowed are 0.020 s; synchronise the clocks of the machines",
        lambda: (
            arm.feed(front=False) or arm.publish("front/image_raw", image(arm.picture(), arm.now_ns() + 5 * SECOND))
        ),
    )
    assert values["not_ready"] == "future_stamp"


def test_stamps_that_go_back(arm):
    arm.wait_for_chunk()

    def feed():
        arm.feed()
        arm.publish("front/image_raw", image(arm.picture(), arm.now_ns() - SECOND // 10))

    arm.observation_fault("front/image_raw come with stamps that repeat or go back", feed)


def test_two_publishers_on_one_camera(arm):
    other = Listener("second_camera")
    try:
        publisher = other.node.create_publisher(Image, "front/image_raw", RELIABLE)
        status = arm.wait_for_message("observation", "2 publishers on front/image_raw", arm.feed)
        assert "/second_camera" in status.message
        assert "/test_arm" in status.message
        assert "stop all but one" in status.message
        other.node.destroy_publisher(publisher)
    finally:
        other.close()
    arm.wait_for_message("observation", "observations are complete", arm.feed)


@pytest.mark.parametrize("stream", ["front", "wrist", "states"])
def test_a_stream_that_stops_is_named_within_half_a_second(arm, stream):
    arm.wait_for_message("observation", "observations are complete", arm.feed)
    topic = "joint_states" if stream == "states" else f"{stream}/image_raw"
    stopped = time.monotonic()
    arm.wait_for_message("observation", f"the newest message on {topic} is ", lambda: arm.feed(**{stream: False}))
    assert time.monotonic() - stopped < 0.5
    assert arm.part("observation").level == b"\x03"  # STALE


def test_a_topic_that_lacks_a_picture_now_and_then_goes_on(arm):
    turns = iter(range(10_000))

    def feed():
        broken = next(turns) % 4 == 0
        arm.feed(front=image(arm.picture(), 0, step=1) if broken else True)

    arm.wait_for_chunk(feed)
    status = arm.wait_for_message("observation", "observations are complete", feed)
    assert int(values_of(status)["video.front.bad_messages"]) > 0


def test_an_unknown_key_in_the_contract_keeps_the_node_unconfigured(tmp_path):
    running = RunningPolicy({**CONTRACT, "camera": {}}, tmp_path)
    try:
        assert running.do(running.node.trigger_configure).name == "FAILURE"
        assert "camera" in running.node._fault
        assert "cameras" in running.node._fault  # what is allowed
        done, sentence = running.do(lambda: running.node.enable(on=True))
        assert not done
        assert sentence == running.node._fault
    finally:
        running.close()


def test_a_checkpoint_that_is_removed_while_running_is_said_and_the_policy_goes_on(tmp_path):
    checkpoint = tmp_path / "checkpoint"
    shutil.copytree(TINY_SINGLE, checkpoint)
    running = RunningPolicy(CONTRACT, tmp_path, checkpoint=str(checkpoint), backbone=str(BACKBONE))
    listener = Listener("test_arm")
    try:
        running.activate()
        arm = TestArm(listener)
        arm.wait_for_chunk()
        shutil.rmtree(checkpoint)
        arm.wait_for_message("node", f"{checkpoint} is gone; the policy goes on from memory", arm.feed)
        arm.wait_for_chunk()
    finally:
        running.close()
        listener.close()
