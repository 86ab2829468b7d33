"""The whole road through the node: pictures and states published over DDS, the original's decoded actions back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytestmark = pytest.mark.dds

import torch  # noqa: E402
from support.golden import GoldenCase, load_case  # noqa: E402
from support.golden_embodiment import stored  # noqa: E402
from support.golden_road import tolerance, unpadded_samples  # noqa: E402
from support.policy_node import RELIABLE, Robot, RunningPolicy, image, joints, numbers  # noqa: E402
from support.ros import Listener, isolate, own_domain, stamps_ns  # noqa: E402
from trajectory_msgs.msg import JointTrajectory  # noqa: E402

RATE_HZ = 10
PERIOD_NS = round(1e9 / RATE_HZ)
CASES = ("new_embodiment_b2", "oxe_droid_b1", "real_g1_3cam_b1")


@pytest.fixture(scope="module", autouse=True)
def _own_domain(tmp_path_factory):
    isolate(own_domain(), tmp_path_factory.mktemp("ros_log"))


def names(group: str, width: int) -> list[str]:
    return [f"{group}_{index}" for index in range(width)]


def contract(case: GoldenCase, sample: int) -> dict[str, Any]:
    """A robot that has just what the case has; groups of one joint state, others as arrays, nothing is moved."""
    state: dict[str, Any] = {}
    for group, values in case.raw("state").items():
        width = values.shape[-1]
        if width == 0:
            state[group] = []
        elif group in {"single_arm", "gripper", "joint_position", "left_arm", "waist"}:
            state[group] = {"topic": "joint_states", "joints": names(group, width), "qos": "reliable"}
        else:
            state[group] = {"topic": f"state/{group}", "names": names(group, width), "qos": "reliable"}
    return {
        "contract_version": 1,
        "robot": "golden",
        "embodiment_tag": case.meta["tag"],
        "rate_hz": RATE_HZ,
        "instruction": str(case["raw.language"][sample]),
        "cameras": {key: {"topic": f"{key}/image_raw", "qos": "reliable"} for key in case.raw("video")},
        "state": state,
        "actions": {
            key: {"meaning": "unused", "names": names(key, values.shape[-1])}
            if values.shape[-1]
            else {"meaning": "unused"}
            for key, values in stored(case, "decoded").items()
        },
        "limits": "none",
        "alignment": {"tolerance_s": 0.01, "max_age_s": 5.0},
    }


class GoldenRobot(Robot):
    """Publishes one sample of a case."""

    def __init__(self, listener: Listener, case: GoldenCase, sample: int, written: dict[str, Any]) -> None:
        super().__init__(listener)
        self.case, self.sample, self.written = case, sample, written
        self.publish_state()
        for camera in case.raw("video"):
            self.publisher(f"{camera}/image_raw", type(image(np.zeros((2, 2, 3), np.uint8), 0)))

    def publish_state(self) -> None:
        together: dict[str, float] = {}
        for group, values in self.case.raw("state").items():
            source, row = self.written["state"][group], values[self.sample, -1]
            if isinstance(source, dict) and "joints" in source:
                together |= dict(zip(source["joints"], row, strict=True))
            elif isinstance(source, dict):
                self.publish(source["topic"], numbers(row))
        # In another order than the contract's, and with a stranger among them: joints go by name.
        order = ["stranger", *reversed(together)]
        self.publish("joint_states", joints(order, [together.get(name, 99.0) for name in order], self.now_ns()))

    def publish_frames(self, row: int, stamp_ns: int) -> None:
        for index, (camera, frames) in enumerate(self.case.raw("video").items()):
            encoding = "bgr8" if index == 0 else "rgb8"
            self.publish(f"{camera}/image_raw", image(frames[self.sample, row], stamp_ns, encoding))


@pytest.mark.parametrize("name", CASES)
def test_published_images_and_states_come_back_as_the_original_s_decoded_actions(name, tmp_path):
    case = load_case("model", name)
    sample = unpadded_samples(case)[0]
    written = contract(case, sample)
    listener = Listener()
    policy = RunningPolicy(written, tmp_path, seed=case.meta["seed"])
    try:
        policy.activate()
        embodiment = policy.node.session.policy.embodiment
        if len(case["raw.language"]) > 1:  # the seed's noise is that of the whole batch
            noise = torch.from_numpy(case["initial_noise"][sample : sample + 1])
            policy.node.session.policy.noise = lambda batch, seed=None: noise
        robot = GoldenRobot(listener, case, sample, written)
        chunks = listener.listen(JointTrajectory, "/groot_policy/action_chunk", RELIABLE)
        robot.wait_until_heard("joint_states", *(f"{camera}/image_raw" for camera in case.raw("video")))
        listener.wait_for(
            lambda: listener.node.count_publishers("/groot_policy/action_chunk"), "publisher of ~/action_chunk"
        )
        stamp_ns = publish_history(robot, embodiment.modalities.video.delta_indices)

        def arrived() -> JointTrajectory | None:
            robot.publish_state()
            return next((chunk for chunk in chunks if stamps_ns([chunk])[0] == stamp_ns), None)

        chunk = listener.wait_for(arrived, "chunk of the newest observation")
    finally:
        policy.close()
        listener.close()
    compare(chunk, case, sample, embodiment)


def publish_history(robot: GoldenRobot, delta_indices: tuple[int, ...]) -> int:
    """Publish each frame of the history at its own time; the stamp of the newest."""
    robot.publish_state()
    robot.listener.spin(0.2)  # arrays bear no stamp: those from before the frames must have arrived before them
    start_ns = robot.now_ns()
    for row, back in enumerate(delta_indices):
        stamp_ns = start_ns + (back - delta_indices[0]) * PERIOD_NS

        def is_time(stamp_ns: int = stamp_ns) -> bool:
            robot.publish_state()
            return robot.now_ns() >= stamp_ns

        robot.listener.wait_for(is_time, "time of the frame")
        robot.publish_frames(row, stamp_ns)
    return stamp_ns


def compare(chunk: JointTrajectory, case: GoldenCase, sample: int, embodiment) -> None:
    wanted = stored(case, "decoded")
    columns = {name: index for index, name in enumerate(chunk.joint_names)}
    rows = np.array([point.positions for point in chunk.points])
    assert len(columns) == sum(values.shape[-1] for values in wanted.values())
    for key, values in wanted.items():
        width = values.shape[-1]
        found = rows[:, [columns[f"{key}/{name}"] for name in names(key, width)]]
        assert found.shape == values[sample].shape
        np.testing.assert_allclose(found, values[sample], err_msg=key, **tolerance(case, embodiment, key))
    offsets = [point.time_from_start.sec * 10**9 + point.time_from_start.nanosec for point in chunk.points]
    assert offsets == [round(row * 1e9 / RATE_HZ) for row in range(len(rows))]
