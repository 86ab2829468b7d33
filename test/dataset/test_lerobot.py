"""The real LeRobot reads what is written here, and appends to it.

Needs an environment of its own with ``lerobot[dataset]==0.6.1`` (Python 3.12 or newer) and ``lerobot-doctor``; its
interpreter is named by GROOT_LEROBOT_PYTHON.
"""

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from support import datasets
from support.datasets import FPS, add_rows, make_spec, write_dataset

from groot_ros.dataset.quality.report import check_dataset
from groot_ros.dataset.reader import open_dataset
from groot_ros.dataset.video_writer import VideoEncoding
from groot_ros.dataset.writer import DatasetWriter

PYTHON = os.environ.get("GROOT_LEROBOT_PYTHON")
pytestmark = [
    pytest.mark.skipif(not PYTHON, reason="GROOT_LEROBOT_PYTHON names no interpreter with LeRobot"),
    pytest.mark.timeout(300),
]
LENGTHS = (60, 55, 58)


def peer(tmp_path, *arguments):
    """Run the peer's script and return what it saw."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "_ROS", "LD_"))}
    environment |= {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "hf"), "OMP_NUM_THREADS": "1"}
    script = Path(__file__).with_name("lerobot_peer.py")
    done = subprocess.run(
        [PYTHON, str(script), *map(str, arguments)], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.partition("SEEN ")[2])


def assert_sees_what_was_given(seen, dataset):
    for sample in seen["samples"]:
        episode, row = sample["episode"], sample["row"]
        if episode >= len(LENGTHS):
            continue
        for kind, values in (("state", datasets.state(episode, row)), ("action", datasets.action(episode, row))):
            np.testing.assert_array_equal(sample[kind], np.float32(np.concatenate(list(values.values()))))
        assert sample["task"] == datasets.TASKS[episode % 2]
        for camera in datasets.SIZES:
            (frame,) = dataset.frames(episode, camera, [row])
            assert sample["frames"][f"observation.images.{camera}"] == frame[0, 0].tolist()
            assert sample["sums"][f"observation.images.{camera}"] == int(frame.astype(np.int64).sum())


@pytest.fixture(params=["lossless", "h264"])
def root(request, tmp_path):
    return write_dataset(tmp_path / "cubes", LENGTHS, spec=make_spec(encoding=VideoEncoding(codec=request.param)))


def test_lerobot_sees_the_same_frames_rows_and_tasks(root, tmp_path):
    seen = peer(tmp_path, "read", root)
    assert seen["lengths"] == list(LENGTHS)
    assert seen["rows"] == sum(LENGTHS)
    assert seen["tasks"] == list(datasets.TASKS)
    assert seen["padded_actions"] == [False, True, True, True]
    assert seen["history_shape"] == [2, 3, 32, 48]
    assert_sees_what_was_given(seen, open_dataset(root))


def test_lerobot_appends_and_we_go_on_behind_it_and_the_groot_view_has_all(tmp_path):
    spec = make_spec(encoding=VideoEncoding(codec="h264"))
    root = write_dataset(tmp_path / "cubes", LENGTHS, spec=spec)
    seen = peer(tmp_path, "append", root, 2, 12)
    assert seen["lengths"] == [*LENGTHS, 12, 12]
    assert seen["tasks"] == [*datasets.TASKS, "appended"]
    assert_sees_what_was_given(seen, open_dataset(root))
    appended = open_dataset(root)
    np.testing.assert_array_equal(appended.column(4, "action")[:, 0], np.arange(10, 22))

    with DatasetWriter(root, spec) as writer:
        assert writer.total_episodes == 5
        with writer.episode("bag_5") as stage:
            add_rows(stage, 1, 55)
    seen = peer(tmp_path, "read", root)
    assert seen["lengths"] == [*LENGTHS, 12, 12, 55]
    view = open_dataset(root / "groot")
    assert [episode.length for episode in view.episodes] == [*LENGTHS, 12, 12, 55]
    assert view.instruction(4, 0) == "appended"
    assert abs(int(view.frames(4, "front", [10])[0].mean()) - 60) <= 3
    errors = [f for f in check_dataset(root, horizon=datasets.HORIZON).findings if f.severity.value == "error"]
    assert errors == []


def test_lerobot_doctor_passes_it(tmp_path):
    """Long episodes of smooth motion: what the doctor calls short or jumpy is not what is tested here."""
    spec = make_spec(encoding=VideoEncoding(codec="h264"))
    root = tmp_path / "cubes"
    with DatasetWriter(root, spec) as writer:
        for episode in range(2):
            with writer.episode(f"bag_{episode}") as stage:
                for row in range(110 + episode):
                    phase = 2 * np.pi * row / (4 * FPS) + episode
                    stage.add(
                        task=datasets.TASKS[episode],
                        state={"single_arm": np.sin([phase, phase + 1, phase + 2]), "gripper": [np.cos(phase)]},
                        action={
                            "single_arm": np.sin([phase + 0.1, phase + 1.1, phase + 2.1]),
                            "gripper": [np.cos(phase + 0.1)],
                        },
                        images={camera: datasets.frame(camera, episode, row) for camera in datasets.SIZES},
                        stamp_ns=datasets.stamp_ns(row),
                        image_stamps_ns=datasets.image_stamps_ns(row),
                    )
    doctor = Path(PYTHON).with_name("lerobot-doctor")
    if not doctor.exists():
        pytest.skip("lerobot-doctor is not installed beside LeRobot")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "_ROS", "LD_"))}
    done = subprocess.run([doctor, root, "--json"], env=environment, capture_output=True, text=True, check=False)
    report = json.loads(done.stdout)
    severities = {check["name"]: check["severity"] for check in report["checks"]}
    assert set(severities.values()) == {"PASS"}, report
    assert done.returncode == 0
