"""A bag that our recorder made of the demo robot over DDS, evaluated as a user would."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")

from diagnostic_msgs.msg import DiagnosticStatus
from std_srvs.srv import Trigger
from support.ros import ROOT, Listener, isolate, own_domain, tool

from groot_ros.cli.evaluate import main

pytestmark = pytest.mark.dds
CONTRACT = ROOT / "config" / "robots" / "demo.yaml"
PICTURES = ("-p", "width:=160", "-p", "height:=120")


@pytest.fixture(scope="module")
def bag(tmp_path_factory):
    """Three seconds of the demo robot, led by its expert."""
    isolate(own_domain(), tmp_path_factory.mktemp("ros_log"))
    recordings = tmp_path_factory.mktemp("recordings")
    listener = Listener("evaluated")
    robot = tool("demo_robot", "--ros-args", "-p", "seed:=3", "-p", "drive:=true", *PICTURES)
    with robot, tool("record", "--contract", str(CONTRACT), "--output", str(recordings), "--no-view"):
        status = listener.listen(DiagnosticStatus, "groot_recorder/status", 10)
        listener.wait_for(lambda: status and status[-1].message == "ready", "readiness of the recorder", 60.0)
        assert listener.call(Trigger, "groot_recorder/start", Trigger.Request()).success
        listener.spin(3.0)
        assert listener.call(Trigger, "groot_recorder/stop", Trigger.Request()).success
    listener.close()
    return recordings / "episode_000000"


def test_what_was_recorded_of_the_demo_robot_is_replayed_without_error(bag, tmp_path):
    command = [str(bag), "--contract", str(CONTRACT), "--recorded", "--output", str(tmp_path)]
    assert main(command) == 0
    report = json.loads((tmp_path / "metrics.json").read_text())
    metrics = report["metrics"]
    assert metrics["chunks"] > 5
    assert {values["all"] for values in metrics["mae"].values()} == {0.0}
    assert metrics["refusals"]["total"] == 0
    assert metrics["observations"]["rate_hz"] > 15  # 30, on a machine that is not busy
    assert report["baselines"]["hold_still"]["mae"]["single_arm"]["all"] > 0.0
    assert (tmp_path / "report.html").stat().st_size > 10_000
