"""Checkpoints that LeRobot trained are read as what they are."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from checkpoint.conftest import edit_json
from support.golden import BACKBONE, TINY_SINGLE, load_case
from support.lerobot_checkpoint import DECODE, PACK, UNPACK, write_lerobot_checkpoint

from groot_ros.checkpoint import CheckpointOrigin, open_checkpoint
from groot_ros.checkpoint.lerobot import _RELEASED_NETWORK
from groot_ros.errors import CheckpointError
from groot_ros.observation import Observation
from groot_ros.policy import GrootPolicy

TAG = "new_embodiment"


@pytest.fixture
def grouped(tmp_path):
    return write_lerobot_checkpoint(tmp_path / "pretrained_model")


@pytest.fixture
def flat(tmp_path):
    return write_lerobot_checkpoint(tmp_path / "pretrained_model", grouped=False)


def step(checkpoint, name, change, pipeline="policy_preprocessor.json"):
    def edit(data):
        for entry in data["steps"]:
            if entry["registry_name"] == name:
                change(entry["config"])

    edit_json(checkpoint / pipeline, edit)


def opened(path):
    return open_checkpoint(path, backbone=BACKBONE)


def refused(path, message):
    with pytest.raises(CheckpointError, match=message):
        opened(path).embodiment(TAG)


def test_a_checkpoint_with_groups_says_the_same_as_nvidias_file(grouped):
    lerobot, nvidia = opened(grouped), open_checkpoint(TINY_SINGLE)
    assert lerobot.origin is CheckpointOrigin.LEROBOT
    assert lerobot.config == nvidia.config
    assert lerobot.tags == (TAG,)
    ours, theirs = lerobot.embodiment(TAG), nvidia.embodiment(TAG)
    language = theirs.modalities.language
    assert ours.modalities == replace(theirs.modalities, language=replace(language, modality_keys=("task",)))
    assert ours.id == theirs.id
    for modality in ("state", "action", "relative_action"):
        for key, entry in getattr(theirs.statistics, modality).items():
            assert np.array_equal(getattr(ours.statistics, modality)[key].min, entry.min)
    assert lerobot.processor.use_relative_action
    assert lerobot.processor.max_action_horizon == 20


def test_the_prefix_of_the_weights_is_removed(grouped):
    assert opened(grouped).weights().names() == open_checkpoint(TINY_SINGLE).weights().names()


def test_the_whole_road_gives_the_same_actions_as_nvidias_file(grouped):
    case = load_case("model", "new_embodiment_b2")
    observation = Observation(
        images={key: frames[0] for key, frames in case.raw("video").items()},
        state={key: rows[0] for key, rows in case.raw("state").items()},
        instruction=str(case["raw.language"][0]),
        stamp_ns=0,
    )
    chunks = [
        GrootPolicy.from_checkpoint(path, TAG, device="cpu", backbone=BACKBONE, rate_hz=10.0).predict(
            observation, seed=3
        )
        for path in (grouped, TINY_SINGLE)
    ]
    for key, values in chunks[1].groups.items():
        np.testing.assert_allclose(chunks[0].groups[key], values, rtol=0, atol=1e-6)


def test_a_checkpoint_without_groups_has_one_of_state_and_one_of_actions(flat):
    checkpoint = opened(flat)
    embodiment = checkpoint.embodiment(TAG)
    assert embodiment.modalities.state.modality_keys == ("state",)
    assert embodiment.modalities.action.modality_keys == ("action",)
    assert embodiment.modalities.video.modality_keys == ("front", "wrist")
    assert embodiment.horizon == 16
    assert embodiment.statistics.state["state"].dimension == 6
    assert not checkpoint.processor.use_relative_action
    file = json.loads((TINY_SINGLE / "statistics.json").read_text())[TAG]["action"]
    expected = np.array([*file["single_arm"]["max"], *file["gripper"]["max"]], dtype=np.float32)
    assert np.array_equal(embodiment.statistics.action["action"].max, expected)


def test_image_geometry_is_lerobots(grouped):
    step(
        grouped,
        "groot_n1_7_vlm_encode_v1",
        lambda config: config.update(
            image_target_size=None, image_crop_size=None, shortest_image_edge=None, crop_fraction=None
        ),
    )
    processor = opened(grouped).processor
    assert (processor.image_target_size, processor.image_crop_size) == ((256, 256), (230, 230))
    assert (processor.shortest_image_edge, processor.crop_fraction) == (None, None)


def test_rows_that_were_masked_in_training_are_not_offered(grouped):
    step(grouped, PACK, lambda config: config.update(valid_action_horizon=10))
    embodiment = opened(grouped).embodiment(TAG)
    assert embodiment.horizon == 10
    assert embodiment.statistics.relative_action["single_arm"].min.shape == (10, 5)


def test_relative_groups_are_decoded_as_they_were_trained_whatever_the_switch_says(grouped):
    step(grouped, DECODE, lambda config: config.update(use_relative_action=False), "policy_postprocessor.json")
    assert opened(grouped).processor.use_relative_action


def test_a_tag_outside_lerobots_table_keeps_the_number_that_it_was_trained_with(flat):
    step(flat, PACK, lambda config: config["embodiment_mapping"].pop(TAG))
    assert opened(flat).embodiment(TAG).id == 0


def test_cameras_that_the_data_set_calls_otherwise_come_in_lerobots_order(flat):
    def rename(data):
        features = data["input_features"]
        features["observation.images.a_top"] = features.pop("observation.images.wrist")

    edit_json(flat / "config.json", rename)
    assert opened(flat).embodiment(TAG).modalities.video.modality_keys == ("a_top", "front")


def test_the_number_of_denoising_steps_may_be_set(grouped):
    edit_json(grouped / "config.json", lambda data: data.update(num_inference_timesteps=2))
    assert opened(grouped).config.num_inference_timesteps == 2


def test_a_released_base_model_that_is_not_here_is_known_by_its_dimensions(grouped, tmp_path):
    backbone = tmp_path / "cosmos"
    shutil.copytree(BACKBONE, backbone)
    edit_json(backbone / "config.json", lambda data: data["text_config"].update(hidden_size=2048, num_hidden_layers=28))
    edit_json(grouped / "config.json", lambda data: data.update(base_model_path="nvidia/GR00T-N1.7-3B"))
    config = open_checkpoint(grouped, backbone=backbone).config
    assert (config.select_layer, config.diffusion_model_cfg.num_layers) == (16, 32)
    assert config.vl_self_attention_cfg.num_layers == _RELEASED_NETWORK["vl_self_attention_cfg"]["num_layers"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"type": "pi0"}, r"config\.json: type is 'pi0', but must be 'groot': this is another policy of LeRobot"),
        ({"tokenizer_assets_repo": "x/eagle"}, r"GR00T N1\.5 checkpoint \(tokenizer_assets_repo is 'x/eagle'\)"),
        ({"base_model_path": "nvidia/GR00T-N1.5-3B"}, r"GR00T N1\.5 checkpoint \(the model is 'nvidia/GR00T-N1\.5-3B'"),
        ({"base_model_path": "/no/such/folder"}, r"base_model_path is '/no/such/folder', which is not on this machine"),
        (
            {"base_model_path": "me/my-base"},
            r"me/my-base \(the base model\) is not on this machine and downloads are",
        ),
    ],
)
def test_another_policy_version_or_base_is_refused(grouped, change, message):
    edit_json(grouped / "config.json", lambda data: data.update(change))
    refused(grouped, message)


@pytest.mark.parametrize("name", ["groot_pack_inputs_v3", "groot_eagle_encode_v3", "groot_eagle_collate_v3"])
def test_the_processor_of_n1_5_is_refused(grouped, name):
    edit_json(grouped / "policy_preprocessor.json", lambda data: data["steps"].append({"registry_name": name}))
    refused(grouped, rf"GR00T N1\.5 checkpoint \(its step {name} belongs to N1\.5\)\. .*lerobot==0\.5\.1")


def test_an_unknown_step_is_refused(grouped):
    new = {"registry_name": "relative_actions_processor", "config": {"enabled": True}}
    edit_json(grouped / "policy_preprocessor.json", lambda data: data["steps"].append(new))
    refused(grouped, r"the step relative_actions_processor is unknown: it may change the numbers")


def test_a_missing_step_is_named(grouped):
    edit_json(grouped / "policy_preprocessor.json", lambda data: data["steps"].pop(2))
    refused(grouped, r"policy_preprocessor\.json: the step groot_n1_7_pack_inputs_v1 is missing")


def test_missing_processors_are_named(grouped):
    (grouped / "policy_postprocessor.json").unlink()
    refused(grouped, r"policy_postprocessor\.json is missing: copy the whole checkpoint folder")


def test_two_halves_of_different_checkpoints_are_refused(grouped):
    step(grouped, DECODE, lambda config: config.update(use_percentiles=True), "policy_postprocessor.json")
    refused(grouped, r"use_percentiles differs from that of the step groot_n1_7_pack_inputs_v1: the two must belong")


def test_a_damaged_state_file_is_named(flat):
    path = next(flat.glob("policy_preprocessor_step_2_*.safetensors"))
    path.write_bytes(path.read_bytes()[:50])
    refused(flat, r"policy_preprocessor_step_2_.*\.safetensors is damaged")


def test_a_state_file_cannot_lie_outside_the_folder(flat):
    def lead_away(data):
        data["steps"][2]["state_file"] = "../policy.safetensors"

    edit_json(flat / "policy_preprocessor.json", lead_away)
    refused(flat, r"state_file is \"\.\./policy\.safetensors\", but must be a safetensors file in the same folder")


def test_an_action_width_that_contradicts_the_statistics_is_refused(flat):
    step(flat, UNPACK, lambda config: config.update(env_action_dim=7), "policy_postprocessor.json")
    refused(flat, r"env_action_dim is 7, but must be the number of dimensions of the action's statistics")


def test_a_video_history_that_lerobot_trained_wrongly_is_refused(grouped):
    def add_history(config):
        config["modality_config"]["video"]["delta_indices"] = [-15, 0]

    step(grouped, PACK, add_history)
    step(grouped, DECODE, add_history, "policy_postprocessor.json")
    refused(grouped, r"the video has the history \[-15, 0\], but LeRobot trains it with one frame repeated")


def test_the_shorter_description_that_lerobots_own_relative_training_writes_is_read(grouped):
    def shorten(config):
        modalities = config["modality_config"]
        del modalities["language"], modalities["video"]
        modalities["state"] = {"modality_keys": modalities["state"]["modality_keys"]}
        for modality in config["raw_stats"].values():
            for entry in modality.values():
                entry["count"] = [600]

    step(grouped, PACK, shorten)
    step(grouped, DECODE, shorten, "policy_postprocessor.json")
    embodiment = opened(grouped).embodiment(TAG)
    assert embodiment.modalities.state.delta_indices == (0,)
    assert embodiment.modalities.video.modality_keys == ("front", "wrist")
    assert embodiment.modalities.language.modality_keys == ("task",)
