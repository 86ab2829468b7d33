"""When the node may move a robot, what it then sends, and that stopping means a hold that is sent."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import yaml

pytest.importorskip("rclpy")
pytestmark = pytest.mark.dds

from rclpy.parameter import Parameter  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from std_msgs.msg import Header, String  # noqa: E402
from support.golden import TINY_SINGLE  # noqa: E402
from support.policy_arm import CONTRACT, NAMES, POSITIONS, Arm  # noqa: E402
from support.policy_node import RELIABLE, SUCCESS, RunningPolicy, joints, values_of  # noqa: E402
from support.ros import ROOT, Listener, isolate, own_domain  # noqa: E402
from trajectory_msgs.msg import JointTrajectory  # noqa: E402

from groot_ros.demo.trajectory_rules import JointTrajectoryRules  # noqa: E402

TOPIC = "arm_controller/joint_trajectory"
MOVING = {
    **CONTRACT,
    "actions": {"single_arm": {"meaning": "position"}, "gripper": {"meaning": "position"}},
    "outputs": {"arm": {"type": "joint_trajectory", "topic": TOPIC, "from": {"single_arm": "all", "gripper": "all"}}},
    "motion": {"hold_s": 1.0, "start_ramp_s": 1.0, "strategy": "replace"},
}


class DrivenArm(Arm):
    """Hears the trajectories too, and checks each against the rules of joint_trajectory_controller."""

    def __init__(self, listener: Listener) -> None:
        self.rejections: list[str] = []
        self.trajectories: list[JointTrajectory] = []
        rules = JointTrajectoryRules(tuple(NAMES))
        listener.node.create_subscription(JointTrajectory, TOPIC, lambda message: self._receive(rules, message), 10)
        super().__init__(listener)
        self.heartbeats = listener.listen(Header, f"{self.namespace}/heartbeat", RELIABLE)

    def _receive(self, rules: JointTrajectoryRules, message: JointTrajectory) -> None:
        self.trajectories.append(message)
        rejection = rules.check(message, self.now_ns())
        if rejection is not None:
            self.rejections.append(rejection.sentence)

    def wait_for_motion(self) -> None:
        """Wait until trajectories flow, which takes two at least."""
        self.trajectories.clear()
        self.listener.wait_for(lambda: self.feed() or len(self.trajectories) >= 2, "trajectories")

    def is_hold(self, message: JointTrajectory) -> bool:
        """Whether a message is the hold: a single point at rest."""
        return len(message.points) == 1 and not any(message.points[0].velocities)

    def wait_for_hold(self) -> None:
        """Wait for the hold, and see that nothing follows it though the robot goes on."""
        self.listener.wait_for(
            lambda: self.trajectories and self.is_hold(self.trajectories[-1]), "hold as the last command", 3.0
        )
        count = len(self.trajectories)
        end = time.monotonic() + 0.4
        while time.monotonic() < end:
            self.feed()
            self.listener.spin(0.0)
        assert len(self.trajectories) == count
        assert self.rejections == []


@pytest.fixture(scope="module", autouse=True)
def _own_domain(tmp_path_factory):
    isolate(own_domain(), tmp_path_factory.mktemp("ros_log"))


@pytest.fixture(scope="module")
def policy_of_all(tmp_path_factory):
    running = RunningPolicy(MOVING, tmp_path_factory.mktemp("contract"), dry_run=False, keep_warm_period_s=0.0)
    running.activate()
    yield running
    running.close()


@pytest.fixture(scope="module")
def arm_of_all(policy_of_all):
    listener = Listener("test_arm")
    arm = DrivenArm(listener)
    arm.listener.wait_for(lambda: listener.node.count_publishers(TOPIC), "publisher of trajectories")
    yield arm
    listener.close()


@pytest.fixture
def policy(policy_of_all):
    """The node, active again whatever an earlier test did to it."""
    yield policy_of_all
    policy_of_all.do(lambda: policy_of_all.node.enable(on=False))


@pytest.fixture
def arm(arm_of_all):
    arm_of_all.reset()
    arm_of_all.trajectories.clear()
    arm_of_all.rejections.clear()
    arm_of_all.heartbeats.clear()
    return arm_of_all


def enabled(arm: DrivenArm) -> DrivenArm:
    arm.wait_for_message("observation", "observations are complete", arm.feed)
    answer = arm.enable(on=True)
    assert answer.success, answer.message
    arm.wait_for_motion()
    return arm


def test_nothing_moves_until_motion_is_enabled(policy, arm):
    arm.wait_for_message("motion", "motion is disabled", arm.feed)
    for _ in range(20):
        arm.feed()
        arm.listener.spin(0.0)
    assert arm.trajectories == []
    assert arm.heartbeats == []


def test_what_is_sent_is_what_joint_trajectory_controller_takes(policy, arm):
    enabled(arm)
    arm.listener.wait_for(lambda: arm.feed() or len(arm.trajectories) >= 5, "trajectories")
    assert arm.rejections == []
    assert all(message.joint_names == NAMES for message in arm.trajectories)
    first = arm.trajectories[0].points[0]
    # The start ramp: however far the policy's first row is, the first command is near the measured pose.
    np.testing.assert_allclose(first.positions, POSITIONS, atol=0.3)


def test_disabling_sends_a_hold_and_nothing_after_it(policy, arm):
    enabled(arm)
    answer = arm.enable(on=False)
    assert answer.success
    assert answer.message == "motion is disabled, a hold was sent"
    arm.wait_for_hold()
    assert arm.enable(on=False).message == "motion was disabled already"


def test_deactivating_sends_a_hold_and_motion_stays_off_when_active_again(policy, arm):
    enabled(arm)
    assert policy.do(policy.node.trigger_deactivate) == SUCCESS
    arm.wait_for_hold()
    answer = arm.enable(on=True)
    assert not answer.success
    assert answer.message == "the node is not active; activate it first"
    assert policy.do(policy.node.trigger_activate) == SUCCESS
    arm.trajectories.clear()
    arm.wait_for_message("motion", "motion is disabled", arm.feed)
    assert arm.trajectories == []


def test_the_heartbeat_beats_only_while_enabled(policy, arm):
    enabled(arm)
    arm.listener.wait_for(lambda: arm.feed() or len(arm.heartbeats) >= 5, "heartbeats")
    seconds = [beat.stamp.sec + beat.stamp.nanosec / 1e9 for beat in arm.heartbeats]
    assert np.median(np.diff(seconds)) == pytest.approx(0.1, abs=0.03)
    arm.enable(on=False)
    arm.listener.spin(0.3)
    arm.heartbeats.clear()
    arm.listener.spin(0.4)
    assert arm.heartbeats == []


def test_a_robot_that_is_blind_is_held_and_the_diagnostics_are_stale(policy, arm):
    enabled(arm)
    status = arm.wait_for_message("motion", "held: no fresh observation", lambda: arm.feed(front=False))
    assert status.level == b"\x03"
    arm.listener.wait_for(lambda: arm.is_hold(arm.trajectories[-1]), "hold")
    assert values_of(status)["holding"] == "no_observation"
    arm.wait_for_motion()  # and it goes on by itself when it sees again


def test_a_new_instruction_makes_the_inference_in_flight_worthless(policy, arm):
    session = policy.node.session
    generation = session._predictions.generation
    arm.publish_latched("/groot_policy/instruction", String(data="wave to the crowd"))
    arm.listener.wait_for(lambda: session.instruction == "wave to the crowd", "instruction")
    assert session._predictions.generation == generation + 1


def test_a_reset_while_moving_holds_and_then_plans_anew(policy, arm):
    enabled(arm)
    arm.reset()
    arm.listener.wait_for(lambda: any(arm.is_hold(message) for message in arm.trajectories), "hold after the reset")
    arm.wait_for_motion()
    assert arm.rejections == []


def test_a_dead_model_thread_sends_a_hold_ends_the_heartbeat_and_is_said(policy, arm):
    enabled(arm)
    working = policy.node.session.policy.network.encode

    def broken(**_inputs):
        msg = "CUDA error: an illegal memory access was encountered"
        raise RuntimeError(msg)

    policy.node.session.policy.network.encode = broken
    try:
        status = arm.wait_for_message("node", "the model's thread has ended (RuntimeError: CUDA error", arm.feed)
        assert status.level == b"\x02"
        arm.wait_for_hold()
        arm.heartbeats.clear()
        arm.listener.spin(0.3)
        assert arm.heartbeats == []
        answer = arm.enable(on=True)
        assert not answer.success
        assert "clean up and configure again" in answer.message
    finally:
        policy.node.session.policy.network.encode = working
    for transition in ("deactivate", "cleanup", "configure", "activate"):
        assert policy.do(getattr(policy.node, f"trigger_{transition}")) == SUCCESS, transition
    arm.wait_until_heard("front/image_raw", "wrist/image_raw", "joint_states")
    arm.listener.wait_for(lambda: arm.listener.node.count_publishers(TOPIC), "publisher of trajectories")
    enabled(arm)


def test_parameters_that_configuring_reads_cannot_change_under_a_running_policy(policy, arm):
    result = policy.do(lambda: policy.node.set_parameters([Parameter("checkpoint", value="/elsewhere")]))[0]
    assert not result.successful
    assert result.reason == ("parameter checkpoint is read when the node is configured: deactivate and clean up first")
    assert policy.do(lambda: policy.node.set_parameters([Parameter("seed", value=3)]))[0].successful
    assert not policy.do(lambda: policy.node.set_parameters([Parameter("seed", value=-2)]))[0].successful
    assert not policy.do(lambda: policy.node.set_parameters([Parameter("dry_run", value=True)]))[0].successful
    assert policy.do(lambda: policy.node.set_parameters([Parameter("seed", value=-1)]))[0].successful


def test_a_robot_that_cannot_belong_to_the_policy_is_not_enabled(policy, arm, monkeypatch):
    monkeypatch.setattr(
        arm, "state", lambda stamp_ns: joints(NAMES, [value * 57.29578 * 20 for value in POSITIONS], stamp_ns)
    )
    arm.wait_for_message("observation", "observations are complete", arm.feed)
    answer = arm.enable(on=True)
    assert not answer.success
    assert "the measured state and the checkpoint's statistics cannot belong together" in answer.message
    assert "trained on" in answer.message


def test_a_state_that_leaves_the_trained_range_is_said_and_one_that_cannot_be_a_state_ends_the_motion(
    policy, arm, monkeypatch
):
    enabled(arm)
    statistics = policy.node.session.policy.embodiment.statistics.state["single_arm"]
    unusual = [*POSITIONS]
    unusual[0] = float(statistics.max[0] + 0.5 * (statistics.max[0] - statistics.min[0]))
    monkeypatch.setattr(arm, "state", lambda stamp_ns: joints(NAMES, unusual, stamp_ns))
    arm.wait_for_message("node", "state single_arm/pan is", arm.feed)
    assert policy.node.session.is_enabled
    impossible = [*POSITIONS]
    impossible[0] = float(statistics.max[0] + 10.0 * (statistics.max[0] - statistics.min[0]))
    monkeypatch.setattr(arm, "state", lambda stamp_ns: joints(NAMES, impossible, stamp_ns))
    arm.wait_for_message("motion", "motion is disabled", arm.feed)
    arm.wait_for_hold()
    assert not arm.enable(on=True).success


def test_the_robot_is_held_while_two_publish_its_joint_states(policy, arm):
    enabled(arm)
    other = Listener("second_robot")
    try:
        publisher = other.node.create_publisher(JointState, "joint_states", RELIABLE)
        arm.wait_for_message("motion", "held: no fresh observation", arm.feed)
        assert "2 publishers on joint_states" in arm.part("observation").message
        other.node.destroy_publisher(publisher)
    finally:
        other.close()
    arm.wait_for_motion()


def test_nobody_who_listens_to_the_heartbeat_is_said_while_motion_is_enabled(policy, arm):
    enabled(arm)
    session = policy.node.session
    assert not any("listens to /groot_policy/heartbeat" in warning for warning in session._surroundings.warnings)
    count, policy.node.count_subscribers = policy.node.count_subscribers, lambda _topic: 0
    try:
        arm.wait_for_message(
            "node",
            "nobody listens to /groot_policy/heartbeat: nothing holds the robot if this process dies; start",
            arm.feed,
        )
    finally:
        policy.node.count_subscribers = count


def test_sigterm_sends_a_hold_and_the_process_ends_by_itself(tmp_path, arm_of_all, policy):
    arm_of_all.reset()
    (tmp_path / "contract.yaml").write_text(yaml.safe_dump(MOVING))
    settings = {
        "checkpoint": TINY_SINGLE,
        "contract": tmp_path / "contract.yaml",
        "device": "cpu",
        "autostart": "true",
        "dry_run": "false",
        "auto_enable": "true",
        "keep_warm_period_s": "0.0",
    }
    command = [sys.executable, "-m", "groot_ros", "policy", "--ros-args", "-r", "__ns:=/other"]
    command += [word for name, value in settings.items() for word in ("-p", f"{name}:={value}")]
    listener = Listener("other_arm", namespace="/other")
    process = subprocess.Popen(command, cwd=ROOT)
    try:
        arm = DrivenArm(listener)
        arm.listener.wait_for(lambda: arm.feed() or len(arm.trajectories) >= 2, "trajectories", 60.0)
        process.send_signal(signal.SIGTERM)
        arm.listener.wait_for(lambda: arm.feed() or arm.is_hold(arm.trajectories[-1]), "hold as the last command", 3.0)
        assert process.wait(20.0) == 0
        arm.wait_for_hold()
    finally:
        process.kill()
        listener.close()
