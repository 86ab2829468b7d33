"""The watchdog: silent while the policy's heart beats, and one hold for everything when it stops."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import yaml

pytest.importorskip("rclpy")
pytestmark = pytest.mark.dds

import rclpy  # noqa: E402
from geometry_msgs.msg import PoseStamped, TwistStamped  # noqa: E402
from rclpy.context import Context  # noqa: E402
from rclpy.executors import SingleThreadedExecutor  # noqa: E402
from rclpy.parameter import Parameter  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from std_msgs.msg import Float64, Float64MultiArray, Header  # noqa: E402
from support.policy_node import Robot, joints, numbers  # noqa: E402
from support.ros import (  # noqa: E402
    ROOT,
    Listener,
    isolate,
    own_domain,
)
from support.trajectories import SECOND  # noqa: E402
from trajectory_msgs.msg import JointTrajectory  # noqa: E402

from groot_ros.execution.commands import PoseCommand, TrajectoryCommand, TwistCommand  # noqa: E402
from groot_ros.nodes.command_messages import pose_message, trajectory_message, twist_message  # noqa: E402
from groot_ros.nodes.watchdog import Watchdog  # noqa: E402

NAMES = ("shoulder", "elbow")
CONTRACT = {
    "contract_version": 1,
    "robot": "everything",
    "embodiment_tag": "new_embodiment",
    "rate_hz": 30,
    "cameras": {"front": {"topic": "image"}},
    "state": {
        "arm": {"topic": "joint_states", "joints": list(NAMES), "policy_unit": "deg"},
        "finger": {"topic": "joint_states", "joints": ["finger"]},
        "hand": {"topic": "hand_pose"},
        "left_hand": {"topic": "left_hand_pose"},
    },
    "actions": {
        "arm": {"meaning": "position"},
        "finger": {"meaning": "position"},
        "hand": {"meaning": "pose"},
        "left_hand": {"meaning": "pose"},
        "head": {"meaning": "position", "names": ["pan", "tilt"]},
        "wheels": {"meaning": "velocity", "names": ["left", "right"]},
    },
    "outputs": {
        "arm": {"type": "joint_trajectory", "topic": "trajectory", "from": {"arm": "all"}},
        "array": {"type": "position_command", "topic": "array", "from": {"head": "all"}, "names": ["pan", "tilt"]},
        "finger": {"type": "float64", "topic": "finger", "from": {"finger": "all"}},
        "twist": {"type": "twist", "topic": "twist", "from": {"left_hand": "all"}, "frame": "base_link"},
        "pose": {"type": "pose", "topic": "pose", "from": {"hand": "all"}, "frame": "base_link"},
        "wheels": {
            "type": "position_command",
            "topic": "wheels",
            "from": {"wheels": "all"},
            "names": ["left", "right"],
        },
    },
    "limits": "none",
    "motion": {"hold_s": 0.3, "hold_ramp_s": 0.2},
}
TYPES = {
    "trajectory": JointTrajectory,
    "array": Float64MultiArray,
    "finger": Float64,
    "twist": TwistStamped,
    "pose": PoseStamped,
    "wheels": Float64MultiArray,
}
MEASURED = [0.5, -0.5, 0.01]


@pytest.fixture(scope="module", autouse=True)
def _own_domain(tmp_path_factory):
    isolate(own_domain(), tmp_path_factory.mktemp("ros_log"))


class Guarded:
    """A watchdog that spins in a thread, and a robot whose policy's heart beats as long as it is told to."""

    def __init__(self, folder) -> None:
        path = folder / "contract.yaml"
        path.write_text(yaml.safe_dump(CONTRACT, sort_keys=False))
        self.context = Context()
        rclpy.init(context=self.context)
        self.node = Watchdog(context=self.context, parameter_overrides=[Parameter("contract", value=str(path))])
        self.executor = SingleThreadedExecutor(context=self.context)
        self.executor.add_node(self.node)
        self._stopping = False
        self._fault: Exception | None = None
        self._thread = threading.Thread(target=self._spin)
        self._thread.start()
        self.listener = Listener()
        self.robot = Robot(self.listener)
        for topic, message_type in {**TYPES, "joint_states": JointState}.items():
            self.robot.publisher(topic, message_type)
        self.robot.publisher("groot_policy/heartbeat", Header)
        self.robot.wait_until_heard(*TYPES, "joint_states", "groot_policy/heartbeat")

    def _spin(self) -> None:
        try:
            while not self._stopping:
                self.executor.spin_once(timeout_sec=0.05)
        except Exception as error:  # noqa: BLE001 - said when the test ends
            self._fault = error

    def beat(self, duration_s: float = 0.5, **messages) -> None:
        """Let the heart beat for a while, and then say a last thing on some topics, and beat once more."""
        end = time.monotonic() + duration_s
        while time.monotonic() < end:
            self.robot.publish("groot_policy/heartbeat", Header())
            self.listener.spin(0.05)
        for topic, message in messages.items():
            self.robot.publish(topic, message)
        self.listener.spin(0.05)
        self.robot.publish("groot_policy/heartbeat", Header())

    def measure(self) -> None:
        """Joint states come from now on, as long as the listener waits."""

        def publish() -> None:
            self.robot.publish("joint_states", joints([*NAMES, "finger"], MEASURED, self.robot.now_ns()))

        self.listener.node.create_timer(0.02, publish)

    def listen(self) -> dict[str, list]:
        heard = {topic: self.listener.listen(message_type, topic, 50) for topic, message_type in TYPES.items()}
        self.listener.wait_for(
            lambda: all(self.node.count_subscribers(topic) >= 2 for topic in TYPES), "subscriptions of the test"
        )
        return heard

    def diagnosis(self) -> str:
        found = [status for message in self.robot.diagnostics for status in message.status]
        return found[-1].message if found else ""

    def close(self) -> None:
        self._stopping = True
        self._thread.join()
        self.executor.shutdown()
        self.node.destroy_node()
        rclpy.shutdown(context=self.context)
        self.listener.close()
        assert self._fault is None, f"the watchdog died: {self._fault!r}"


