"""launch/replay.launch.py as a user starts it: the bag is played to the node, its chunks are kept, and all ends."""

from __future__ import annotations

import subprocess
import sys

import pytest
import yaml

pytest.importorskip("launch", reason="ROS's launch packages are not installed")
pytest.importorskip("launch_ros", reason="ROS's launch packages are not installed")
ament_index = pytest.importorskip("ament_index_python.packages")
pytestmark = pytest.mark.dds

from support.arm_bags import write_arm_bag  # noqa: E402
from support.evaluation import arm_dict  # noqa: E402
from support.ros import isolate, own_domain  # noqa: E402

from groot_ros.checkpoint import write_tiny_checkpoint  # noqa: E402
from groot_ros.cli.evaluate import main  # noqa: E402
from groot_ros.evaluation.live_chunks import load_chunks  # noqa: E402

try:
    SHARE = ament_index.get_package_share_directory("groot_ros")
except ament_index.PackageNotFoundError:
    pytest.skip("groot_ros is not installed by colcon here", allow_module_level=True)

LAUNCH = """
import sys
from launch import LaunchDescription, LaunchService
from launch.actions import IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource
arguments = [word.split(":=", 1) for word in sys.argv[2:]]
included = IncludeLaunchDescription(PythonLaunchDescriptionSource(sys.argv[1]), launch_arguments=arguments)
service = LaunchService()
service.include_launch_description(LaunchDescription([included]))
sys.exit(service.run())
"""


def test_a_bag_is_played_to_the_node_in_lock_step_and_its_chunks_give_a_report(tmp_path):
    isolate(own_domain(), tmp_path / "ros_log")
    (tmp_path / "contract.yaml").write_text(yaml.safe_dump(arm_dict(), sort_keys=False))
    write_tiny_checkpoint(tmp_path / "checkpoint", embodiment_tag="new_embodiment", fps=20.0)
    write_arm_bag(tmp_path / "bag", 1.5, state_rate_hz=40)
    names = {"bag": "bag", "checkpoint": "checkpoint", "contract": "contract.yaml", "chunks": "chunks.parquet"}
    words = [f"{name}:={tmp_path / file}" for name, file in names.items()]
    command = [sys.executable, "-c", LAUNCH, f"{SHARE}/launch/replay.launch.py", *words, "lock_step:=true"]
    ended = subprocess.run(command, check=False, capture_output=True, text=True, timeout=180)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert len(load_chunks(tmp_path / "chunks.parquet")) > 3
    evaluated = [str(tmp_path / "bag"), "--contract", str(tmp_path / "contract.yaml")]
    more = ["--chunks", str(tmp_path / "chunks.parquet"), "--output", str(tmp_path / "report")]
    assert main([*evaluated, *more]) == 0
