"""launch/groot.launch.py as a user starts it: active, with the arguments and the transport profile."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

launch_pytest = pytest.importorskip("launch_pytest", reason="ROS's launch packages are not installed")
launch = pytest.importorskip("launch")
pytest.importorskip("launch_ros")
ament_index = pytest.importorskip("ament_index_python.packages")
pytestmark = pytest.mark.dds

from launch.actions import IncludeLaunchDescription  # noqa: E402
from launch.launch_description_sources import PythonLaunchDescriptionSource  # noqa: E402
from lifecycle_msgs.msg import State  # noqa: E402
from lifecycle_msgs.srv import GetState  # noqa: E402
from rcl_interfaces.srv import GetParameters  # noqa: E402
from std_srvs.srv import SetBool  # noqa: E402
from support.ros import ROOT, Listener, isolate, own_domain  # noqa: E402

from groot_ros.checkpoint import write_tiny_checkpoint  # noqa: E402

try:
    SHARE = Path(ament_index.get_package_share_directory("groot_ros"))
except ament_index.PackageNotFoundError:
    pytest.skip("groot_ros is not installed by colcon here", allow_module_level=True)

NODE = "/left/groot_policy"
CONTRACT = str(ROOT / "config" / "robots" / "demo.yaml")
SLOW_MACHINE_S = 90.0


def launched(tmp_path_factory, **arguments: str):
    """What a user starts with arguments, on a domain of its own."""
    isolate(own_domain(), tmp_path_factory.mktemp("ros_log"))
    arguments |= {
        "checkpoint": str(write_tiny_checkpoint(tmp_path_factory.mktemp("checkpoint") / "tiny")),
        "contract": CONTRACT,
        "device": "cpu",
        "log_level": "debug",
    }
    return launch.LaunchDescription(
        [
            IncludeLaunchDescription(
                PythonLaunchDescriptionSource(str(SHARE / "launch" / "groot.launch.py")),
                launch_arguments=arguments.items(),
            ),
            launch_pytest.actions.ReadyToTest(),
        ]
    )


@launch_pytest.fixture
def description(tmp_path_factory):
    return launched(tmp_path_factory, namespace="left")


@launch_pytest.fixture
def two_robots(tmp_path_factory):
    own = tmp_path_factory.mktemp("contract") / "right.yaml"
    own.write_text(Path(CONTRACT).read_text())
    return launched(tmp_path_factory, robots=f"left right={own}")


def wait_until_active(listener: Listener, node: str) -> None:
    client = listener.node.create_client(GetState, f"{node}/get_state")
    listener.wait_for(client.service_is_ready, f"lifecycle service of {node}", SLOW_MACHINE_S)

    def is_active() -> bool:
        response = listener.call(GetState, f"{node}/get_state", GetState.Request())
        return response is not None and response.current_state.id == State.PRIMARY_STATE_ACTIVE

    listener.wait_for(is_active, f"active {node}", SLOW_MACHINE_S)


def parameters(listener: Listener, node: str, *names: str) -> list:
    request = GetParameters.Request(names=list(names))
    return list(listener.call(GetParameters, f"{node}/get_parameters", request).values)


@pytest.mark.launch(fixture=two_robots)
def test_two_robots_share_a_process_and_each_has_its_watchdog():
    listener = Listener("launch_test")
    try:
        for robot, contract in (("left", "demo.yaml"), ("right", "right.yaml")):
            wait_until_active(listener, f"/{robot}/groot_policy")
            for node in ("groot_policy", "groot_watchdog"):
                (found,) = parameters(listener, f"/{robot}/{node}", "contract")
                assert found.string_value.endswith(contract), node
    finally:
        listener.close()


@pytest.mark.launch(fixture=description)
def test_the_node_becomes_active_in_its_namespace_with_the_profile_and_in_dry_run():
    listener = Listener("launch_test")
    try:
        wait_until_active(listener, NODE)
        dry_run, auto_enable, device, use_sim_time = parameters(
            listener, NODE, "dry_run", "auto_enable", "device", "use_sim_time"
        )
        assert (dry_run.bool_value, auto_enable.bool_value, use_sim_time.bool_value) == (True, False, False)
        assert device.string_value == "cpu"
        answer = listener.call(SetBool, f"{NODE}/enable", SetBool.Request(data=True))
        assert not answer.success
        assert "dry_run:=false" in answer.message
        contract, heartbeat = parameters(listener, "/left/groot_watchdog", "contract", "heartbeat")
        assert contract.string_value.endswith("demo.yaml")
        assert heartbeat.string_value == "groot_policy/heartbeat"
        environment = environment_of_the_node()
        profile = str(SHARE / "config" / "fastdds_shared_memory.xml")
        assert environment["FASTDDS_DEFAULT_PROFILES_FILE"] == profile
        assert environment["FASTRTPS_DEFAULT_PROFILES_FILE"] == profile
    finally:
        listener.close()


def environment_of_the_node() -> dict[str, str]:
    """What the process of the node was started with, found by its name and namespace on the command line."""
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # a process may end meanwhile
            words = (folder / "cmdline").read_text().split("\0")
            if "__node:=groot_policy" in words and "__ns:=/left" in words:
                entries = (folder / "environ").read_text().split("\0")
                return dict(entry.split("=", 1) for entry in entries if "=" in entry)
    msg = "there is no process of the node"
    raise AssertionError(msg)
