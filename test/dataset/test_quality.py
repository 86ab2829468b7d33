"""Each fault that spoils training is found and told; a good dataset is left in peace."""

import json
import shutil

import numpy as np
import pyarrow.parquet as pq
import pytest
from support import datasets
from support.datasets import FPS, make_spec, write_dataset

from groot_ros.dataset.quality.finding import Finding, Severity, merge, numbers
from groot_ros.dataset.quality.report import check_dataset
from groot_ros.dataset.tables import column_array, read_table, rows_table
from groot_ros.dataset.video_writer import VideoEncoding, VideoWriter
from groot_ros.dataset.writer import DatasetWriter


@pytest.fixture
def copy(dataset_root, tmp_path):
    return shutil.copytree(dataset_root, tmp_path / "copy")


def edit_rows(root, episode, **columns):
    """Replace columns of an episode: each a function of the old values."""
    path = root / f"data/chunk-000/file-{episode:03d}.parquet"
    table = read_table(path)
    rows = {name: column_array(table, name, path).copy() for name in table.column_names}
    for name, change in columns.items():
        old = rows[name.replace("__", ".")]
        rows[name.replace("__", ".")] = change(old).astype(old.dtype)
    pq.write_table(rows_table(rows), path)


def found(root, check, **options):
    """The findings of a check, as (severity, subject, sentence, episodes)."""
    report = check_dataset(root, **{"horizon": datasets.HORIZON, **options})
    return [finding for finding in report.findings if finding.check == check]


def one(root, check, **options):
    (finding,) = found(root, check, **options)
    return finding


def test_a_good_dataset_has_no_errors_and_no_warnings(dataset_root):
    report = check_dataset(dataset_root, horizon=datasets.HORIZON)
    assert [finding for finding in report.findings if finding.severity is not Severity.NOTE] == []
    assert not report.has_errors
    assert len(report.cameras) == 6
    assert all(len(facts.thumbnails) == 3 for facts in report.cameras)


def test_the_groot_view_is_checked_like_a_dataset(dataset_root):
    assert not check_dataset(dataset_root / "groot", horizon=datasets.HORIZON).has_errors


def test_episodes_shorter_than_the_horizon_are_told(dataset_root):
    finding = one(dataset_root, "short episode", horizon=27)
    assert (finding.severity, finding.episodes) == (Severity.WARNING, (1,))
    assert "27 rows" in finding.sentence


def test_no_training_sample_at_all_is_an_error(dataset_root):
    finding = one(dataset_root, "training samples", horizon=31)
    assert finding.severity is Severity.ERROR
    assert "no episode has the 31 rows" in finding.sentence


def test_an_arm_that_does_not_move_is_an_error(copy):
    edit_rows(copy, 1, observation__state=lambda values: values * 0 + values[0])
    finding = one(copy, "frozen")
    assert (finding.severity, finding.subject, finding.episodes) == (Severity.ERROR, "observation.state", (1,))


def test_one_joint_that_is_commanded_but_does_not_move_is_named(copy):
    def freeze_elbow(values):
        values[:, 1] = 0.25
        return values

    edit_rows(copy, 2, observation__state=freeze_elbow)
    finding = one(copy, "frozen")
    assert finding.subject == "state.single_arm"
    assert finding.sentence.startswith("elbow does not change")


def test_a_camera_that_stands_still_is_told(tmp_path):
    root = write_dataset(tmp_path / "still", lengths=(30,))
    for name, stuck_after, sentence in (
        ("wrist", 0, "the picture never changes"),
        ("front", 5, "the same picture for 1.2 s"),
    ):
        with VideoWriter(
            root / f"videos/observation.images.{name}/chunk-000/file-000.mp4",
            fps=FPS,
            height=32,
            width=48,
            encoding=VideoEncoding(codec="lossless"),
        ) as video:
            for row in range(30):
                video.add(datasets.frame(name, 0, min(row, stuck_after)))
        (finding,) = [f for f in found(root, "frozen camera") if f.subject == f"observation.images.{name}"]
        assert finding.severity is Severity.WARNING
        assert finding.sentence.startswith(sentence)


def test_a_covered_camera_is_an_error(tmp_path):
    root = write_dataset(tmp_path / "dark", lengths=(10,))
    path = root / "videos/observation.images.front/chunk-000/file-000.mp4"
    with VideoWriter(path, fps=FPS, height=32, width=48, encoding=VideoEncoding()) as video:
        for _ in range(10):
            video.add(np.zeros((32, 48, 3), dtype=np.uint8))
    finding = one(root, "frozen camera")
    assert finding.severity is Severity.ERROR
    assert finding.sentence.startswith("one colour only")


def test_an_action_that_is_the_measured_state_is_an_error(copy):
    for episode in range(3):
        path = copy / f"data/chunk-000/file-{episode:03d}.parquet"
        state = column_array(read_table(path), "observation.state", path)
        edit_rows(copy, episode, action=lambda _, state=state: state)
    finding = one(copy, "action equals state")
    assert (finding.severity, finding.sentence[:21]) == (Severity.ERROR, "in 100% of the rows: ")


