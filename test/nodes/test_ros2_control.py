"""What the node sends, executed by the real joint_trajectory_controller on ros2_control's mock hardware.

Runs where ros2_control is installed (ros-<distribution>-ros2-control and -ros2-controllers); nowhere else.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
import yaml

pytest.importorskip("rclpy")
pytestmark = pytest.mark.dds

from rclpy.qos import qos_profile_sensor_data  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from std_msgs.msg import String  # noqa: E402
from support.motion import JOINTS, PERIOD_NS, chunk  # noqa: E402
from support.moving_node import MovingNode  # noqa: E402
from support.ros import isolate, own_domain, stamps_ns  # noqa: E402

from groot_ros.nodes.latched_text import LATCHED  # noqa: E402

PACKAGES = ("controller_manager", "joint_trajectory_controller", "joint_state_broadcaster")
JOINT = """
  <link name="{name}_link"/>
  <joint name="{name}" type="revolute">
    <parent link="{parent}"/><child link="{name}_link"/><axis xyz="0 0 1"/>
    <limit lower="-3" upper="3" velocity="3" effort="10"/>
  </joint>
"""
CONTROL = """
    <joint name="{name}">
      <command_interface name="position"/>
      <state_interface name="position"><param name="initial_value">0.0</param></state_interface>
      <state_interface name="velocity"/>
    </joint>
"""


def program(package: str, name: str) -> Path:
    from ament_index_python.packages import get_package_prefix

    return Path(get_package_prefix(package)) / "lib" / package / name


def missing() -> str | None:
    """Why the test cannot run here."""
    try:
        for package in PACKAGES:
            program(package, "")
    except (ImportError, LookupError, OSError) as error:
        return f"ros2_control is not installed: {error}"
    return None


def description() -> str:
    links = JOINT.format(name=JOINTS[0], parent="base") + JOINT.format(name=JOINTS[1], parent=f"{JOINTS[0]}_link")
    hardware = "<hardware><plugin>mock_components/GenericSystem</plugin></hardware>"
    controlled = "".join(CONTROL.format(name=name) for name in JOINTS)
    control = f'<ros2_control name="mock" type="system">{hardware}{controlled}</ros2_control>'
    return f'<robot name="mock"><link name="base"/>{links}{control}</robot>'


def parameters() -> dict:
    types = {
        "arm_controller": {"type": "joint_trajectory_controller/JointTrajectoryController"},
        "joint_state_broadcaster": {"type": "joint_state_broadcaster/JointStateBroadcaster"},
    }
    manager = {"update_rate": 100, "robot_description": description(), **types}
    controller = {
        "joints": list(JOINTS),
        "command_interfaces": ["position"],
        "state_interfaces": ["position", "velocity"],
        "interpolate_from_desired_state": True,  # open_loop_control on Humble
        "open_loop_control": True,
    }
    return {
        "controller_manager": {"ros__parameters": manager},
        "arm_controller": {"ros__parameters": controller},
    }


@pytest.mark.skipif(missing() is not None, reason=str(missing()))
def test_the_real_controller_follows_what_is_sent_and_stops_when_told(tmp_path):
    isolate(own_domain(), tmp_path)
    file = tmp_path / "controllers.yaml"
    file.write_text(yaml.safe_dump(parameters()))
    output = {"type": "joint_trajectory", "topic": "arm_controller/joint_trajectory", "from": {"arm": "all"}}
    motion = {"strategy": "replace", "hold_s": 0.5, "hold_ramp_s": 0.2}
    moving = MovingNode({"arm": output}, motion=motion)
    listener = moving.listener
    robot = subprocess.Popen([program("controller_manager", "ros2_control_node"), "--ros-args", "--params-file", file])
    try:
        for topic in ("robot_description", "controller_manager/robot_description"):
            listener.node.create_publisher(String, topic, LATCHED).publish(String(data=description()))
        states = listener.listen(JointState, "joint_states", qos_profile_sensor_data)
        spawner = [program("controller_manager", "spawner"), "joint_state_broadcaster", "arm_controller"]
        spawning = subprocess.Popen([*spawner, "--param-file", file])
        listener.wait_for(lambda: spawning.poll() is not None, "controllers", 60.0)
        assert spawning.returncode == 0
        listener.wait_for(lambda: states, "joint states")
        listener.wait_for(lambda: moving.node.count_subscribers(output["topic"]), "controller")
        begin_ns = moving.now_ns()

        def plan(times_ns: np.ndarray) -> np.ndarray:
            seconds = (times_ns - begin_ns) / 1e9
            return 0.3 * np.stack([1.0 - np.cos(seconds), np.sin(2.0 * seconds) ** 2], axis=1)

        while moving.now_ns() < begin_ns + 2_000_000_000:
            now_ns = moving.now_ns()
            rows = plan(now_ns + PERIOD_NS * np.arange(16))
            moving.execute({"arm": positions(states[-1])}, chunk(rows, now_ns))
            listener.spin(0.2)
        followed = states[-1]
        np.testing.assert_allclose(positions(followed), plan(np.array(stamps_ns([followed])))[0], atol=0.05)
        moving.motion.stop()
        listener.spin(motion["hold_ramp_s"] + 0.1)
        rest = positions(states[-1])
        listener.spin(0.5)
        np.testing.assert_allclose(positions(states[-1]), rest, atol=1e-3)
    finally:
        moving.close()
        robot.terminate()
        robot.wait(10)


def positions(message: JointState) -> list[float]:
    return [message.position[list(message.name).index(name)] for name in JOINTS]
