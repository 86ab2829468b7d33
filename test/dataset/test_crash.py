"""A crash or a full disk at any moment loses nothing that was finished."""

import json
import os
import resource
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from support import datasets
from support.datasets import add_rows, make_spec, write_dataset

from groot_ros.dataset import metadata_v3
from groot_ros.dataset import writer as writer_module
from groot_ros.dataset.files import write_json
from groot_ros.dataset.reader import open_dataset
from groot_ros.dataset.stage import EpisodeStage
from groot_ros.dataset.tables import write_table
from groot_ros.dataset.video_writer import VideoEncoding
from groot_ros.dataset.writer import DatasetWriter
from groot_ros.errors import DatasetError

# A child takes in a second episode and dies, without any clean-up, at its n-th rename or sync to disk.
DYING_WRITER = """
import os, shutil, sys
from pathlib import Path
from support.datasets import make_spec
from groot_ros.dataset.writer import DatasetWriter

source, target, start, step = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])

def dies_at(moment, root):
    count = 0
    rename, sync = Path.replace, os.fsync
    def counting(real):
        def call(*arguments):
            nonlocal count
            if count == moment:
                os._exit(9)
            count += 1
            return real(*arguments)
        return call
    Path.replace, os.fsync = counting(rename), counting(sync)
    with DatasetWriter(root, make_spec()) as writer:
        writer.commit("bag_1")
    os._exit(0)

for moment in range(start, 1000, step):
    root = target / str(moment)
    shutil.copytree(source, root)
    child = os.fork()
    if not child:
        dies_at(moment, root)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0:
        break
"""


def total(root):
    return json.loads((root / "meta/info.json").read_text())["total_episodes"]


def test_a_writer_that_is_killed_at_any_moment_leaves_a_whole_dataset_that_the_next_one_finishes(tmp_path):
    source = write_dataset(tmp_path / "source", lengths=(4,))
    with EpisodeStage(source, make_spec(), "bag_1", labels={"success": False}) as stage:
        add_rows(stage, 1, 3)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONWARNINGS": "ignore"}
    target = tmp_path / "killed"
    subprocess.run(
        [sys.executable, "-c", DYING_WRITER, str(source), str(target), "0", "4"],
        check=True,
        env=environment,
        timeout=100,
    )
    moments = sorted(target.iterdir(), key=lambda path: int(path.name))
    totals = [total(root) for root in moments]
    assert totals[0] == 1
    assert totals[-1] == 2
    assert totals == sorted(totals)
    assert totals.count(1) > 5
    for root in moments:
        before = open_dataset(root)
        assert [episode.length for episode in before.episodes] == [4, 3][: total(root)]
        for episode in before.episodes:
            before.frames(episode.index, "wrist", range(episode.length))
            before.rows(episode.index)
        with DatasetWriter(root, make_spec()) as writer:
            writer.commit_all()
        for view in (root, root / "groot"):
            after = open_dataset(view)
            assert [episode.length for episode in after.episodes] == [4, 3]
            assert after.stamps(1).labels == {"name": "bag_1", "success": False}
            assert (after.frames(1, "wrist", [2])[0] == datasets.frame("wrist", 1, 2)).all()
        assert not (root / ".staging").exists()


@contextmanager
def small_disk():
    """Let no file grow beyond 40 kB, which a program sees as it sees a full disk: a write that the system refuses."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_disk_that_is_full_while_encoding_says_so_and_spoils_nothing(tmp_path):
    spec = make_spec(encoding=VideoEncoding(codec="lossless"))
    root = write_dataset(tmp_path / "cubes", lengths=(4,), spec=spec)
    with (
        small_disk(),
        DatasetWriter(root, spec) as writer,
        pytest.raises(DatasetError, match=r"\.mp4 cannot be written: File too large.*free space"),
        writer.episode("bag_1") as stage,
    ):
        add_rows(stage, 1, 200)
    assert not list(root.rglob("*.partial"))
    dataset = open_dataset(root)
    assert [episode.length for episode in dataset.episodes] == [4]
    dataset.frames(0, "front", range(4))


def test_a_directory_that_must_not_be_written_says_so():
    with pytest.raises(DatasetError, match="/proc/dataset cannot be written: "):
        DatasetWriter(Path("/proc/dataset"), make_spec())


def test_a_finished_episode_that_lost_its_video_is_named(tmp_path):
    with EpisodeStage(tmp_path, make_spec(), "bag_0") as stage:
        add_rows(stage, 0, 3)
    (tmp_path / ".staging/bag_0.ready/observation.images.wrist.mp4").unlink()
    with DatasetWriter(tmp_path, make_spec()) as writer, pytest.raises(DatasetError, match=r"wrist\.mp4 is missing"):
        writer.commit("bag_0")


def stage_two(root):
    for episode in (0, 1):
        with EpisodeStage(root, make_spec(), f"bag_{episode}") as stage:
            add_rows(stage, episode, 3 + episode)


def refuse(monkeypatch, function, path, times):
    """Let a function that writes files refuse to write one of them, so many times."""
    left = [times]

    def write(target, content):
        if target == path and left[0]:
            left[0] -= 1
            msg = f"{path} cannot be written"
            raise DatasetError(msg)
        function(target, content)

    for user in (writer_module, metadata_v3):
        if getattr(user, function.__name__, None) is function:
            monkeypatch.setattr(user, function.__name__, write)


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize(
    ("function", "file"), [(write_table, "data/chunk-000/file-000.parquet"), (write_json, "meta/info.json")]
)
def test_an_episode_that_did_not_fit_on_the_disk_keeps_its_videos_when_another_follows(
    tmp_path, monkeypatch, times, function, file
):
    stage_two(tmp_path)
    refuse(monkeypatch, function, tmp_path / file, times)
    with DatasetWriter(tmp_path, make_spec()) as writer:
        with pytest.raises(DatasetError, match="cannot be written"):
            writer.commit("bag_0")
        if times == 1:
            assert writer.commit("bag_1") == 1
        else:
            with pytest.raises(DatasetError, match="cannot be written"):
                writer.commit("bag_1")
    with DatasetWriter(tmp_path, make_spec()) as writer:
        writer.commit_all()
        assert writer.names == {"bag_0": 0, "bag_1": 1}
    for view in (tmp_path, tmp_path / "groot"):
        dataset = open_dataset(view)
        assert [episode.length for episode in dataset.episodes] == [3, 4]
        for episode in (0, 1):
            assert dataset.instruction(episode, 0) == datasets.TASKS[episode]
            assert (dataset.frames(episode, "wrist", [2])[0] == datasets.frame("wrist", episode, 2)).all()
    assert not (tmp_path / ".staging").exists()


def test_a_damaged_episode_keeps_neither_the_others_nor_the_next_writer_out(tmp_path):
    stage_two(tmp_path)
    (tmp_path / ".staging/bag_0.ready/observation.images.wrist.mp4").unlink()
    with DatasetWriter(tmp_path, make_spec()) as writer:
        with pytest.raises(DatasetError, match=r"wrist\.mp4 is missing: .*make it again"):
            writer.commit("bag_0")
        assert writer.commit("bag_1") == 0
    with DatasetWriter(tmp_path, make_spec()) as writer:
        assert writer.names == {"bag_1": 0}
