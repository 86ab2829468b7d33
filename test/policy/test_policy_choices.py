"""Device, number type, rate, names and the rollout transform: what is asked for is what is done, or is refused."""

from __future__ import annotations

import dataclasses
import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from support.golden import BACKBONE, TINY_SINGLE

from groot_ros import versions
from groot_ros.checkpoint import open_checkpoint
from groot_ros.errors import CheckpointError, DeviceError
from groot_ros.observation import ActionChunk, ImageInputFormat
from groot_ros.policy import GrootPolicy, agreed_rate, select_device, select_dtype

NO_GPU = pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")


@pytest.fixture(scope="module")
def libero() -> GrootPolicy:
    return GrootPolicy.from_checkpoint(TINY_SINGLE, "libero_sim", device="cpu", rate_hz=20.0)


def chunk(gripper: list[float], stamp_ns: int = 0) -> ActionChunk:
    rows = np.array(gripper, dtype=np.float64)[:, None]
    groups = {"x": np.zeros_like(rows), "gripper": rows}
    return ActionChunk(stamp_ns=stamp_ns, period_s=0.05, groups=groups, names={"x": ["x"], "gripper": ["0"]})


@NO_GPU
def test_a_gpu_that_is_not_there_is_an_error_with_a_hint_and_never_a_quiet_cpu():
    with pytest.raises(DeviceError, match=r"device: 'cuda' was asked for, but .*(CPU build|nvidia-smi).*device:=cpu"):
        GrootPolicy.from_checkpoint(TINY_SINGLE, "libero_sim", device="cuda", rate_hz=20.0)


@NO_GPU
def test_auto_takes_the_cpu_where_there_is_no_gpu():
    assert select_device("auto") == torch.device("cpu")


@pytest.mark.parametrize("name", ["gpu", "cuda:one", "mps", ""])
def test_an_unknown_device_is_refused_with_those_that_are_known(name):
    with pytest.raises(DeviceError, match="device: "):
        select_device(name)


def test_the_cpu_computes_in_float32_and_a_gpu_in_bfloat16_unless_told():
    assert select_dtype(None, torch.device("cpu")) is torch.float32
    assert select_dtype(None, torch.device("cuda")) is torch.bfloat16
    assert select_dtype("bfloat16", torch.device("cpu")) is torch.bfloat16
    with pytest.raises(DeviceError, match="dtype: found 'float16'; allowed are float32, bfloat16"):
        select_dtype("float16", torch.device("cpu"))


def test_a_rate_that_nobody_names_is_refused():
    with pytest.raises(CheckpointError, match=r"does not record the rate.*rate_hz must be given"):
        GrootPolicy.from_checkpoint(TINY_SINGLE, "libero_sim", device="cpu")


def test_two_different_rates_are_refused_with_both_and_the_consequence():
    checkpoint = dataclasses.replace(open_checkpoint(TINY_SINGLE), fps=20.0)
    assert agreed_rate(checkpoint, None) == 20.0
    assert agreed_rate(checkpoint, 20.0) == 20.0
    with pytest.raises(CheckpointError, match=r"trained at 20 Hz, but 30 Hz was asked for.*1\.50 times as fast"):
        agreed_rate(checkpoint, 30.0)


def test_an_unknown_tag_is_refused_with_the_tags_of_the_checkpoint():
    with pytest.raises(CheckpointError, match=r"the embodiment tag my_robot is unknown.*libero_sim"):
        GrootPolicy.from_checkpoint(TINY_SINGLE, "my_robot", device="cpu", rate_hz=20.0)


def test_versions_that_were_not_tested_are_said_once_when_a_policy_loads(monkeypatch, caplog):
    monkeypatch.setattr(versions, "running_versions", lambda: replace(versions.TESTED[0], torch="1.0"))
    versions.warn_where_untested.cache_clear()
    for _ in range(2):
        GrootPolicy.from_checkpoint(TINY_SINGLE, "libero_sim", device="cpu", rate_hz=20)
    versions.warn_where_untested.cache_clear()
    assert [record.message for record in caplog.records if "untested versions" in record.message] == [
        versions.untested_sentence(replace(versions.TESTED[0], torch="1.0"))
    ]