def test_an_action_that_is_the_next_measured_state_is_a_warning(copy):
    for episode in range(3):
        path = copy / f"data/chunk-000/file-{episode:03d}.parquet"
        state = column_array(read_table(path), "observation.state", path)
        edit_rows(copy, episode, action=lambda _, state=state: np.concatenate([state[1:], state[-1:]]))
    finding = one(copy, "action equals state")
    assert finding.severity is Severity.WARNING
    assert "the state one row later" in finding.sentence


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda times: np.insert(times[:-1], 4, times[4]), "twice the same stamp: row 5 is at 0.200000 s"),
        (lambda times: times[[0, 1, 3, 2, *range(4, 30)]], "a stamp that goes back: row 3 is at 0.100000 s"),
    ],
)
def test_time_stamps_that_repeat_or_go_back_are_errors(copy, change, sentence):
    edit_rows(copy, 0, timestamp=change)
    finding = one(copy, "time stamps")
    assert (finding.severity, finding.sentence, finding.episodes) == (Severity.ERROR, sentence, (0,))


def test_time_stamps_off_the_grid_are_a_warning(copy):
    edit_rows(copy, 0, timestamp=lambda times: times + 0.01)
    assert "the first row is at 0.010000 s" in one(copy, "time stamps").sentence


def test_gaps_and_repeated_samples_in_the_source_are_told(tmp_path):
    labels = {"gaps": [{"stream": "video.front", "seconds": 0.4}]}
    with (
        DatasetWriter(tmp_path, make_spec(cameras={})) as writer,
        writer.episode("bag", labels=labels) as stage,
    ):
        for row in range(20):
            stage.add(
                task="wave",
                state=datasets.state(0, row),
                action=datasets.action(0, row),
                images={},
                stamp_ns=datasets.stamp_ns(row) + (row > 9) * 500_000_000,
                image_stamps_ns={},
                more_stamps_ns={"state.single_arm": datasets.stamp_ns(row // 2)},
            )
    gaps = {finding.subject: finding.sentence for finding in found(tmp_path, "gap")}
    assert gaps["row"] == "0.550 s without a new sample"
    assert "marked when it was recorded" in gaps["recording"]
    repeated = one(tmp_path, "source stamps")
    assert (repeated.subject, repeated.sentence[:8]) == ("state.single_arm", "53% of t")


def test_dimensions_that_never_change_or_rest_at_their_ends_are_named(copy):
    for episode in range(3):

        def cut_off(values):
            values[:, 0] = np.minimum(values[:, 0], 0.5)
            values[:, 2] = 1.0
            return values

        edit_rows(copy, episode, action=cut_off)
    assert one(copy, "constant dimension").sentence == "1 of 4 never change: wrist"
    clipped = one(copy, "clipped dimension")
    assert clipped.subject == "action.shoulder"
    assert "exactly the largest value, 0.5" in clipped.sentence


def test_a_gripper_that_opens_and_closes_is_not_called_clipped(copy):
    for episode in range(3):

        def open_and_close(values):
            values[:, 3] = values[:, 3] > 0.5
            return values

        edit_rows(copy, episode, action=open_and_close)
    assert found(copy, "clipped dimension") == []


def test_a_single_instruction_is_a_warning(copy):
    for episode in range(3):
        edit_rows(copy, episode, task_index=np.zeros_like)
    finding = one(copy, "prompts")
    assert finding.severity is Severity.WARNING
    assert "'put the cube in the bowl'" in finding.sentence


def test_an_instruction_without_text_is_an_error(copy):
    edit_rows(copy, 1, task_index=lambda values: values * 0 + 7)
    assert "rows carry [7], but the tasks have no such index" in [f.sentence for f in found(copy, "prompts")]


def test_one_camera_with_two_resolutions_is_an_error(copy):
    path = copy / "videos/observation.images.front/chunk-000/file-001.mp4"
    with VideoWriter(path, fps=FPS, height=64, width=96, encoding=VideoEncoding()) as video:
        for row in range(25):
            video.add(np.random.default_rng(row).integers(0, 256, (64, 96, 3)).astype(np.uint8))
    sentences = [finding.sentence for finding in found(copy, "resolution")]
    assert "info.json says 48x32, but the video is 96x64" in sentences
    assert "differs between episodes: 48x32 in 2, 96x64 in 1" in sentences


def test_views_of_different_shape_are_a_warning(tmp_path, monkeypatch):
    monkeypatch.setitem(datasets.SIZES, "front", (32, 32))
    root = write_dataset(tmp_path / "square", lengths=(10,), spec=make_spec(cameras=datasets.SIZES))
    finding = one(root, "resolution")
    assert finding.severity is Severity.WARNING
    assert "letter_box_transform" in finding.sentence


@pytest.mark.parametrize("damage", ["cut", "gone", "short", "slow"])
def test_a_video_that_cannot_be_decoded_frame_by_frame_is_an_error(copy, damage):
    path = copy / "videos/observation.images.front/chunk-000/file-001.mp4"
    content = path.read_bytes()
    if damage == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "gone":
        path.unlink()
    else:
        frames, fps = (20, FPS) if damage == "short" else (25, FPS - 5)
        with VideoWriter(path, fps=fps, height=32, width=48, encoding=VideoEncoding()) as video:
            for row in range(frames):
                video.add(datasets.frame("front", 1, row))
    report = check_dataset(copy, horizon=datasets.HORIZON)
    (finding,) = [finding for finding in report.findings if finding.severity is Severity.ERROR]
    wanted = {
        "cut": "is not a video that can be read",
        "gone": "is missing",
        "short": "20 frames in file-001.mp4, but 25 rows",
        "slow": "the frame rate is not constant at 20 a second",
    }
    assert wanted[damage] in finding.sentence
    assert finding.episodes == (1,)


def test_statistics_that_do_not_fit_the_data_are_errors(copy):
    edit_rows(copy, 1, action=lambda values: values * 3)
    subjects = {finding.subject for finding in found(copy, "statistics") if finding.severity is Severity.ERROR}
    assert subjects == {"meta/stats.json: action", "groot/meta/stats.json: action"}


def test_relative_statistics_for_another_horizon_are_an_error(dataset_root):
    finding = one(dataset_root, "statistics", horizon=16)
    assert finding.subject == "groot/meta/relative_stats.json: single_arm"
    assert "is for chunks of 8 rows, but the horizon is 16" in finding.sentence


def test_totals_that_do_not_agree_are_errors(copy):
    info = json.loads((copy / "meta/info.json").read_text())
    (copy / "meta/info.json").write_text(json.dumps(info | {"total_frames": 99}))
    assert one(copy, "totals").sentence == "total_frames is 99, but the episodes have 83 rows"


def test_an_unreadable_episode_does_not_hide_the_others(copy):
    (copy / "data/chunk-000/file-001.parquet").write_bytes(b"")
    report = check_dataset(copy, horizon=datasets.HORIZON)
    assert [finding.episodes for finding in report.findings if finding.check == "rows"] == [(1,)]
    assert len(report.columns["action"]) == 58


def test_a_long_wait_before_the_first_motion_is_told(tmp_path):
    with DatasetWriter(tmp_path, make_spec(cameras={})) as writer, writer.episode("bag") as stage:
        for row in range(60):
            stage.add(
                task="wave",
                state=datasets.state(0, row),
                action=datasets.action(0, max(row, 30)),
                images={},
                stamp_ns=datasets.stamp_ns(row),
                image_stamps_ns={},
            )
    finding = one(tmp_path, "idle")
    assert (finding.subject, finding.sentence[:34]) == ("head", "nothing is commanded for 1.6 s: a ")


def test_the_same_finding_in_many_episodes_is_told_once():
    findings = [Finding(Severity.NOTE, "gap", "row", "late", (5,))]
    findings += [Finding(Severity.ERROR, "frozen", "action", "stands", (episode,)) for episode in (0, 1, 2, 7)]
    merged = merge(findings)
    assert [finding.severity for finding in merged] == [Severity.ERROR, Severity.NOTE]
    assert numbers(merged[0].episodes) == "0-2, 7"


def test_different_sentences_of_the_same_kind_are_all_told_up_to_three():
    whole = [Finding(Severity.WARNING, "prompts", "task_index", text) for text in ("one", "two", "one")]
    assert [finding.sentence for finding in merge(whole)] == ["one", "two"]
    numbered = [Finding(Severity.ERROR, "frozen", "arm", f"joint {n} stands", (n,)) for n in (3, 1, 2, 4, 5)]
    numbered.append(Finding(Severity.ERROR, "frozen", "arm", "joint 1 stands", (7,)))
    (finding,) = merge(numbered)
    assert finding.sentence == (
        "joint 3 stands (episode 3); joint 1 stands (episode 1, 7); joint 2 stands (episode 2); "
        "and more like these (episode 4-5)"
    )
    assert sorted(finding.episodes) == [1, 2, 3, 4, 5, 7]


def test_groups_that_come_from_other_columns_are_checked_too(copy):
    for name in ("meta/info.json", "groot/meta/info.json"):
        info = json.loads((copy / name).read_text())
        info["features"]["gripper"] = {"dtype": "float32", "shape": [1], "names": ["gripper"]}
        (copy / name).write_text(json.dumps(info))
    modality = json.loads((copy / "groot/meta/modality.json").read_text())
    for kind in ("state", "action"):
        modality[kind] = {"gripper": {"start": 0, "end": 1, "original_key": "gripper"}}
    (copy / "groot/meta/modality.json").write_text(json.dumps(modality))
    for episode in range(3):
        path = copy / f"data/chunk-000/file-{episode:03d}.parquet"
        table = read_table(path)
        rows = {name: column_array(table, name, path) for name in table.column_names}
        pq.write_table(rows_table({**rows, "gripper": rows["observation.state"][:, 3:]}), path)
    finding = one(copy, "action equals state")
    assert (finding.severity, finding.sentence[:21]) == (Severity.ERROR, "in 100% of the rows: ")
