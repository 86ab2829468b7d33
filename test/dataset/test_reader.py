"""Datasets that others made are read: several episodes in one file, other types, other names, or a clear sentence."""

import json
import pickle
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import datasets

from groot_ros.dataset.modality import Modality
from groot_ros.dataset.reader import open_dataset
from groot_ros.dataset.video_writer import VideoEncoding, VideoWriter
from groot_ros.errors import DatasetError


@pytest.fixture
def copy(dataset_root, tmp_path):
    return shutil.copytree(dataset_root, tmp_path / "copy")


@pytest.fixture
def old(copy):
    """The same as GR00T v2.1 sees it."""
    return copy / "groot"


def edit_json(path, change):
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


@pytest.fixture
def packed(copy):
    """The dataset as LeRobot itself packs it: one file of rows and one video for all episodes, lists of any size."""
    tables = [pq.read_table(copy / f"data/chunk-000/file-00{episode}.parquet") for episode in range(3)]
    rows = pa.concat_tables(tables)
    for name in ("observation.state", "action"):
        place = rows.column_names.index(name)
        rows = rows.set_column(place, name, rows.column(name).cast(pa.list_(pa.float32())))
    shutil.rmtree(copy / "data")
    shutil.rmtree(copy / "groot")
    (copy / "data/chunk-000").mkdir(parents=True)
    pq.write_table(rows, copy / "data/chunk-000/file-000.parquet")
    path = copy / "meta/episodes/chunk-000/file-000.parquet"
    episodes = pq.read_table(path).to_pylist()
    for camera in datasets.SIZES:
        folder = copy / f"videos/observation.images.{camera}/chunk-000"
        shutil.rmtree(folder)
        folder.mkdir()
        with VideoWriter(
            folder / "file-000.mp4", fps=datasets.FPS, height=32, width=48, encoding=VideoEncoding(codec="lossless")
        ) as video:
            for episode, length in enumerate((30, 25, 28)):
                for row in range(length):
                    video.add(datasets.frame(camera, episode, row))
        for episode in episodes:
            episode[f"videos/observation.images.{camera}/file_index"] = 0
            for end, row in (("from", "dataset_from_index"), ("to", "dataset_to_index")):
                episode[f"videos/observation.images.{camera}/{end}_timestamp"] = episode[row] / datasets.FPS
    for episode in episodes:
        episode["data/file_index"] = 0
    pq.write_table(pa.Table.from_pylist(episodes), path)
    return copy


def test_episodes_that_share_files_are_found_in_them(packed):
    dataset = open_dataset(packed)
    for episode, length in enumerate((30, 25, 28)):
        states = np.float32([np.concatenate(list(datasets.state(episode, row).values())) for row in range(length)])
        np.testing.assert_array_equal(dataset.column(episode, "observation.state"), states)
        for row in (0, length - 1):
            (frame,) = dataset.frames(episode, "front", [row])
            np.testing.assert_array_equal(frame, datasets.frame("front", episode, row))


def test_without_modality_json_the_whole_columns_are_one_group_each(packed):
    dataset = open_dataset(packed)
    assert dataset.state(0, "state").shape == (30, 4)
    assert dataset.action(0, "action").shape == (30, 4)
    assert list(dataset.modality.video) == ["front", "wrist"]
    named = open_dataset(packed, Modality.from_groups({"arm": 3, "gripper": 1}, {"arm": 3, "gripper": 1}, ["front"]))
    np.testing.assert_array_equal(named.state(1, "gripper")[:, 0], dataset.state(1, "state")[:, 3])


def test_a_dataset_goes_to_another_process_and_opens_its_own_files_there(dataset_root):
    dataset = open_dataset(dataset_root)
    dataset.frames(0, "front", [3])
    again = pickle.loads(pickle.dumps(dataset))
    np.testing.assert_array_equal(again.frames(0, "front", [3]), dataset.frames(0, "front", [3]))


def test_the_task_comes_from_the_annotation_that_is_asked_for(dataset_root):
    dataset = open_dataset(dataset_root)
    assert dataset.instruction(1, 0, "human.action.task_description") == "open the drawer"
    with pytest.raises(DatasetError, match=r"no annotation 'human.task'.*it has human.action.task_description"):
        dataset.instruction(1, 0, "human.task")


def test_a_camera_that_is_stored_under_another_spelling_is_told_with_both(old):
    def rename(info):
        info["features"]["observation.images.wristcam"] = info["features"].pop("observation.images.wrist")

    edit_json(old / "meta/info.json", rename)
    edit_json(old / "meta/modality.json", lambda content: content["video"].pop("wrist"))
    shutil.move(old.parent / "videos/observation.images.wrist", old.parent / "videos/observation.images.wrist_cam")
    with pytest.raises(
        DatasetError, match=r"'observation.images.wristcam', but its videos lie under 'observation.images.wrist_cam'"
    ):
        open_dataset(old).feature_video(0, "observation.images.wristcam")