@pytest.fixture
def guarded(tmp_path):
    guarded = Guarded(tmp_path)
    yield guarded
    guarded.close()


def running_trajectory(start_ns: int, names=NAMES) -> JointTrajectory:
    """Half a radian a second for two seconds, from 1 and 2 rad on."""
    offsets = np.arange(1, 21) * SECOND // 10
    ways = 0.05 * np.arange(1, 21)[:, None]
    positions = np.hstack([1.0 + ways, 2.0 - ways])
    return trajectory_message(
        TrajectoryCommand("arm", start_ns, tuple(names), offsets, positions, np.zeros_like(positions))
    )


def test_nothing_is_sent_before_a_heartbeat_and_while_it_beats(guarded):
    heard = guarded.listen()
    guarded.listener.spin(0.8)
    guarded.beat(1.5)
    assert not any(heard.values())
    guarded.listener.wait_for(lambda: guarded.diagnosis() == "the heartbeat is well", "diagnosis")


def test_one_hold_on_every_output_when_the_heartbeat_ends_and_the_next_only_after_another_heartbeat(guarded):
    heard = guarded.listen()
    start_ns = guarded.robot.now_ns() + SECOND // 2
    turn = np.array([0.0, 0.0, 0.0, 1.0])
    said = {
        "trajectory": running_trajectory(start_ns),
        "array": numbers([0.3, -0.3]),
        "finger": Float64(data=0.02),
        "twist": twist_message(TwistCommand("twist", 1, "base_link", np.ones(3), np.ones(3))),
        "pose": pose_message(PoseCommand("pose", 1, "base_link", np.array([0.1, 0.2, 0.3]), turn)),
        "wheels": numbers([0.7, 0.7]),
    }
    guarded.beat(**said)
    ended_s = time.monotonic()
    guarded.listener.wait_for(lambda: all(len(messages) == 2 for messages in heard.values()), "a hold on every topic")
    assert time.monotonic() - ended_s > 0.2, "one lost heartbeat is none"
    hold = heard["trajectory"][-1]
    assert list(hold.joint_names) == list(NAMES)
    assert len(hold.points) == 1
    assert not any(hold.points[0].velocities)
    shoulder, elbow = hold.points[0].positions
    assert shoulder - 1.0 == pytest.approx(2.0 - elbow), "where the trajectory has brought both, and not back"
    assert 0.1 < shoulder - 1.0 < 0.9
    assert heard["array"][-1].data.tolist() == [0.3, -0.3]
    assert heard["finger"][-1].data == 0.02
    assert heard["twist"][-1].twist.linear.x == heard["twist"][-1].twist.angular.z == 0.0
    assert heard["pose"][-1].pose.position.y == 0.2
    assert heard["wheels"][-1].data.tolist() == [0.0, 0.0]
    everything = "a hold was sent on trajectory, array, finger, twist, pose, wheels"
    guarded.listener.wait_for(lambda: everything in guarded.diagnosis(), "account of the hold")
    guarded.listener.spin(1.0)
    assert all(len(messages) == 2 for messages in heard.values()), "once"
    guarded.beat()
    guarded.listener.wait_for(lambda: len(heard["wheels"]) == 3, "the hold of another loss")


def test_where_nothing_was_heard_the_measured_position_is_held_and_what_is_unknown_is_said(guarded):
    guarded.robot.publish("trajectory", running_trajectory(guarded.robot.now_ns()))
    guarded.listener.spin(0.5)
    heard = guarded.listen()
    guarded.measure()
    guarded.beat()
    hold = guarded.listener.wait_for(lambda: heard["trajectory"], "hold")[-1]
    assert hold.points[0].positions.tolist() == pytest.approx(MEASURED[:2]), "what was sent long before does not count"
    guarded.listener.wait_for(lambda: heard["finger"], "hold of the finger")
    assert heard["finger"][-1].data == pytest.approx(MEASURED[2])
    guarded.listener.wait_for(lambda: "pose was not held" in guarded.diagnosis(), "the output that is unknown")
    assert "nothing was sent on it lately, and where it stands is not measured" in guarded.diagnosis()
    assert not heard["pose"]


def test_what_was_measured_long_ago_is_not_where_the_robot_stands(guarded):
    heard = guarded.listen()
    old_ns = guarded.robot.now_ns() - 5_000_000_000
    guarded.robot.publish("joint_states", joints([*NAMES, "finger"], MEASURED, old_ns))
    guarded.beat()
    guarded.listener.wait_for(lambda: "trajectory was not held" in guarded.diagnosis(), "the account of it")
    assert not heard["trajectory"]


def test_somebody_else_s_trajectory_is_not_taken_for_the_policy_s(guarded):
    guarded.measure()
    heard = guarded.listen()
    guarded.beat(trajectory=running_trajectory(guarded.robot.now_ns(), names=("left", "right")))
    hold = guarded.listener.wait_for(lambda: len(heard["trajectory"]) == 2 and heard["trajectory"][-1], "hold")
    assert hold.points[0].positions.tolist() == pytest.approx(MEASURED[:2])


def test_it_runs_without_torch_and_names_what_is_missing():
    code = "import sys, groot_ros.nodes.watchdog; sys.exit('torch' in sys.modules or 'transformers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0
    command = [sys.executable, "-m", "groot_ros", "watchdog"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert "error: parameter contract: found nothing; give the robot contract" in done.stderr
