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
SLOW_MACHINE_S = 90.0


@launch_pytest.fixture
def description(tmp_path_factory):
    isolate(own_domain(), tmp_path_factory.mktemp("ros_log"))
    arguments = {
        "checkpoint": str(write_tiny_checkpoint(tmp_path_factory.mktemp("checkpoint") / "tiny")),
        "contract": str(ROOT / "config" / "robots" / "demo.yaml"),
        "device": "cpu",
        "namespace": "left",
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


@pytest.mark.launch(fixture=description)
def test_the_node_becomes_active_in_its_namespace_with_the_profile_and_in_dry_run():
    listener = Listener("launch_test")
    try:
        client = listener.node.create_client(GetState, f"{NODE}/get_state")
        listener.wait_for(client.service_is_ready, "lifecycle service", SLOW_MACHINE_S)

        def is_active() -> bool:
            response = listener.call(GetState, f"{NODE}/get_state", GetState.Request())
            return response is not None and response.current_state.id == State.PRIMARY_STATE_ACTIVE

        listener.wait_for(is_active, "active node", SLOW_MACHINE_S)
        names = ["dry_run", "auto_enable", "device", "use_sim_time"]
        response = listener.call(GetParameters, f"{NODE}/get_parameters", GetParameters.Request(names=names))
        dry_run, auto_enable, device, use_sim_time = response.values
        assert (dry_run.bool_value, auto_enable.bool_value, use_sim_time.bool_value) == (True, False, False)
        assert device.string_value == "cpu"
        answer = listener.call(SetBool, f"{NODE}/enable", SetBool.Request(data=True))
        assert not answer.success
        assert "dry_run:=false" in answer.message
        names = ["contract", "heartbeat"]
        request = GetParameters.Request(names=names)
        response = listener.call(GetParameters, "/left/groot_watchdog/get_parameters", request)
        contract, heartbeat = response.values
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
