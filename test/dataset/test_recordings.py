"""Recordings that nobody of this project made: real faults are read around, or told."""

import numpy as np
import pytest
from support.recordings import recording

from groot_ros.dataset.quality.finding import Severity
from groot_ros.dataset.quality.report import check_dataset
from groot_ros.dataset.reader import open_dataset
from groot_ros.dataset.windows import TrainingWindows, WindowSpec
from groot_ros.errors import DatasetError


def test_a_simulated_humanoid_in_the_oldest_layout_is_read():
    dataset = open_dataset(recording("gr1_pick_n_place_v2.0"))
    assert [episode.length for episode in dataset.episodes] == [416, 470, 470, 412, 328]
    assert dataset.state(0, "left_arm").shape == (416, 7)
    assert dataset.instruction(2, 5) == "pick the meat from the counter and place it in the plate"
    assert dataset.instruction(2, 5, "human.validity") == "valid"
    frames = dataset.frames(1, "ego_view", [469, 0])
    assert frames.shape == (2, 256, 256, 3)
    assert frames.std() > 20
    assert np.abs(frames[0].astype(int) - frames[1]).mean() > 1


def test_its_camera_of_the_wrong_name_is_told_with_both_spellings():
    dataset = open_dataset(recording("gr1_pick_n_place_v2.0"))
    with pytest.raises(
        DatasetError, match=r"'observation.images.egoview', but its videos lie under 'observation.images.ego_view'"
    ):
        dataset.feature_video(0, "observation.images.egoview")


def test_a_real_arm_in_the_new_layout_is_read_though_its_episodes_share_one_video():
    dataset = open_dataset(recording("so101_ros2_v3.0"))
    assert [episode.length for episode in dataset.episodes] == [383, 386, 379, 382, 90, 162]
    assert dataset.state(4, "state").shape == (90, 6)
    assert dataset.instruction(5, 0) == "pick and place"
    assert dataset.feature_video(4, "observation.images.wrist")[1] == 383 + 386 + 379 + 382
    assert dataset.frames(4, "wrist", [0, 89]).shape == (2, 360, 640, 3)
    windows = TrainingWindows(
        dataset,
        WindowSpec(
            cameras=("wrist",),
            video_delta_indices=(-15, 0),
            state_keys=("state",),
            state_delta_indices=(0,),
            action_keys=("action",),
            action_delta_indices=tuple(range(16)),
        ),
    )
    assert len(windows) == 1782 - 6 * 15
    first = windows.at(5, 0).observation.images["wrist"]
    np.testing.assert_array_equal(first[0], first[1])


def test_the_arm_that_never_moves_is_flagged():
    report = check_dataset(recording("so101_ros2_v3.0"), quick=True)
    frozen = [finding for finding in report.findings if finding.check == "frozen"]
    assert {finding.subject for finding in frozen} == {"observation.state", "action"}
    assert all(finding.severity is Severity.ERROR for finding in frozen)
    assert frozen[0].episodes == (0, 1, 2, 3, 4, 5)
    assert report.has_errors
    assert not [finding for finding in report.findings if finding.check == "statistics"]


def test_the_faults_of_the_simulated_recording_are_all_reported():
    report = check_dataset(recording("gr1_pick_n_place_v2.0"), quick=True)
    told = {(finding.check, finding.subject): finding for finding in report.findings}
    assert "'observation.images.ego_view'" in told["video", "observation.images.egoview"].sentence
    assert "split train is 0:100, but there are 5 episodes" in [finding.sentence for finding in report.findings]
    assert "the first row is at 0.050000 s" in told["time stamps", "timestamp"].sentence
    assert "18 of 44 never change" in told["constant dimension", "observation.state"].sentence
    assert [finding.check for finding in report.findings if finding.severity is Severity.ERROR] == ["video"]
