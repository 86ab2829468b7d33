"""A tiny checkpoint is a true one, and a bundled checkpoint needs nothing else."""

import shutil

import numpy as np
import pytest
import torch
from support.golden import BACKBONE
from support.lerobot_checkpoint import write_lerobot_checkpoint
from transformers import AutoTokenizer

from groot_ros.checkpoint import bundle, open_checkpoint, write_tiny_checkpoint
from groot_ros.checkpoint.parameters import check_parameters
from groot_ros.errors import CheckpointError
from groot_ros.model.loading import load_model
from groot_ros.observation import Observation
from groot_ros.policy import GrootPolicy


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return write_tiny_checkpoint(tmp_path_factory.mktemp("tiny") / "checkpoint")


def test_the_tiny_checkpoint_has_the_true_format(tiny):
    checkpoint = open_checkpoint(tiny)
    weights = checkpoint.weights()
    check_parameters(weights.names(), checkpoint.config, checkpoint.backbone.config, str(tiny))
    load_model(checkpoint.config, checkpoint.backbone.config, weights.tensors(), device="cpu", dtype=torch.float32)
    assert checkpoint.fps == 10.0
    embodiment = checkpoint.embodiment("new_embodiment")
    assert (embodiment.id, embodiment.horizon) == (10, 8)
    assert embodiment.modalities.video.modality_keys == ("front", "wrist")


def test_it_is_small(tiny):
    parameters = sum(np.prod(shape) for shape in open_checkpoint(tiny).weights().names().values())
    assert 2.5e6 < parameters < 3.5e6
    assert (tiny / "model.safetensors").stat().st_size < 16e6


def test_it_drives_a_robot_from_camera_frames_to_finite_actions_within_the_ranges(tiny):
    policy = GrootPolicy.from_checkpoint(tiny, "new_embodiment", device="cpu")
    frames = np.random.default_rng(0).integers(0, 256, (1, 480, 640, 3), dtype=np.uint8)
    state = {"single_arm": np.array([[0.3, 0.4]], np.float32), "gripper": np.array([[0.1]], np.float32)}
    observation = Observation(
        images={"front": frames, "wrist": frames}, state=state, instruction="Reach for the disc", stamp_ns=0
    )
    chunk = policy.predict(observation, seed=1)
    assert chunk.period_s == pytest.approx(1 / 10)
    assert chunk.groups["single_arm"].shape == (8, 2)
    reach = 0.5 * (np.arange(8) + 1)[:, None] / 10
    assert (np.abs(chunk.groups["single_arm"] - state["single_arm"]) <= reach + 1e-6).all()
    assert ((chunk.groups["gripper"] >= 0) & (chunk.groups["gripper"] <= 0.8)).all()


def test_the_same_seed_gives_the_same_weights(tiny, tmp_path):
    again = write_tiny_checkpoint(tmp_path / "again")
    other = write_tiny_checkpoint(tmp_path / "other", seed=1)
    weights = [(path / "model.safetensors").read_bytes() for path in (tiny, again, other)]
    assert weights[0] == weights[1]
    assert weights[0] != weights[2]


def test_its_tokenizer_is_read_by_transformers_too(tiny):
    tokenizer = AutoTokenizer.from_pretrained(tiny / "backbone")
    text = "<|im_start|>user\nGreif die Tüte 🤖<|im_end|>\n"
    ids = tokenizer(text)["input_ids"]
    assert tokenizer.decode(ids) == text
    assert tokenizer.convert_tokens_to_ids("<|image_pad|>") == open_checkpoint(tiny).backbone.config["image_token_id"]


def test_groups_horizon_rate_and_tag_are_the_callers(tmp_path):
    path = write_tiny_checkpoint(
        tmp_path / "other",
        embodiment_tag="my_robot",
        cameras=("top",),
        state={"left": ((-1.0, 1.0),) * 6, "right": ((-1.0, 1.0),) * 6},
        actions={"right": ((-2.0, 2.0),) * 6, "base": ((-0.5, 0.5),) * 3},
        relative=("right",),
        relative_speed=0.5,
        horizon=8,
        fps=10.0,
    )
    checkpoint = open_checkpoint(path)
    embodiment = checkpoint.embodiment("my_robot")
    assert (checkpoint.fps, embodiment.horizon, embodiment.id) == (10.0, 8, 10)
    assert (checkpoint.config.max_state_dim, checkpoint.config.max_action_dim) == (12, 9)
    assert embodiment.statistics.relative_action["right"].max[-1].tolist() == [0.5 * 8 / 10] * 6


def test_an_existing_folder_is_not_overwritten(tiny):
    with pytest.raises(CheckpointError, match=r"exists already and is not empty: give another folder, or remove it"):
        write_tiny_checkpoint(tiny)


def test_a_relative_group_needs_its_state(tmp_path):
    with pytest.raises(CheckpointError, match=r"The relative action base needs a state group of the same name"):
        write_tiny_checkpoint(tmp_path / "x", actions={"base": ((0.0, 1.0),)}, relative=("base",))


@pytest.mark.parametrize("layout", ["single", "sharded"])
def test_a_bundled_checkpoint_opens_alone(layout, request, tmp_path):
    source = request.getfixturevalue(layout)
    out = bundle(open_checkpoint(source), tmp_path / "robot" / "whole")
    shutil.rmtree(tmp_path / "Qwen")
    shutil.rmtree(source)
    checkpoint = open_checkpoint(out)
    assert checkpoint.backbone.directory == out / "backbone"
    assert len(checkpoint.weights().names()) == 302


def test_bundling_in_place_completes_the_checkpoint_once(single):
    bundle(open_checkpoint(single))
    before = sorted(path.name for path in (single / "backbone").iterdir())
    assert "tokenizer.json" in before
    bundle(open_checkpoint(single))
    assert sorted(path.name for path in (single / "backbone").iterdir()) == before


def test_a_bundled_lerobot_checkpoint_needs_its_base_model_no_more(tmp_path):
    source = write_lerobot_checkpoint(tmp_path / "trained")
    config = open_checkpoint(source, backbone=BACKBONE).config
    out = bundle(open_checkpoint(source, backbone=BACKBONE), tmp_path / "whole")
    text = (out / "config.json").read_text()
    (out / "config.json").write_text(text.replace(str(BACKBONE.parent.parent / "tiny-single"), "me/gone"))
    assert open_checkpoint(out).config == config


def test_a_bundle_does_not_overwrite(single, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    with pytest.raises(CheckpointError, match=r"full exists already and is not empty"):
        bundle(open_checkpoint(single), tmp_path / "full")


@pytest.mark.parametrize("layout", ["single", "sharded"])
def test_a_bundle_of_half_the_size_rounds_the_weights_and_nothing_else(layout, request, tmp_path):
    source = open_checkpoint(request.getfixturevalue(layout))
    whole = dict(source.weights().tensors())
    smaller = open_checkpoint(bundle(source, tmp_path / "half", half=True))
    halved = dict(smaller.weights().tensors())
    assert halved.keys() == whole.keys()
    for name, tensor in whole.items():
        assert torch.equal(halved[name], tensor.to(torch.bfloat16) if tensor.dtype == torch.float32 else tensor)
    assert smaller.statistics.keys() == source.statistics.keys()
    assert smaller.config == source.config


def test_the_only_copy_of_the_weights_is_never_rounded(single):
    with pytest.raises(CheckpointError, match="in a copy only, so that nothing is lost: give its folder with --output"):
        bundle(open_checkpoint(single), half=True)
