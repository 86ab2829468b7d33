"""Every kind of output over real DDS: the executor's commands as the robot's controllers hear them."""

from __future__ import annotations

import sys
from concurrent.futures import Future
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytestmark = pytest.mark.dds

from geometry_msgs.msg import PoseStamped, TwistStamped  # noqa: E402
from std_msgs.msg import Float64, Float64MultiArray  # noqa: E402
from support.motion import PERIOD_S, SECOND, chunk  # noqa: E402
from support.moving_node import MovingNode  # noqa: E402
from support.ros import isolate, own_domain  # noqa: E402
from trajectory_msgs.msg import JointTrajectory  # noqa: E402

from groot_ros.observation import ActionChunk  # noqa: E402

QUARTER_TURN = np.array([0.0, 0.0, np.sqrt(0.5), np.sqrt(0.5)])
POSE = {
    "state": {"hand": {"topic": "hand_pose"}},
    "actions": {"hand": {"meaning": "pose"}},
    "motion": {"strategy": "replace", "hold_s": 0.2, "hold_ramp_s": 0.1, "start_tolerance": 10.0},
}
ARM = {"motion": {"strategy": "replace", "hold_s": 0.2, "hold_ramp_s": 0.1, "start_tolerance": 10.0}}


@pytest.fixture(scope="module", autouse=True)
def _own_domain(tmp_path_factory):
    isolate(own_domain(), tmp_path_factory.mktemp("ros_log"))


@pytest.fixture
def mover():
    made = []

    def make(outputs, **changes) -> MovingNode:
        made.append(MovingNode(outputs, **changes))
        return made[-1]

    yield make
    for node in made:
        node.close()


def hand_plan(stamp_ns: int) -> ActionChunk:
    """The hand goes 0.1 m/s along x, turned by a quarter about z."""
    rows = np.zeros((16, 7))
    rows[:, 0] = 0.5 + 0.1 * PERIOD_S * np.arange(16)
    rows[:, 3:] = QUARTER_TURN
    names = {"hand": ["x", "y", "z", "qx", "qy", "qz", "qw"]}
    return ActionChunk(stamp_ns=stamp_ns, period_s=PERIOD_S, groups={"hand": rows}, names=names)


def test_a_pose_is_sent_at_its_rate_in_its_frame_and_stays_where_it_is_when_the_plan_runs_out(mover):
    output = {"type": "pose", "topic": "target", "from": {"hand": "all"}, "frame": "base_link", "rate_hz": 50}
    moving = mover({"hand": output}, **POSE)
    heard = moving.listen("hand", PoseStamped)
    moving.execute({"hand": [0.5, 0, 0, *QUARTER_TURN]}, hand_plan(moving.now_ns()))
    moving.listener.spin(1.2)
    assert len(heard) >= 5
    assert {message.header.frame_id for message in heard} == {"base_link"}
    ways = [message.pose.position.x for message in heard]
    assert ways == sorted(ways)
    assert 0.5 < ways[-1] < 0.55
    orientation = heard[-1].pose.orientation
    assert [orientation.x, orientation.y, orientation.z, orientation.w] == pytest.approx(QUARTER_TURN.tolist())
    assert heard[-1].pose.position.x == pytest.approx(heard[-2].pose.position.x, abs=5e-4), "at rest"
    count = len(heard)
    moving.listener.spin(0.3)
    assert len(heard) == count, "told so once"


def test_a_twist_follows_the_pose_and_ends_with_zero(mover):
    output = {"type": "twist", "topic": "twist", "from": {"hand": "all"}, "frame": "base_link", "rate_hz": 50}
    moving = mover({"hand": output}, **POSE)
    heard = moving.listen("hand", TwistStamped)
    moving.execute({"hand": [0.5, 0, 0, *QUARTER_TURN]}, hand_plan(moving.now_ns()))
    moving.listener.spin(1.2)
    assert {message.header.frame_id for message in heard} == {"base_link"}
    speeds = [message.twist.linear.x for message in heard]
    assert max(speeds) == pytest.approx(0.1, abs=0.08), "feed-forward, and the gain on what has been left behind"
    assert speeds[-1] == 0.0
    assert all(speed == 0.0 for speed in speeds[speeds.index(0.0) :]), "nothing after the stop"


def test_an_array_and_a_bare_number_are_sent_by_their_own_timers(mover):
    array = {"type": "position_command", "topic": "array", "from": {"arm": "all"}, "names": ["shoulder", "elbow"]}
    number = {"type": "float64", "topic": "number", "from": {"hand": ["finger"]}, "rate_hz": 20}
    moving = mover(
        {"array": array, "hand": number},
        state={
            "arm": {"topic": "joint_states", "joints": ["shoulder", "elbow"]},
            "hand": {"topic": "joint_states", "joints": ["finger"]},
        },
        actions={"arm": {"meaning": "position"}, "hand": {"meaning": "position"}},
        motion={**ARM["motion"], "hold_s": 5.0},
    )
    arrays, numbers = moving.listen("array", Float64MultiArray), moving.listen("hand", Float64)
    rows = np.linspace(0.0, 0.3, 16)[:, None]
    plan = ActionChunk(
        stamp_ns=moving.now_ns(),
        period_s=PERIOD_S,
        groups={"arm": np.hstack([rows, -rows]), "hand": rows},
        names={"arm": ["shoulder", "elbow"], "hand": ["finger"]},
    )
    moving.execute({"arm": [0.0, 0.0], "hand": [0.0]}, plan)
    moving.listener.spin(1.0)
    assert 2.0 < len(arrays) / len(numbers) < 8.0, "100 and 20 a second"
    assert all(message.layout.dim[0].label == "shoulder,elbow" for message in arrays)
    assert arrays[-1].data.tolist() == pytest.approx([0.3, -0.3])
    assert numbers[-1].data == pytest.approx(0.3)


