"""Training windows are what the live policy would have seen, with the actions that followed."""

import numpy as np
import pytest
from support import datasets

from groot_ros.dataset.reader import open_dataset
from groot_ros.dataset.windows import TrainingWindows, WindowSpec
from groot_ros.errors import DatasetError


def spec(**changes):
    values = {
        "cameras": ("wrist", "front"),
        "video_delta_indices": (-15, 0),
        "state_keys": ("single_arm", "gripper"),
        "state_delta_indices": (0,),
        "action_keys": ("single_arm", "gripper"),
        "action_delta_indices": tuple(range(8)),
    }
    return WindowSpec(**values | changes)


def test_a_window_holds_the_frames_states_and_actions_of_its_rows(dataset_root):
    window = TrainingWindows(open_dataset(dataset_root), spec()).at(1, 16)
    observation = window.observation
    assert list(observation.images) == ["wrist", "front"]
    for camera, frames in observation.images.items():
        np.testing.assert_array_equal(frames, [datasets.frame(camera, 1, 1), datasets.frame(camera, 1, 16)])
    np.testing.assert_array_equal(observation.state["single_arm"], np.float32([datasets.state(1, 16)["single_arm"]]))
    assert observation.state["single_arm"].dtype == np.float32
    assert observation.instruction == "open the drawer"
    assert observation.stamp_ns == datasets.stamp_ns(16)
    assert observation.image_stamps_ns["front"] == tuple(datasets.image_stamps_ns(row)["front"] for row in (1, 16))
    wanted = np.float32([datasets.action(1, row)["single_arm"] for row in range(16, 24)])
    np.testing.assert_array_equal(window.actions["single_arm"], wanted.astype(np.float64))


@pytest.mark.parametrize("row", [0, 7, 14])
def test_a_history_before_the_episode_is_its_first_frame_and_never_its_end(dataset_root, row):
    window = TrainingWindows(open_dataset(dataset_root), spec()).at(2, row)
    np.testing.assert_array_equal(window.observation.images["front"][0], datasets.frame("front", 2, 0))
    np.testing.assert_array_equal(window.observation.images["front"][1], datasets.frame("front", 2, row))


def test_windows_are_all_rows_whose_actions_lie_in_their_episode(dataset_root):
    windows = TrainingWindows(open_dataset(dataset_root), spec())
    assert len(windows) == (30 - 7) + (25 - 7) + (28 - 7)
    places = [windows.place(number) for number in range(len(windows))]
    assert places == [(e, row) for e, rows in enumerate((30, 25, 28)) for row in range(rows - 7)]
    assert (windows[23].episode, windows[23].row) == (1, 0)
    with pytest.raises(IndexError, match="there are 62 windows, but window 62"):
        windows[62]
    with pytest.raises(DatasetError, match="row 23 of episode 0 has no window: it needs the actions up to row 30"):
        windows.at(0, 23)


def test_an_episode_shorter_than_the_horizon_gives_none(dataset_root):
    windows = TrainingWindows(open_dataset(dataset_root), spec(action_delta_indices=tuple(range(27))))
    assert [windows.place(number)[0] for number in range(len(windows))] == [0, 0, 0, 0, 2, 2]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"action_delta_indices": tuple(range(40))}, "no training window: the longest of its 3 episodes has 30 rows"),
        ({"cameras": ("side",)}, "has no camera side; it has front, wrist"),
        ({"state_keys": ("arm",)}, "has no state group arm; it has single_arm, gripper"),
        ({"action_keys": ("arm",)}, "has no action group arm"),
        ({"video_delta_indices": (0, 1)}, "sees nothing of the future"),
        ({"action_delta_indices": (-1, 0)}, "must start at 0 or later"),
    ],
)
def test_what_does_not_fit_the_dataset_is_refused(dataset_root, changes, message):
    with pytest.raises(DatasetError, match=message):
        TrainingWindows(open_dataset(dataset_root), spec(**changes))