def test_a_camera_that_modality_json_spells_differently_is_refused_with_the_right_name(old):
    edit_json(
        old / "meta/modality.json",
        lambda content: content["video"].update(wrist={"original_key": "observation.images.wirst"}),
    )
    with pytest.raises(DatasetError, match=r"'observation.images.wirst', but .*do you mean 'observation.images.wrist'"):
        open_dataset(old)


def test_a_slice_beyond_its_column_is_refused_with_the_numbers(old):
    edit_json(old / "meta/modality.json", lambda content: content["state"]["gripper"].update(end=9))
    with pytest.raises(DatasetError, match=r"state.gripper is to be dimensions 3 to 9 of 'observation.state'"):
        open_dataset(old)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"codebase_version": "v1.6"}, "codebase_version is v1.6, but only v3.0, v2.1, v2.0 are read"),
        ({"fps": 0}, "fps must be a positive number, but is 0"),
        ({"total_episodes": None}, "total_episodes must be a whole number"),
        ({"total_episodes": 4}, "no row for episode 3, but meta/info.json counts 4 episodes"),
        ({"features": ["action"]}, "features must map names to objects"),
    ],
)
def test_an_info_that_is_wrong_is_refused(copy, change, message):
    edit_json(copy / "meta/info.json", lambda info: info.update(change))
    with pytest.raises(DatasetError, match=message):
        open_dataset(copy)


def test_a_directory_that_is_no_dataset_names_the_one_inside(dataset_root):
    with pytest.raises(DatasetError, match=r"is not a LeRobot dataset: there is no meta/info.json in it; .*cubes has"):
        open_dataset(dataset_root.parent)


def test_damaged_files_are_named(copy):
    dataset = open_dataset(copy)
    (copy / "data/chunk-000/file-000.parquet").write_bytes(b"PAR1 no more")
    (copy / "data/chunk-000/file-001.parquet").unlink()
    with pytest.raises(DatasetError, match=r"file-000.parquet is not a parquet file that can be read"):
        dataset.rows(0)
    with pytest.raises(DatasetError, match=r"file-001.parquet is missing"):
        dataset.rows(1)
    (copy / "meta/info.json").write_text('{"fps": ')
    with pytest.raises(DatasetError, match=r"info.json cannot be read as JSON"):
        open_dataset(copy)


def test_lines_without_what_is_needed_are_named_with_their_number(old):
    path = old / "meta/episodes.jsonl"
    path.write_text(path.read_text().replace('"length": 25', '"size": 25'))
    with pytest.raises(DatasetError, match=r"episodes.jsonl, line 2: has no length"):
        open_dataset(old)
    path.write_text('{"episode_index": 0, "tasks": ["a"], "length": 30}\nhello\n')
    with pytest.raises(DatasetError, match=r"episodes.jsonl, line 2: not JSON"):
        open_dataset(old)


def test_pictures_within_the_rows_are_refused_as_what_they_are(copy):
    def as_picture(info):
        info["features"]["observation.images.top"] = {"dtype": "image", "shape": [32, 48, 3], "names": None}

    edit_json(copy / "meta/info.json", as_picture)
    with pytest.raises(DatasetError, match=r"no camera 'top'.*observation.images.top are pictures in the rows"):
        open_dataset(copy).frames(0, "top", [0])


def test_a_camera_without_a_place_in_the_episodes_table_is_named(copy):
    def one_more(info):
        info["features"]["observation.images.top"] = info["features"]["observation.images.front"]

    edit_json(copy / "meta/info.json", one_more)
    with pytest.raises(DatasetError, match=r"episode 0 names no file for the camera 'observation.images.top'"):
        open_dataset(copy).feature_video(0, "observation.images.top")


def test_rows_of_another_episode_are_not_taken_for_this_one(copy):
    shutil.copy(copy / "data/chunk-000/file-002.parquet", copy / "data/chunk-000/file-001.parquet")
    with pytest.raises(DatasetError, match=r"is to have 25 rows|carry the episode_index 2"):
        open_dataset(copy).rows(1)


def test_a_video_shorter_than_its_episode_is_refused_with_both_numbers(copy):
    folder = copy / "videos/observation.images.front/chunk-000"
    shutil.copy(folder / "file-001.mp4", folder / "file-000.mp4")
    with pytest.raises(DatasetError, match="25 frames from the start of episode 0, but the episode has 30 rows"):
        open_dataset(copy).frames(0, "front", [0])


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda dataset: dataset.rows(3), "has 3 episodes, but episode 3 is asked for"),
        (lambda dataset: dataset.frames(0, "front", [30]), "episode 0 has 30 rows, but row 30"),
        (lambda dataset: dataset.frames(0, "fornt", [0]), r"no camera 'fornt' \(do you mean 'front'\?\)"),
        (lambda dataset: dataset.state(0, "single_am"), r"no state group 'single_am' \(do you mean 'single_arm'\?\)"),
        (lambda dataset: dataset.column(0, "actions"), r"no numeric column 'actions' \(do you mean 'action'\?\)"),
    ],
)
def test_what_is_not_there_is_refused_with_what_is(dataset_root, ask, message):
    with pytest.raises(DatasetError, match=message):
        ask(open_dataset(dataset_root))
