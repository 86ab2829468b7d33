"""Two robots with one policy: each moves, stops and fails by itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

pytest.importorskip("rclpy")
pytestmark = [pytest.mark.dds, pytest.mark.timeout(400)]

import rclpy  # noqa: E402
from rclpy.lifecycle import LifecycleNode  # noqa: E402
from std_msgs.msg import Header  # noqa: E402
from std_srvs.srv import SetBool  # noqa: E402
from support.policy_arm import CONTRACT, Arm  # noqa: E402
from support.policy_node import SUCCESS, RunningPolicy  # noqa: E402
from support.ros import DEADLINE_S, ROOT, Listener, isolate, own_domain, tool  # noqa: E402
from trajectory_msgs.msg import JointTrajectory  # noqa: E402

from groot_ros.checkpoint import write_tiny_checkpoint  # noqa: E402
from groot_ros.cli.policy import main  # noqa: E402
from groot_ros.nodes.policy_host import PolicyHost  # noqa: E402
from groot_ros.nodes.policy_robots import make_robots, parse_robots  # noqa: E402
from groot_ros.nodes.running import run_nodes  # noqa: E402

COMMANDS = "arm_controller/joint_trajectory"
ROBOTS = ("left", "right")
STARTED_S = 3 * DEADLINE_S
"""Five processes that import torch or rclpy at once start slowly on two cores."""
SMALL = ("-p", "width:=64", "-p", "height:=48")


@pytest.fixture(scope="module", autouse=True)
def _own_domain(tmp_path_factory):
    isolate(own_domain(), tmp_path_factory.mktemp("ros_log"))


@pytest.fixture
def listener():
    listener = Listener()
    yield listener
    listener.close()


class DemoRobot:
    """What is heard of one of the demo robots that the process drives."""

    def __init__(self, listener: Listener, name: str) -> None:
        self.listener, self.name = listener, name
        self.commands = listener.listen(JointTrajectory, f"/{name}/{COMMANDS}", 50)
        self.heartbeats = listener.listen(Header, f"/{name}/groot_policy/heartbeat", 10)

    def enable(self, *, on: bool) -> SetBool.Response:
        return self.listener.call(SetBool, f"/{self.name}/groot_policy/enable", SetBool.Request(data=on))

    def is_moved(self) -> bool:
        """Whether the newest command is a trajectory that moves the joints."""
        return bool(self.commands) and len(self.commands[-1].points) > 1

    def wait_until_moved(self, deadline_s: float = DEADLINE_S) -> None:
        self.commands.clear()
        self.listener.wait_for(
            lambda: len(self.commands) >= 3 and self.is_moved(), f"motion of {self.name}", deadline_s
        )


@contextmanager
def one_process(checkpoint, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """The policy for both robots."""
    parameters = [f"checkpoint:={checkpoint}", f"contract:={ROOT / 'config' / 'robots' / 'demo.yaml'}", "device:=cpu"]
    parameters += ["autostart:=true", "dry_run:=false", "auto_enable:=true", "keep_warm_period_s:=0.0"]
    command = [sys.executable, "-m", "groot_ros", "policy", "--robots", *ROBOTS, *arguments, "--ros-args"]
    process = subprocess.Popen([*command, *[word for one in parameters for word in ("-p", one)]], cwd=ROOT)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(30.0) == 0


@contextmanager
def demo_part(name: str, part: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """One part of a demo robot, in its namespace."""
    with tool("demo_robot", part, "--ros-args", "-r", f"__ns:=/{name}", *arguments) as process:
        yield process


@pytest.mark.slow  # nine processes
def test_one_process_moves_two_demo_robots_and_what_stops_one_leaves_the_other_moving(listener, tmp_path):
    left, right = (DemoRobot(listener, name) for name in ROBOTS)
    checkpoint = write_tiny_checkpoint(tmp_path / "tiny")
    with ExitStack() as stack:
        for name in ROBOTS:
            stack.enter_context(demo_part(name, "arm"))
        left_cameras, _ = (stack.enter_context(demo_part(name, "cameras", *SMALL)) for name in ROBOTS)
        process = stack.enter_context(one_process(checkpoint))
        left.wait_until_moved(STARTED_S)
        right.wait_until_moved()

        assert left.enable(on=False).message == "motion is disabled, a hold was sent"
        listener.wait_for(lambda: not left.is_moved(), "hold of the left robot")
        left.commands.clear()
        left.heartbeats.clear()
        right.heartbeats.clear()
        right.wait_until_moved()
        listener.wait_for(lambda: len(right.heartbeats) > 10, "heartbeat of the right robot")
        assert left.commands == [], "the left robot was told to stay"
        assert len(left.heartbeats) <= 1, "one may have been under way"

        assert left.enable(on=True).success
        left.wait_until_moved()
        left_cameras.terminate()
        listener.wait_for(lambda: not left.is_moved(), "hold of the robot that is blind")
        right.wait_until_moved()
        assert not left.is_moved()

        process.terminate()
        listener.wait_for(lambda: not right.is_moved(), "hold of the right robot at the end")


@pytest.fixture
def two(tmp_path):
    """Starts the nodes of two robots as one process has them, and what publishes their topics."""
    running: list = []
    host = PolicyHost(len(ROBOTS))

    def start(*contracts) -> list[RunningPolicy]:
        policies = []
        for name, contract in zip(ROBOTS, contracts, strict=True):
            folder = tmp_path / name
            folder.mkdir()
            policies.append(RunningPolicy(contract, folder, f"/{name}", host))
            running.append(policies[-1])
        return policies

    def arm(name: str) -> Arm:
        listener = Listener(f"{name}_arm", f"/{name}")
        running.append(listener)
        return Arm(listener)

    yield start, arm
    for each in reversed(running):
        each.close()


def test_robots_are_predicted_together_and_each_gets_its_own_chunks(two):
    start, arm = two
    policies = start({**CONTRACT, "instruction": "pick up the cup"}, {**CONTRACT, "instruction": "open up the box"})
    for policy in policies:
        policy.activate()
    shared = policies[0].node.session.policy
    assert policies[1].node.session.policy is shared
    runs, road = [], shared._road

    def noted(observations, noise, make_prefixes):
        runs.append(sorted(observation.instruction for observation in observations))
        return road(observations, noise, make_prefixes)

    shared._road = noted
    arms = [arm(name) for name in ROBOTS]
    free = threading.Event()
    worker = policies[0].node._host._worker
    threading.Thread(target=worker.call, args=(lambda: free.wait(DEADLINE_S),), daemon=True).start()

    def both_wait() -> bool:
        for each in arms:
            each.feed()
        return all(policy.node.session.progress()["is_busy"] for policy in policies)

    try:
        arms[0].listener.wait_for(both_wait, "two robots that wait for the model")
    finally:
        free.set()
    arms[0].listener.wait_for(lambda: ["open up the box", "pick up the cup"] in runs, "run of both")
    for each in arms:
        assert each.wait_for_chunk().joint_names[0] == "single_arm/pan"


def test_a_robot_that_is_cleaned_up_leaves_the_other_its_policy(two):
    start, arm = two
    left, right = start(CONTRACT, CONTRACT)
    left.activate()
    right.activate()
    arms = [arm(name) for name in ROBOTS]
    arms[0].wait_for_chunk()
    for transition in ("deactivate", "cleanup"):
        assert left.do(getattr(left.node, f"trigger_{transition}")) == SUCCESS
    arms[1].wait_for_chunk()
    left.activate()
    assert left.node.session.policy is right.node.session.policy
    arms[0].wait_until_heard("front/image_raw", "wrist/image_raw", "joint_states")
    arms[0].wait_for_chunk()


def test_a_robot_of_another_embodiment_is_refused_in_one_sentence(two):
    start, arm = two
    left, right = start(CONTRACT, {**CONTRACT, "embodiment_tag": "libero_sim"})
    left.activate()
    right.do(right.node.trigger_configure)
    assert right.node._fault == (
        "/right/groot_policy: wants embodiment_tag libero_sim instead of new_embodiment, as /left/groot_policy in this "
        "process has it; robots of one process share one policy, so start a process of its own for this robot"
    )
    arm("left").wait_for_chunk()


def test_parameters_are_for_all_robots_and_a_file_can_address_each(tmp_path):
    (tmp_path / "robots.yaml").write_text(
        "/left/groot_policy: {ros__parameters: {instruction: put the cube in the bowl}}\n"
        "/right/groot_policy: {ros__parameters: {instruction: open the drawer, dry_run: false}}\n"
    )
    rclpy.init(args=["--ros-args", "--params-file", str(tmp_path / "robots.yaml"), "-p", "contract:=arm.yaml"])
    try:
        nodes = make_robots(parse_robots(["left", "right=own.yaml"]))
        found = [[node.get_parameter(name).value for name in ("instruction", "dry_run", "contract")] for node in nodes]
        for node in nodes:
            node.destroy_node()
    finally:
        rclpy.shutdown()
    assert found == [["put the cube in the bowl", True, "arm.yaml"], ["open the drawer", False, "own.yaml"]]


def test_a_node_that_breaks_ends_alone_and_is_said(capfd):
    class Node(LifecycleNode):
        def __init__(self, namespace: str, breaks: bool) -> None:
            super().__init__("robot", namespace=namespace)
            self.turns = 0
            self.create_timer(0.01, self._break if breaks else self._turn)

        def _break(self) -> None:
            msg = "no such thing"
            raise RuntimeError(msg)

        def _turn(self) -> None:
            self.turns += 1
            if self.turns == 50:
                os.kill(os.getpid(), signal.SIGTERM)

    nodes, last_words = [], []

    def make() -> list[Node]:
        nodes.extend([Node("/left", breaks=True), Node("/right", breaks=False)])
        return nodes

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        assert not run_nodes(make, [], before_shutdown=lambda node: last_words.append(node.get_namespace()))
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert nodes[1].turns >= 50
    assert last_words == ["/left", "/right"]
    said = capfd.readouterr()
    assert "/left/robot has ended by a fault that nobody foresaw" in said.out + said.err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["left", "left=other.yaml"], "--robots: /left is there twice; each robot needs a namespace of its own"),
        (["left.yaml"], "--robots: found 'left.yaml'; write a namespace, or namespace=contract.yaml, for each robot"),
        (
            ["left", "--ros-args", "-r", "__ns:=/lab"],
            "--robots: /left became /lab by the remapping of __ns; leave that out and write whole namespaces",
        ),
    ],
    ids=["twice", "no namespace", "remapped"],
)
def test_robots_that_cannot_be_told_apart_are_refused(words, sentence, capfd):
    assert main(["--robots", *words]) != 0
    assert sentence in capfd.readouterr().err
