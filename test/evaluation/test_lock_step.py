"""The proof that replay tells the truth about live data: the same bag over DDS and offline gives the same bytes.

Not about timing: in lock-step the node always has the time it needs.
"""

from __future__ import annotations

import numpy as np
import pytest
import yaml

pytest.importorskip("rclpy", reason="rclpy is not installed")

from support.arm_bags import write_arm_bag
from support.evaluation import arm_dict, bag_episode
from support.policy_node import RunningPolicy
from support.ros import isolate, own_domain

from groot_ros.checkpoint import write_tiny_checkpoint
from groot_ros.contract import load_contract
from groot_ros.evaluation.evaluation import Settings, evaluate
from groot_ros.evaluation.live_chunks import LivePilots, load_chunks, save_chunks
from groot_ros.evaluation.loading import load_policy
from groot_ros.evaluation.policies import RecordedActions
from groot_ros.nodes.player import play_once

pytestmark = pytest.mark.dds
SEED = 7


@pytest.fixture(scope="module")
def ros(tmp_path_factory):
    isolate(own_domain(), tmp_path_factory.mktemp("ros_log"))


def reliable(source):
    return {**source, "qos": "reliable"}


@pytest.fixture
def robot(tmp_path):
    """A contract in synchronous mode with reliable topics, its checkpoint, and a bag."""
    plain = arm_dict()
    written = arm_dict(
        cameras={camera: reliable(source) for camera, source in plain["cameras"].items()},
        state={group: reliable(source) for group, source in plain["state"].items()},
        motion={"mode": "synchronous", "execution_horizon": 4, "start_ramp_s": 0.05},
    )
    (tmp_path / "contract.yaml").write_text(yaml.safe_dump(written, sort_keys=False))
    write_tiny_checkpoint(tmp_path / "checkpoint", embodiment_tag="new_embodiment", fps=20.0)
    write_arm_bag(tmp_path / "bag", 1.5, state_rate_hz=40)
    return tmp_path, written


class Watched:
    """Keeps what a policy sees and says."""

    def __init__(self, policy):
        self.seen = []
        predict_batch = policy.predict_batch

        def watched(requests):
            (request,) = requests
            observation = request.observation
            images = {camera: frames.copy() for camera, frames in observation.images.items()}
            (prediction,) = predict_batch(requests)
            self.seen.append((observation, images, prediction.chunk))
            return [prediction]

        policy.predict_batch = watched


def test_the_same_bag_over_dds_and_offline_gives_the_same_observations_and_chunks_byte_for_byte(ros, robot):
    folder, written = robot
    node = RunningPolicy(
        written, folder, checkpoint=str(folder / "checkpoint"), seed=SEED, use_sim_time=True, dry_run=True
    )
    try:
        node.activate()
        live = Watched(node.node.session.policy)
        played = play_once(folder / "bag", load_contract(folder / "contract.yaml"), lock_step=True)
    finally:
        node.close()

    contract = load_contract(folder / "contract.yaml")
    policy = load_policy(str(folder / "checkpoint"), contract, device="cpu")
    offline = Watched(policy)
    episode = bag_episode(folder / "bag", contract, policy.horizon)
    result = evaluate(
        [episode], contract, policy, Settings(seed=SEED, probes=0), actions_path=folder / "offline.parquet"
    )

    assert len(offline.seen) >= 5
    assert len(live.seen) == len(offline.seen) == len(played.chunks)
    for (seen, images, chunk), (wanted, wanted_images, wanted_chunk), sent in zip(
        live.seen, offline.seen, played.chunks, strict=True
    ):
        assert seen.stamp_ns == wanted.stamp_ns
        assert seen.image_stamps_ns == wanted.image_stamps_ns
        assert seen.instruction == wanted.instruction
        assert list(images) == list(wanted_images)
        for camera, frames in images.items():
            assert frames.tobytes() == wanted_images[camera].tobytes()
        for group, values in seen.state.items():
            assert values.tobytes() == wanted.state[group].tobytes()
        for group, rows in wanted_chunk.groups.items():
            assert chunk.groups[group].tobytes() == rows.tobytes()
            assert sent.chunk.groups[group].tobytes() == rows.tobytes()
        assert sent.chunk.stamp_ns == wanted_chunk.stamp_ns

    # The chunks that came over DDS land in the same report, with the same numbers.
    save_chunks(played.chunks, folder / "chunks.parquet")
    chunks = load_chunks(folder / "chunks.parquet")
    of_live = evaluate(
        [bag_episode(folder / "bag", contract, policy.horizon)],
        contract,
        RecordedActions(contract, policy.horizon),
        Settings(seed=SEED),
        actions_path=folder / "live.parquet",
        make_pilot=LivePilots(chunks),
    )
    one, other = result.logs("policy")[0], of_live.logs("policy")[0]
    assert other.predictions == one.predictions
    np.testing.assert_array_equal(other.errors.absolute, one.errors.absolute)
    np.testing.assert_array_equal(other.executed.rows, one.executed.rows)