def test_stopping_is_the_last_word_on_every_kind_of_output(mover):
    outputs = {
        "arm": {"type": "joint_trajectory", "topic": "trajectory", "from": {"arm": "all"}},
        "speed": {"type": "position_command", "topic": "speeds", "from": {"wheels": "all"}, "names": ["left", "right"]},
    }
    moving = mover(
        outputs,
        state={"arm": {"topic": "joint_states", "joints": ["shoulder", "elbow"]}},
        actions={"arm": {"meaning": "position"}, "wheels": {"meaning": "velocity", "names": ["left", "right"]}},
        motion={**ARM["motion"], "hold_s": 5.0},
    )
    trajectories, speeds = moving.listen("arm", JointTrajectory), moving.listen("speed", Float64MultiArray)
    plan = chunk(np.linspace([0.0, 0.0], [0.3, -0.3], 16), moving.now_ns())
    plan.groups["wheels"], plan.names["wheels"] = np.full((16, 2), 0.7), ["left", "right"]
    moving.execute({"arm": [0.0, 0.0]}, plan)
    moving.listener.wait_for(lambda: trajectories and len(speeds) > 3, "commands")
    assert speeds[-1].data.tolist() == [0.7, 0.7]
    moving.motion.stop()
    moving.listener.spin(0.5)
    assert speeds[-1].data.tolist() == [0.0, 0.0]
    hold = trajectories[-1]
    assert len(hold.points) == 1
    assert not any(hold.points[0].velocities)
    assert hold.header.stamp.sec == 0, "it begins on arrival"


class FakeServer:
    """In place of rclpy's ActionClient: an action server that may not be there yet."""

    def __init__(self, node, action, name) -> None:
        self.name, self.ready, self.goals = name, False, []

    def server_is_ready(self) -> bool:
        return self.ready

    def send_goal_async(self, goal) -> Future:
        self.goals.append(goal)
        answer = Future()
        answer.set_result(SimpleNamespace(accepted=True))
        return answer

    def destroy(self) -> None:
        pass


@pytest.mark.parametrize("kind", ["gripper_command", "parallel_gripper_command"])
def test_gripper_goals_are_sent_on_a_change_only_and_wait_for_their_server(mover, monkeypatch, kind):
    """control_msgs is not installed everywhere: here its two actions are plain objects with the same fields."""
    command = SimpleNamespace(position=0.0, max_effort=0.0, name=[], effort=[])
    action = SimpleNamespace(Goal=lambda: SimpleNamespace(command=SimpleNamespace(**vars(command))))
    fake = SimpleNamespace(GripperCommand=action, ParallelGripperCommand=action)
    monkeypatch.setitem(sys.modules, "control_msgs", SimpleNamespace(action=fake))
    monkeypatch.setitem(sys.modules, "control_msgs.action", fake)
    monkeypatch.setattr("groot_ros.nodes.gripper_goals.ActionClient", FakeServer)
    output = {"type": kind, "action": "hand/command", "from": {"hand": ["finger"]}, "max_effort": 5.0}
    binary = {"kind": "binary", "open": {"policy": 1.0, "robot": 0.08}, "closed": {"policy": 0.0, "robot": 0.0}}
    moving = mover(
        {"hand": output},
        state={"hand": {"topic": "joint_states", "joints": ["finger"]}},
        actions={"hand": {"meaning": "position", **binary}},
        motion={**ARM["motion"], "hold_s": 5.0},
    )
    server = moving.outputs._grippers["hand"]._client
    assert server.name == "hand/command"
    closes = np.where(np.arange(16) < 8, 0.9, 0.1)[:, None]
    plan = ActionChunk(moving.now_ns() + SECOND // 10, PERIOD_S, {"hand": closes}, {"hand": ["finger"]})
    moving.execute({"hand": [0.08]}, plan)
    moving.listener.spin(0.1)
    assert server.goals == []
    assert "no action server answers on hand/command" in moving.motion.retry()[0]
    server.ready = True
    assert moving.motion.retry() == []
    moving.listener.spin(1.0)
    positions = [goal.command.position for goal in server.goals]
    if kind == "parallel_gripper_command":
        assert [list(position) for position in positions] == [[0.08], [0.0]]
        assert list(server.goals[0].command.name) == ["finger"]
        assert list(server.goals[0].command.effort) == [5.0]
    else:
        assert positions == [0.08, 0.0]
        assert server.goals[0].command.max_effort == 5.0
    moving.motion.stop()
    assert len(server.goals) == 2, "a hold leaves the grip as it is"


@pytest.mark.parametrize("kind", ["GripperCommand", "ParallelGripperCommand"])
def test_the_fields_of_the_gripper_actions_are_those_of_control_msgs(kind):
    actions = pytest.importorskip("control_msgs.action", reason="control_msgs is not installed; the gripper actions")
    command = getattr(actions, kind).Goal().command
    fields = ("position", "max_effort") if kind == "GripperCommand" else ("name", "position", "effort")
    assert all(hasattr(command, field) for field in fields)