def test_a_policy_says_that_it_wants_bytes_and_no_checkpoint_file_says_so(tmp_path):
    assert GrootPolicy.image_input_format is ImageInputFormat.UINT8_0_255
    assert all("uint8_0_255" not in path.read_text() for path in TINY_SINGLE.glob("*.json"))


def test_a_checkpoint_deleted_after_loading_does_not_disturb_a_prediction(tmp_path):
    from groot_ros.observation import Observation

    shutil.copytree(TINY_SINGLE, tmp_path / "one")
    policy = GrootPolicy.from_checkpoint(tmp_path / "one", "libero_sim", device="cpu", rate_hz=20.0, backbone=BACKBONE)
    statistics = policy.embodiment.statistics.state
    observation = Observation(
        images={key: np.zeros((1, 64, 64, 3), np.uint8) for key in policy.embodiment.modalities.video.modality_keys},
        state={key: value.mean[None].astype(np.float32) for key, value in statistics.items()},
        instruction="pick it up",
        stamp_ns=0,
    )
    before = policy.predict(observation, seed=1)
    shutil.rmtree(tmp_path / "one")
    observation = replace(observation, instruction="now put it down")
    after = policy.predict(replace(observation, instruction="pick it up"), seed=1)
    policy.predict(observation, seed=1)
    np.testing.assert_array_equal(before.groups["x"], after.groups["x"])


def test_dimensions_are_numbered_until_the_contract_names_them(libero):
    assert libero._action_names["gripper"] == ["0"]
    libero.name_actions({"gripper": ["finger"], "x": []})
    try:
        assert libero._action_names["gripper"] == ["finger"]
        assert libero._action_names["x"] == ["0"]
        with pytest.raises(ValueError, match="'gripper': 2 names, but 1 dimensions"):
            libero.name_actions({"gripper": ["left", "right"]})
    finally:
        libero.name_actions({})


def test_libero_s_gripper_is_turned_for_the_robot_and_not_in_the_prediction(libero):
    rolled = libero.rollout(chunk([0.9, 0.1, 0.6]))
    np.testing.assert_array_equal(rolled.groups["gripper"][:, 0], [-1.0, 1.0, -1.0])
    np.testing.assert_array_equal(rolled.groups["x"], np.zeros((3, 1)))


def test_a_gripper_in_the_middle_keeps_the_row_of_the_chunk_that_is_being_executed(libero):
    closing = libero.rollout(chunk([0.9, 0.1, 0.1, 0.9]))
    undecided = chunk([0.5, 0.5], stamp_ns=100_000_000)  # its row before is row 1 of the first chunk: closed
    np.testing.assert_array_equal(libero.rollout(undecided, closing).groups["gripper"][:, 0], [1.0, 1.0])
    np.testing.assert_array_equal(libero.rollout(undecided).groups["gripper"][:, 0], [-1.0, -1.0])
    later = chunk([0.5], stamp_ns=10_000_000_000)  # long after its end: the last row counts
    np.testing.assert_array_equal(libero.rollout(later, closing).groups["gripper"][:, 0], [-1.0])


def test_the_prefix_says_what_the_policy_said_and_not_what_the_simulator_was_told(libero):
    predicted = chunk([0.9, 0.2, 0.7, 0.4])
    prefix = replace(
        predicted,
        stamp_ns=100_000_000,
        groups={"x": np.ones((3, 1)), "gripper": np.array([[-1.0], [1.0], [1.0]])},
    )
    unrolled = libero.unrolled(prefix, predicted)
    np.testing.assert_array_equal(unrolled.groups["gripper"][:, 0], [0.7, 0.4, 0.4])
    np.testing.assert_array_equal(unrolled.groups["x"], np.ones((3, 1)))


def test_a_recorded_rate_needs_no_other(tmp_path):
    shutil.copytree(TINY_SINGLE, tmp_path / "one")
    (tmp_path / "one" / "groot_ros.json").write_text(json.dumps({"fps": 20.0}))
    policy = GrootPolicy.from_checkpoint(tmp_path / "one", "libero_sim", device="cpu", backbone=BACKBONE)
    assert policy.rate_hz == 20.0
