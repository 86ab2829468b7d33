"""Real recordings, as bags and as they are, give a report."""

from __future__ import annotations

import numpy as np
import pytest
from support.arm_bags import SECOND, START_NS, BagWriter, compressed, joints
from support.evaluation import arm_contract, bag_episode, replay
from support.recordings import recording

from groot_ros.dataset.reader import open_dataset
from groot_ros.evaluation.metrics import motion_metrics
from groot_ros.evaluation.sources import open_episodes

ROWS = 40
HORIZON = 8


def contract_of(dataset):
    """The contract of a dataset: every group is a list of joints on a topic of its own."""
    modality = dataset.modality

    def sources(kind):
        groups = modality.state if kind == "state" else modality.action
        return {
            key: {"topic": f"{kind}/{key}", "joints": [f"joint_{row}" for row in range(part.end - part.start)]}
            for key, part in groups.items()
        }

    # The robot of a dataset with one group of each kind measures what it is told to do.
    state = {key: key if key in modality.state else next(iter(modality.state)) for key in modality.action}
    actions = {
        key: {"meaning": "position", "names": source["joints"], "state": state[key]}
        for key, source in sources("action").items()
    }
    first = next(iter(actions))
    others = {key: {"meaning": "unused", "names": action["names"]} for key, action in actions.items() if key != first}
    return arm_contract(
        rate_hz=dataset.info.fps,
        cameras={camera: {"topic": f"{camera}/compressed"} for camera in modality.video},
        state=sources("state"),
        actions={first: actions[first], **others},
        outputs={"all": {"type": "joint_trajectory", "topic": "trajectory", "from": {first: "all"}}},
        record=sources("action"),
    )


@pytest.mark.parametrize("name", ["so101_ros2_v3.0", "gr1_pick_n_place_v2.0"])
def test_a_bag_made_from_a_real_recording_gives_a_report_without_error(name, tmp_path):
    dataset = open_dataset(recording(name))
    contract = contract_of(dataset)
    rows = min(ROWS, dataset.episodes[0].length)
    frames = {camera: dataset.frames(0, camera, range(rows)) for camera in dataset.modality.video}
    with BagWriter(tmp_path / "bag") as writer:
        for row in range(rows):
            stamp_ns = START_NS + round(row * SECOND / dataset.info.fps)
            for kind, groups, read in (
                ("state", dataset.modality.state, dataset.state),
                ("action", dataset.modality.action, dataset.action),
            ):
                for key in groups:
                    values = read(0, key)[row].astype(np.float64)
                    names = [f"joint_{number}" for number in range(len(values))]
                    writer.write(f"/{kind}/{key}", joints(names, values, stamp_ns), stamp_ns)
            for camera, pictures in frames.items():
                writer.write(f"/{camera}/compressed", compressed(pictures[row], stamp_ns), stamp_ns + 1_000_000)
    found = replay([bag_episode(tmp_path / "bag", contract, HORIZON)], contract, tmp_path)
    metrics = motion_metrics(found.logs("policy"), found.scale, contract.period_s)
    assert metrics["chunks"] > 3
    assert {values["all"] for values in metrics["mae"].values()} == {0.0}
    assert found.episodes[0].view["chunks"][0]["pictures"]


@pytest.mark.parametrize("name", ["so101_ros2_v3.0", "gr1_pick_n_place_v2.0"])
def test_an_episode_of_a_real_dataset_gives_a_report_without_error(name, tmp_path):
    path = recording(name)
    contract = contract_of(open_dataset(path))
    episodes, tasks = open_episodes(
        [path], contract, video_history=(0,), state_history=(0,), horizon=HORIZON, chosen=(0,)
    )
    found = replay(episodes, contract, tmp_path)
    metrics = motion_metrics(found.logs("policy"), found.scale, contract.period_s)
    assert tasks
    assert {values["all"] for values in metrics["mae"].values()} == {0.0}
    first = next(iter(contract.actions))
    assert metrics["seam_jump"][first]["max"] == pytest.approx(0.0, abs=1e-9)
