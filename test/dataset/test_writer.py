"""What is written is what was given, in the places and types that LeRobot and GR00T expect."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import datasets
from support.datasets import add_rows, make_spec, write_dataset

from groot_ros.dataset import metadata_v3
from groot_ros.dataset.layout import LayoutVersion
from groot_ros.dataset.reader import open_dataset
from groot_ros.dataset.spec import DatasetSpec
from groot_ros.dataset.stage import EpisodeStage
from groot_ros.dataset.video_writer import VideoEncoding
from groot_ros.dataset.writer import DatasetWriter
from groot_ros.errors import DatasetError


def assert_is_what_was_given(dataset, lengths=(30, 25, 28)):
    assert [episode.length for episode in dataset.episodes] == list(lengths)
    for episode, length in enumerate(lengths):
        for key in ("single_arm", "gripper"):
            states = np.array([datasets.state(episode, row)[key] for row in range(length)], dtype=np.float32)
            actions = np.array([datasets.action(episode, row)[key] for row in range(length)], dtype=np.float32)
            np.testing.assert_array_equal(dataset.state(episode, key), states)
            np.testing.assert_array_equal(dataset.action(episode, key), actions)
        for camera in datasets.SIZES:
            frames = np.array([datasets.frame(camera, episode, row) for row in range(length)])
            np.testing.assert_array_equal(dataset.frames(episode, camera, range(length)), frames)
        assert dataset.instruction(episode, 0) == datasets.TASKS[episode % 2]
        assert dataset.episodes[episode].tasks == (datasets.TASKS[episode % 2],)
        stamps = dataset.stamps(episode)
        assert stamps.stamps_ns["row"].tolist() == [datasets.stamp_ns(row) for row in range(length)]
        for camera in datasets.SIZES:
            wanted = [datasets.image_stamps_ns(row)[camera] for row in range(length)]
            assert stamps.stamps_ns[f"observation.images.{camera}"].tolist() == wanted
        assert stamps.labels == {"name": f"bag_{episode}", "success": episode != 1}


def test_a_dataset_gives_back_every_row_frame_task_and_stamp(dataset_root):
    assert_is_what_was_given(open_dataset(dataset_root))


def test_the_groot_view_shows_the_same_data_without_a_copy(dataset_root):
    assert_is_what_was_given(open_dataset(dataset_root / "groot"))
    assert {path.suffix for path in (dataset_root / "groot").rglob("*") if path.is_file()} == {".json", ".jsonl"}


def test_the_old_layout_gives_back_the_same(tmp_path):
    root = write_dataset(tmp_path / "old", version=LayoutVersion.V2_1)
    dataset = open_dataset(root)
    assert dataset.info.version is LayoutVersion.V2_1
    assert_is_what_was_given(dataset)
    assert (root / "data/chunk-000/episode_000002.parquet").is_file()
    assert (root / "videos/chunk-000/observation.images.wrist/episode_000002.mp4").is_file()
    assert not (root / "groot").exists()


def test_every_episode_has_files_of_its_own_and_nothing_else_is_left(dataset_root):
    files = {str(path.relative_to(dataset_root)) for path in dataset_root.rglob("*") if path.is_file()}
    wanted = {f"data/chunk-000/file-{episode:03d}.parquet" for episode in range(3)}
    wanted |= {f"stamps/chunk-000/file-{episode:03d}.parquet" for episode in range(3)}
    for camera in datasets.SIZES:
        wanted |= {f"videos/observation.images.{camera}/chunk-000/file-{episode:03d}.mp4" for episode in range(3)}
    wanted |= {"meta/info.json", "meta/stats.json", "meta/tasks.parquet", "meta/episodes/chunk-000/file-000.parquet"}
    view = ("info.json", "episodes.jsonl", "episodes_stats.jsonl", "tasks.jsonl", "modality.json", "stats.json")
    wanted |= {f"groot/meta/{name}" for name in (*view, "relative_stats.json")}
    assert files == wanted


def test_columns_have_the_types_that_lerobot_writes(dataset_root):
    schema = pq.read_schema(dataset_root / "data/chunk-000/file-001.parquet")
    assert schema.field("observation.state").type == pa.list_(pa.float32(), 4)
    assert schema.field("action").type == pa.list_(pa.float32(), 4)
    assert schema.field("timestamp").type == pa.float32()
    for name in ("frame_index", "episode_index", "index", "task_index"):
        assert schema.field(name).type == pa.int64()
    rows = open_dataset(dataset_root).rows(1)
    np.testing.assert_array_equal(rows["timestamp"], (np.arange(25) / datasets.FPS).astype(np.float32))
    np.testing.assert_array_equal(rows["index"], np.arange(30, 55))
    np.testing.assert_array_equal(rows["frame_index"], np.arange(25))


def test_the_episodes_table_has_statistics_of_every_feature(dataset_root):
    table = pq.read_table(dataset_root / "meta/episodes/chunk-000/file-000.parquet")
    features = json.loads((dataset_root / "meta/info.json").read_text())["features"]
    for feature in features:
        for key in ("min", "max", "mean", "std", "count", "q01", "q10", "q50", "q90", "q99"):
            assert f"stats/{feature}/{key}" in table.column_names
    row = table.to_pylist()[1]
    assert (row["dataset_from_index"], row["dataset_to_index"], row["data/file_index"]) == (30, 55, 1)
    assert row["videos/observation.images.front/from_timestamp"] == 0.0
    assert np.shape(row["stats/observation.images.front/mean"]) == (3, 1, 1)


def test_joint_names_stand_in_the_features_in_order(dataset_root):
    features = json.loads((dataset_root / "meta/info.json").read_text())["features"]
    assert features["observation.state"]["names"] == ["shoulder", "elbow", "wrist", "gripper"]


def test_names_that_occur_in_two_groups_are_told_apart_by_the_group():
    spec = make_spec(state={"left": ("x", "y"), "right": ("x", "y")}, relative_actions=())
    assert spec.features()["observation.state"]["names"] == ["left/x", "left/y", "right/x", "right/y"]


def test_writing_on_later_continues_the_dataset(tmp_path):
    root = write_dataset(tmp_path / "two", lengths=(30,))
    with DatasetWriter(root, make_spec()) as writer:
        assert writer.names == {"bag_0": 0}
        with writer.episode("bag_1", labels={"success": False}) as stage:
            add_rows(stage, 1, 25)
    for view in (root, root / "groot"):
        assert_is_what_was_given(open_dataset(view), lengths=(30, 25))
    total = json.loads((root / "meta/stats.json").read_text())["action"]["count"]
    assert total == [55]


def test_stages_that_other_processes_finished_are_taken_in_by_name(tmp_path):
    spec, root = make_spec(), tmp_path / "staged"
    for episode in (1, 0):
        with EpisodeStage(root, spec, f"bag_{episode}", labels={"success": episode != 1}) as stage:
            add_rows(stage, episode, (30, 25)[episode])
    with DatasetWriter(root, spec) as writer:
        assert writer.commit_all() == [0, 1]
        with pytest.raises(DatasetError, match="has 'bag_1' already, as episode 1"):
            writer.commit("bag_1")
    assert_is_what_was_given(open_dataset(root), lengths=(30, 25))


def test_an_exception_while_recording_discards_the_episode(tmp_path):
    root = write_dataset(tmp_path / "one", lengths=(30,))
    with DatasetWriter(root, make_spec()) as writer:
        with pytest.raises(KeyError, match="9"), writer.episode("broken") as stage:
            add_rows(stage, 9, {}[9])
        assert writer.total_episodes == 1
    assert_is_what_was_given(open_dataset(root), lengths=(30,))


def test_many_episodes_fill_several_tables(tmp_path, monkeypatch):
    monkeypatch.setattr(metadata_v3, "EPISODES_PER_TABLE", 2)
    spec = make_spec(cameras={}, relative_actions=())
    with DatasetWriter(tmp_path, spec) as writer:
        for episode in range(5):
            with writer.episode(f"bag_{episode}") as stage:
                stage.add(
                    task="wave",
                    state=datasets.state(0, episode),
                    action=datasets.action(0, episode),
                    images={},
                    stamp_ns=1,
                    image_stamps_ns={},
                )
    tables = sorted((tmp_path / "meta/episodes/chunk-000").iterdir())
    assert [pq.read_metadata(table).num_rows for table in tables] == [2, 2, 1]
    dataset = open_dataset(tmp_path)
    assert [int(dataset.column(episode, "index")[0]) for episode in range(5)] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"task": " "}, "row 0 of episode 'bag' has no task"),
        ({"state": {"single_arm": [0, 0, 0]}}, "state: gripper missing, none unknown"),
        ({"state": {"single_arm": [0, 0], "gripper": [0]}}, r"single_arm has shape \(2,\), but its dimensions are sh"),
        ({"action": {"single_arm": [0, np.nan, 0], "gripper": [0]}}, "action.single_arm is not finite.*elbow"),
        ({"images": {"front": np.zeros((32, 48, 3), np.uint8)}}, "images: wrist missing"),
        ({"images": dict.fromkeys(("front", "wrist"), np.zeros((48, 32, 3), np.uint8))}, "one camera has one resolut"),
        ({"image_stamps_ns": {"front": 1, "side": 2}}, "image stamps: wrist missing, side unknown"),
    ],
)
def test_a_row_that_does_not_fit_is_refused_by_name(tmp_path, change, message):
    values = {
        "task": "wave",
        "state": datasets.state(0, 0),
        "action": datasets.action(0, 0),
        "images": {camera: datasets.frame(camera, 0, 0) for camera in datasets.SIZES},
        "stamp_ns": 1,
        "image_stamps_ns": {"front": 1, "wrist": 1},
    }
    stage = EpisodeStage(tmp_path, make_spec(), "bag")
    with pytest.raises(DatasetError, match=message):
        stage.add(**values | change)
    stage.discard()


def test_rows_out_of_order_are_refused_with_both_stamps(tmp_path):
    stage = EpisodeStage(tmp_path, make_spec(), "bag")
    add_rows(stage, 0, 2)
    with pytest.raises(DatasetError, match=r"row 2 .* has the stamp 1700000000123456789 ns, but the row before it"):
        add_rows(stage, 0, 1)
    stage.discard()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"fps": 12.5}, "whole number of rows a second, but the rate is 12.5"),
        ({"cameras": {"front": (33, 48)}, "encoding": VideoEncoding()}, "'front' is 48x33, but h264 needs even"),
        ({"state": {}}, "at least one state group"),
        ({"state": {"arm": ("a", "a")}}, "must name its dimensions, each once"),
        ({"state": {"gripper": ("g",), "arm": ("a", "b", "c")}}, "refers to state 'single_arm', but there are"),
    ],
)
def test_a_dataset_that_cannot_be_written_is_refused_before_the_first_frame(change, message):
    with pytest.raises(DatasetError, match=message):
        make_spec(**change)


def test_an_unknown_codec_is_refused_with_those_there_are():
    with pytest.raises(DatasetError, match="'theora' is not known; there are h264, hevc, av1, lossless"):
        VideoEncoding(codec="theora")


def test_a_dataset_of_another_shape_is_not_continued(dataset_root):
    spec = make_spec(action={"single_arm": ("a", "b", "c"), "gripper": ("gripper",)})
    with pytest.raises(DatasetError, match=r"cannot be continued: its action is .*shoulder.* but the new .*'a', 'b'"):
        DatasetWriter(dataset_root, spec)


def test_a_directory_with_something_else_in_it_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(DatasetError, match=r"holds thesis.tex, but no dataset"):
        DatasetWriter(tmp_path, make_spec())


def test_two_writers_at_once_are_refused(tmp_path):
    with DatasetWriter(tmp_path, make_spec()), pytest.raises(DatasetError, match="written by another process"):
        DatasetWriter(tmp_path, make_spec())


def test_notes_on_the_making_stand_in_info(tmp_path):
    spec: DatasetSpec = make_spec(notes={"action_from_state": {"shift_rows": 1}})
    root = write_dataset(tmp_path / "noted", lengths=(3,), spec=spec)
    assert open_dataset(root).info.notes == {"action_from_state": {"shift_rows": 1}}
