"""A position_command whose names stand in another order than its controller's joints would move the wrong joints."""

from __future__ import annotations

import pytest

pytest.importorskip("rclpy")
pytestmark = pytest.mark.dds

from rclpy.parameter import Parameter  # noqa: E402
from support.moving_node import MovingNode  # noqa: E402
from support.ros import Listener, isolate, own_domain  # noqa: E402

OUTPUT = {
    "type": "position_command",
    "topic": "arm_controller/commands",
    "from": {"arm": ["shoulder", "elbow"]},
    "names": ["shoulder", "elbow"],
}


@pytest.fixture(scope="module", autouse=True)
def _own_domain(tmp_path_factory):
    isolate(own_domain(), tmp_path_factory.mktemp("ros_log"))


@pytest.fixture
def moving():
    made = MovingNode({"arm": OUTPUT})
    yield made
    made.close()


def answer_of(moving: MovingNode, controller: Listener) -> str | None:
    """What is known once the controller has been asked and has answered."""
    orders = moving.outputs._orders
    requests = []
    hear = orders[0]._hear
    orders[0]._hear = lambda future: (hear(future), requests.append(future))

    def answered() -> bool:
        moving.outputs.refusal()
        moving.executor.spin_once(timeout_sec=0.0)
        return bool(requests)

    controller.wait_for(answered, "answer of the controller")
    return moving.outputs.refusal()


@pytest.mark.parametrize(
    ("joints", "refusal"),
    [
        (["shoulder", "elbow"], None),
        (
            ["elbow", "shoulder"],
            "outputs.arm.names: found shoulder, elbow, but /arm_controller takes them in the order elbow, shoulder "
            "(its parameter joints); write names and from in this order",
        ),
        (["shoulder", "elbow", "wrist"], "in the order shoulder, elbow, wrist"),
        (None, None),
    ],
)
def test_the_order_is_that_of_the_controller(moving, joints, refusal):
    assert moving.outputs.refusal() is None, "no controller has answered"
    controller = Listener("arm_controller")
    try:
        if joints is not None:
            controller.node.declare_parameter("joints", Parameter("joints", value=joints).value)
        found = answer_of(moving, controller)
        assert found == refusal if refusal is None else refusal in found
    finally:
        controller.close()
