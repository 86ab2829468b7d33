"""The messages' own thread: what it is not delayed by, whose names and parameters count, and what its end means."""

from __future__ import annotations

import threading
import time

import pytest

pytest.importorskip("rclpy")
pytestmark = pytest.mark.dds

from rclpy.qos import QoSProfile, ReliabilityPolicy  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from support.policy_arm import CONTRACT, Arm  # noqa: E402
from support.policy_node import RunningPolicy  # noqa: E402
from support.ros import Listener, isolate, own_domain  # noqa: E402

from groot_ros.alignment.intake import IntakeTopic  # noqa: E402
from groot_ros.nodes import policy_loading  # noqa: E402
from groot_ros.nodes.quality import subscription_quality  # noqa: E402
from groot_ros.nodes.streams_thread import StreamsThread  # noqa: E402

TOPIC = "/joint_states"


@pytest.fixture(scope="module", autouse=True)
def _own_domain(tmp_path_factory):
    isolate(own_domain(), tmp_path_factory.mktemp("ros_log"))


@pytest.fixture
def run(tmp_path):
    running = []

    def start(**parameters) -> tuple[RunningPolicy, Arm]:
        policy = RunningPolicy(CONTRACT, tmp_path, **parameters)
        running.append(policy)
        policy.activate()
        listener = Listener("test_arm")
        running.append(listener)
        return policy, Arm(listener)

    yield start
    for each in running:
        each.close()


def test_messages_are_taken_while_the_node_is_busy_with_a_service(run):
    policy, arm = run()
    arm.wait_for_chunk()
    taken = {}

    def busy():
        before = dict(policy.node.session._ingest.counts)
        for _ in range(10):
            arm.feed()
        deadline = time.monotonic() + 10.0
        while (
            time.monotonic() < deadline
            and policy.node.session._ingest.counts["joint_states"] < before["joint_states"] + 20
        ):
            time.sleep(0.01)
        taken.update({topic: count - before[topic] for topic, count in policy.node.session._ingest.counts.items()})

    policy.do(busy)
    assert taken["joint_states"] >= 20


def test_no_message_changes_what_the_session_is_looking_at(run):
    policy, arm = run()
    arm.wait_for_chunk()
    session = policy.node.session
    with session._lock:
        before = dict(session._ingest.counts)
        for _ in range(5):
            arm.feed()
        assert session._ingest.counts == before
        assert session.progress()["messages"] == before, "whoever holds the lock may go on"
    arm.listener.wait_for(
        lambda: session._ingest.counts["joint_states"] >= before["joint_states"] + 10, "what came meanwhile"
    )


def test_the_quality_of_service_is_overridden_by_parameters_of_the_node_itself(run):
    policy, arm = run(
        **{
            f"qos_overrides.{TOPIC}.subscription.reliability": "best_effort",
            f"qos_overrides.{TOPIC}.subscription.depth": 7,
        }
    )

    def found():
        return [
            end
            for end in arm.listener.node.get_subscriptions_info_by_topic(TOPIC)
            if end.node_name == "groot_policy_streams"
        ]

    (end,) = arm.listener.wait_for(found, "the streams' node")
    assert end.qos_profile.reliability == ReliabilityPolicy.BEST_EFFORT
    assert policy.node.get_parameter(f"qos_overrides.{TOPIC}.subscription.depth").value == 7
    assert policy.node.get_parameter("qos_overrides./front/image_raw.subscription.reliability").value is None


def test_a_contract_s_changed_quality_of_service_counts_when_the_node_is_configured_again():
    listener = Listener("configured_twice")
    try:
        for reliability in ("best_effort", "reliable"):
            topic = IntakeTopic("image", "sensor_msgs/msg/Image", reliability, ("front",))
            found = subscription_quality(listener.node, topic, "/image").reliability
            assert found.name.lower() == reliability
    finally:
        listener.close()


def test_messages_that_wait_are_taken_in_one_turn_so_that_a_busy_machine_reads_no_old_ones():
    listener, heard, turns = Listener("streamed"), [], []
    first = threading.Event()

    def hear(message: JointState) -> None:
        heard.append(message.header.stamp.nanosec)
        first.wait(20.0)  # as on a machine that has no time

    streams = StreamsThread(listener.node)
    streams.subscribe(JointState, "/many", hear, QoSProfile(depth=100))
    spin_once = streams._executor.spin_once
    streams._executor.spin_once = lambda: (turns.append(len(heard)), spin_once())
    publisher = listener.node.create_publisher(JointState, "/many", QoSProfile(depth=100))
    streams.start()
    try:
        listener.wait_for(lambda: publisher.get_subscription_count() == 1, "the subscription")
        for number in range(60):
            message = JointState()
            message.header.stamp.nanosec = number
            publisher.publish(message)
        listener.wait_for(lambda: heard, "the first message")
        listener.spin(0.5)
        before = len(turns)
        first.set()
        listener.wait_for(lambda: len(heard) == 60, "all messages")
        assert heard == list(range(60))
        assert len(turns) - before <= 5
    finally:
        first.set()
        streams.stop()
        listener.close()


def test_a_quality_of_service_that_there_is_not_is_refused_with_the_allowed_ones(tmp_path):
    name = f"qos_overrides.{TOPIC}.subscription.reliability"
    policy = RunningPolicy(CONTRACT, tmp_path, **{name: "sometimes"})
    try:
        policy.do(policy.node.trigger_configure)
        assert policy.node._fault == f"parameter {name}: found 'sometimes', allowed are reliable, best_effort"
    finally:
        policy.close()


def test_the_end_of_the_messages_thread_is_said(run):
    policy, arm = run()
    arm.wait_for_chunk()

    def broken(*_arguments):
        msg = "no such thing"
        raise RuntimeError(msg)

    policy.node.session._ingest._intake.take = broken
    status = arm.wait_for_message("node", "the messages' thread has ended (RuntimeError: no such thing)", arm.feed)
    assert "clean up and configure again" in status.message


def test_a_policy_that_is_slower_than_its_chunks_is_refused_when_it_is_loaded(tmp_path, monkeypatch):
    monkeypatch.setattr(policy_loading, "warm_up", lambda _worker, _instruction, _robots: 5.0)
    policy = RunningPolicy(CONTRACT, tmp_path)
    try:
        policy.do(policy.node.trigger_configure)
        assert "the chunk has run out before it arrives: latency 5.00 s, chunk covers 1.60 s" in policy.node._fault
    finally:
        policy.close()


def test_a_node_that_is_configured_while_messages_come_takes_them_from_the_first_on(run):
    policy, arm = run()
    stop = threading.Event()

    def publish():
        while not stop.wait(0.001):
            arm.publish("joint_states", arm.state(arm.now_ns()))

    robot = threading.Thread(target=publish)
    robot.start()
    try:
        for _ in range(3):
            for transition in ("deactivate", "cleanup", "configure", "activate"):
                assert policy.do(getattr(policy.node, f"trigger_{transition}")).name == "SUCCESS"
            session = policy.node.session
            arm.listener.wait_for(lambda session=session: session._ingest.counts["joint_states"] > 10, "states")
            assert session._ingest.is_alive, session._ingest.death
    finally:
        stop.set()
        robot.join()
