"""The node by simulated time: it runs by /clock alone, and a clock that is set back begins anew."""

from __future__ import annotations

import pytest

pytest.importorskip("rclpy")
pytestmark = pytest.mark.dds

from rosgraph_msgs.msg import Clock  # noqa: E402
from support.policy_arm import CONTRACT, Arm  # noqa: E402
from support.policy_node import RunningPolicy, image, time_message  # noqa: E402
from support.ros import Listener, isolate, own_domain, stamps_ns  # noqa: E402

STEP_NS = 33_333_333


@pytest.fixture(scope="module", autouse=True)
def _own_domain(tmp_path_factory):
    isolate(own_domain(), tmp_path_factory.mktemp("ros_log"))


class SimulatedArm(Arm):
    """Publishes /clock and lives by it."""

    def __init__(self, listener: Listener, start_ns: int) -> None:
        self.time_ns = start_ns
        super().__init__(listener)
        self.publisher("/clock", Clock)
        self.wait_until_heard("/clock")

    def now_ns(self) -> int:
        return self.time_ns

    def step(self) -> None:
        self.time_ns += STEP_NS
        self.publish("/clock", Clock(clock=time_message(self.time_ns)))
        self.listener.spin(0.02)  # the clock goes before what is stamped by it
        self.feed()


def test_a_clock_that_jumps_back_is_said_and_chunks_of_the_new_time_follow(tmp_path):
    running = RunningPolicy(CONTRACT, tmp_path, use_sim_time=True)
    listener = Listener("test_arm")
    try:
        running.activate()
        arm = SimulatedArm(listener, start_ns=1_000_000_000_000)
        chunk = arm.wait_for_chunk(arm.step)
        assert 1_000_000_000_000 <= stamps_ns([chunk])[0] <= arm.time_ns
        arm.time_ns = 10_000_000_000
        arm._last_ns = 0
        arm.wait_for_message("observation", "clock: time went back by", arm.step)
        chunk = arm.wait_for_chunk(arm.step)
        assert 10_000_000_000 <= stamps_ns([chunk])[0] <= arm.time_ns
        arm.publish("front/image_raw", image(arm.picture(), arm.time_ns))
    finally:
        running.close()
        listener.close()
