"""The demo robot as its users see it: over DDS, in processes of its own."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytestmark = [pytest.mark.dds, pytest.mark.timeout(240)]

from builtin_interfaces.msg import Duration  # noqa: E402
from diagnostic_msgs.msg import DiagnosticArray  # noqa: E402
from geometry_msgs.msg import PointStamped  # noqa: E402
from rcl_interfaces.srv import SetParameters  # noqa: E402
from rclpy.parameter import Parameter  # noqa: E402
from rclpy.qos import qos_profile_sensor_data  # noqa: E402
from sensor_msgs.msg import Image, JointState  # noqa: E402
from std_srvs.srv import Trigger  # noqa: E402
from support.ros import Listener, isolate, own_domain, stamps_ns, tool  # noqa: E402
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint  # noqa: E402

from groot_ros.demo.arm import demo_arm  # noqa: E402
from groot_ros.demo.episode import draw_episode  # noqa: E402
from groot_ros.nodes.demo_robot_parts import LATCHED, positions_by_name  # noqa: E402

ARM = demo_arm()


@pytest.fixture(scope="module", autouse=True)
def _own_domain(tmp_path_factory):
    isolate(own_domain(), tmp_path_factory.mktemp("ros_log"))


@pytest.fixture
def listener():
    listener = Listener()
    yield listener
    listener.close()


def parts(process) -> dict[str, int]:
    """Process numbers of the robot's parts."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if parent == process.pid and b"groot_ros.cli.demo_robot" in words:
            found[words[words.index(b"groot_ros.cli.demo_robot") + 1].decode()] = int(folder.name)
    return found


def trajectory(positions, seconds=0.3, names=ARM.names):
    point = JointTrajectoryPoint(positions=[float(value) for value in positions])
    point.time_from_start = Duration(sec=int(seconds), nanosec=round(seconds % 1 * 1e9))
    return JointTrajectory(joint_names=list(names), points=[point])


def test_it_publishes_what_its_contract_promises_obeys_trajectories_and_begins_episodes(listener):
    with tool("demo_robot", "--ros-args", "-p", "seed:=5"):
        joints = listener.listen(JointState, "joint_states", qos_profile_sensor_data)
        leader = listener.listen(JointState, "leader/joint_states", qos_profile_sensor_data)
        front = listener.listen(Image, "front/image_raw", qos_profile_sensor_data)
        wrist = listener.listen(Image, "wrist/image_raw", qos_profile_sensor_data)
        targets = listener.listen(PointStamped, "target", LATCHED)
        diagnostics = listener.listen(DiagnosticArray, "/diagnostics", 10)
        listener.wait_for(lambda: all(listener.heard.values()), "message on every topic")
        assert (targets[-1].point.x, targets[-1].point.y) == tuple(draw_episode(ARM, 5).target)
        for images in (front, wrist):
            assert (images[-1].width, images[-1].height, images[-1].encoding) == (128, 128, "rgb8")

        for messages in listener.heard.values():
            messages.clear()
        listener.spin(2.0)
        for messages, rate_hz in ((joints, 200), (front, 30), (wrist, 30), (leader, 60)):
            spacing_ns = np.median(np.diff(stamps_ns(messages)))
            assert 0.5 * rate_hz < 1e9 / spacing_ns < 1.1 * rate_hz, "never faster; slower on a machine that is busy"

        goal = positions_by_name(joints[-1], ARM.names) + np.array([0.3, -0.2, -0.3])
        commands = listener.node.create_publisher(JointTrajectory, "arm_controller/joint_trajectory", 10)
        listener.wait_for(lambda: commands.get_subscription_count() > 0, "controller")
        commands.publish(trajectory(goal))
        listener.wait_for(
            lambda: np.allclose(positions_by_name(joints[-1], ARM.names), goal, atol=1e-3),
            "arrival at the commanded pose",
        )

        commands.publish(trajectory(goal[:2], names=ARM.names[:2]))

        def rejected():
            values = [{v.key: v.value for v in s.values} for m in diagnostics for s in m.status]
            return [v["last rejection"] for v in values if v.get("rejected: wrong joint set") == "1"]

        assert "all are needed" in listener.wait_for(rejected, "rejection in the diagnostics")[-1]

        answer = listener.call(Trigger, "demo_arm/new_episode", Trigger.Request())
        assert answer.success
        listener.wait_for(
            lambda: (targets[-1].point.x, targets[-1].point.y) == tuple(draw_episode(ARM, 6).target), "next target"
        )
        request = SetParameters.Request(parameters=[Parameter("seed", value=11).to_parameter_msg()])
        assert listener.call(SetParameters, "demo_arm/set_parameters", request).results[0].successful
        listener.wait_for(
            lambda: (targets[-1].point.x, targets[-1].point.y) == tuple(draw_episode(ARM, 11).target),
            "target of seed 11",
        )
        refused = SetParameters.Request(parameters=[Parameter("seed", value=-1).to_parameter_msg()])
        answer = listener.call(SetParameters, "demo_arm/set_parameters", refused)
        assert "give 0 or above" in answer.results[0].reason


def test_a_driving_leader_brings_the_arm_to_the_target(listener):
    with tool("demo_robot", "--ros-args", "-p", "seed:=3", "-p", "drive:=true"):
        joints = listener.listen(JointState, "joint_states", qos_profile_sensor_data)
        target = draw_episode(ARM, 3).target

        def arrived():
            if not joints:
                return False
            positions = positions_by_name(joints[-1], ARM.names)
            return np.hypot(*(ARM.tip(positions) - target)) < 0.03 * ARM.reach_m and positions[-1] < 0.1

        listener.wait_for(arrived, "gripper at the target")


def test_a_part_that_dies_is_reported_and_leaves_the_others_running(listener):
    joints = listener.listen(JointState, "joint_states", qos_profile_sensor_data)
    images = listener.listen(Image, "front/image_raw", qos_profile_sensor_data)
    with tool("demo_robot") as robot:
        listener.wait_for(lambda: joints and images, "joint states and images")
        os.kill(parts(robot)["cameras"], signal.SIGKILL)
        listener.spin(0.5)
        joints.clear()
        images.clear()
        listener.spin(1.0)
        assert joints
        assert not images
        left = parts(robot)
        assert set(left) == {"arm", "leader"}
        robot.send_signal(signal.SIGTERM)
        errors = robot.communicate(timeout=10)[1]
        assert robot.returncode == 1
        assert "the cameras process ended with code -9" in errors
    time.sleep(0.2)
    assert not any(Path(f"/proc/{number}").exists() for number in left.values())
