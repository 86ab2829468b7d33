"""What a robot can do wrong, one test each: there is no observation, and the diagnostics say why in a sentence."""

from __future__ import annotations

import shutil
import time
from array import array

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytestmark = pytest.mark.dds

from diagnostic_msgs.msg import DiagnosticStatus  # noqa: E402
from rclpy.qos import qos_profile_sensor_data  # noqa: E402
from sensor_msgs.msg import Image, JointState  # noqa: E402
from support.golden import BACKBONE, TINY_SINGLE  # noqa: E402
from support.policy_arm import CONTRACT, NAMES, POSITIONS, SECOND, Arm  # noqa: E402
from support.policy_node import RELIABLE, RunningPolicy, image, joints, values_of  # noqa: E402
from support.ros import Listener, isolate, own_domain  # noqa: E402

from groot_ros.observation import Observation  # noqa: E402

ATTEMPTS = 3
"""A busy test machine may freeze for longer than what is measured."""


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
    yield Arm(listener)
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


def test_a_dry_run_cannot_be_enabled_and_says_how_to_leave_it(arm):
    answer = arm.enable(on=True)
    assert not answer.success
    assert answer.message == "this is a dry run, so nothing is sent to the robot; start the node with dry_run:=false"


def test_the_debug_images_are_the_frames_as_the_network_sees_them(policy, arm):
    pictures = arm.listener.listen(Image, "/groot_policy/debug/front", qos_profile_sensor_data)
    rows = np.arange(60, dtype=np.uint8)[:, None, None] * np.ones((1, 80, 3), np.uint8)
    arm.listener.wait_for(lambda: arm.feed(front=image(rows, 0)) or pictures, "debug image")
    shown = np.frombuffer(pictures[0].data, np.uint8).reshape(pictures[0].height, pictures[0].width, 3)
    processor = policy.node.session.policy.processor
    observation = Observation(
        images={"front": rows[None], "wrist": arm.picture()[None]}, state={}, instruction="", stamp_ns=0
    )
    np.testing.assert_array_equal(shown, processor.processed_frames(observation)["front"][0])


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


def feed_states(arm: Arm, make_state) -> None:
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


@pytest.mark.parametrize(
    ("topic", "kind", "words"),
    [
        ("front/image_raw", Image, ("video.front: 2 publishers on front/image_raw", "pictures of two cameras")),
        ("joint_states", JointState, ("state.single_arm: 2 publishers on joint_states", "states of two robots")),
    ],
)
def test_two_publishers_on_one_topic(arm, topic, kind, words):
    other = Listener("second_robot")
    try:
        publisher = other.node.create_publisher(kind, topic, RELIABLE)
        status = arm.wait_for_message("observation", "/second_robot", arm.feed)
        for word in (*words, "/test_arm", "would take turns; stop all but one"):
            assert word in status.message
        other.node.destroy_publisher(publisher)
    finally:
        other.close()
    arm.wait_for_message("observation", "observations are complete", arm.feed)


@pytest.mark.parametrize("stream", ["front", "wrist", "states"])
def test_a_stream_that_stops_is_named_within_half_a_second(arm, stream):
    topic = "joint_states" if stream == "states" else f"{stream}/image_raw"
    delays_s = []
    for _ in range(ATTEMPTS):
        arm.wait_for_message("observation", "observations are complete", arm.feed)
        stopped = time.monotonic()
        arm.wait_for_message("observation", f"the newest message on {topic} is ", lambda: arm.feed(**{stream: False}))
        delays_s.append(time.monotonic() - stopped)
        assert arm.part("observation").level == DiagnosticStatus.STALE
        if delays_s[-1] < 0.5:
            break
    assert min(delays_s) < 0.5


def test_a_topic_that_lacks_a_picture_now_and_then_goes_on(arm):
    turns = iter(range(10_000))

    def feed():
        broken = next(turns) % 4 == 0
        arm.feed(front=image(arm.picture(), 0, step=1) if broken else True)

    arm.wait_for_chunk(feed)
    status = arm.wait_for_message("observation", "observations are complete", feed)
    assert int(values_of(status)["video.front.bad_messages"]) > 0


def test_an_unknown_key_in_the_contract_keeps_the_node_unconfigured(tmp_path):
    running = RunningPolicy({**CONTRACT, "camera": {}}, tmp_path, namespace="/second")
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
    running = RunningPolicy(CONTRACT, tmp_path, namespace="/second", checkpoint=str(checkpoint), backbone=str(BACKBONE))
    listener = Listener("test_arm", namespace="/second")
    try:
        running.activate()
        arm = Arm(listener)
        arm.wait_for_chunk()
        shutil.rmtree(checkpoint)
        arm.wait_for_message("node", f"{checkpoint} is gone; the policy goes on from memory", arm.feed)
        arm.wait_for_chunk()
    finally:
        running.close()
        listener.close()
