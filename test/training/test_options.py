"""Every option works or is refused in a sentence; none is ignored."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import yaml
from rich.console import Console
from scipy.spatial.transform import Rotation
from support.datasets import make_spec, write_dataset
from support.golden import TINY_SINGLE, load_case
from support.networks import tiny_network
from support.training import CONTRACT, golden_batch, quiet, saved_weights, small_config

from groot_ros.checkpoint import ActionFormat, ActionRepresentation, ActionType, open_checkpoint
from groot_ros.contract import parse_contract
from groot_ros.dataset.reader import open_dataset
from groot_ros.errors import CheckpointError, TrainingError
from groot_ros.numerics.relative import RelativeKind, to_relative
from groot_ros.training.config import FinetuneConfig, Lora, Tune, Validation, load_config
from groot_ros.training.draws import DrawOptions
from groot_ros.training.embodiment import changed_processor, contract_modalities, tag_statistics, training_target
from groot_ros.training.finetune import finetune
from groot_ros.training.network import TrainedNetwork
from groot_ros.training.schedule import CosineSchedule
from groot_ros.training.tuning import add_adapters, has_decay, merged_weights, set_tuned
from groot_ros.training.validation import held_out_episodes

LANGUAGE = "backbone.model.model.language_model."


def learning(network):
    return {name for name, parameter in network.named_parameters() if parameter.requires_grad}


def changed(before, after):
    return {name for name, value in before.items() if not torch.equal(value, after[name])}


def target_of(dataset, base_model, contract, **changes):
    config = small_config(dataset, base_model, None, dataset, **changes)
    return training_target(open_checkpoint(base_model), open_dataset(dataset), contract, config)


def test_by_default_the_backbone_stays_and_the_head_learns():
    network = tiny_network()
    set_tuned(network, Tune())
    assert learning(network) == {name for name, _ in network.named_parameters() if name.startswith("action_head.")}


def test_each_switch_opens_its_own_part():
    network = tiny_network()
    closed = dict.fromkeys(("projector", "diffusion_model", "vlln"), False)
    set_tuned(network, Tune(**closed | {"vlln": True}))
    assert {name.split(".")[1] for name in learning(network)} == {"vlln", "vl_self_attention"}
    set_tuned(network, Tune(**closed, top_llm_layers=2))
    layers = {name.removeprefix(LANGUAGE + "layers.").split(".")[0] for name in learning(network)}
    assert layers == {"2", "3"}  # of four
    set_tuned(network, Tune(**closed, visual=True))
    assert all(".visual." in name for name in learning(network))
    with pytest.raises(TrainingError, match="nothing of the network would learn"):
        set_tuned(network, Tune(**closed))
    with pytest.raises(TrainingError, match="top_llm_layers is 9, but the network has 4 language layers"):
        set_tuned(network, Tune(top_llm_layers=9))


def test_what_is_frozen_keeps_its_bits_and_the_rest_moves(dataset, base_model, contract, tmp_path):
    tune = {"diffusion_model": False, "vlln": False}
    quiet(small_config(dataset, base_model, contract, tmp_path / "out", steps=2, tune=tune))
    moved = changed(saved_weights(base_model), saved_weights(tmp_path / "out"))
    parts = {name.split(".")[1] for name in moved}
    assert parts == {"state_encoder", "action_encoder", "action_decoder", "position_embedding"}


def test_adapters_learn_and_are_merged_into_a_plain_checkpoint(dataset, base_model, contract, tmp_path):
    lora = {"rank": 2, "alpha": 4, "parts": ["diffusion_model", "llm"]}
    changes = {"tune": {"projector": False, "vlln": False}, "lora": lora, "steps": 2, "save_every": 1}
    quiet(small_config(dataset, base_model, contract, tmp_path / "out", **changes))
    before, after = saved_weights(base_model), saved_weights(tmp_path / "out")
    assert before.keys() == after.keys()
    moved = changed(before, after)
    assert {name.split(".")[1] for name in moved} == {"model"}
    assert any(name.startswith(LANGUAGE) for name in moved)
    assert all(name.endswith("weight") for name in moved)


def test_merged_adapters_compute_what_the_adapted_network_computes():
    network, batch = tiny_network(), golden_batch(open_checkpoint(TINY_SINGLE), load_case("model", "libero_sim_b1"))
    lora = Lora(rank=2, parts=("diffusion_model",))
    set_tuned(network, Tune(), lora)
    add_adapters(network, lora)
    assert "action_head.state_encoder.layer1.W" in learning(network)
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if ".lora_B" in name:
                parameter.normal_(0.0, 0.05, generator=torch.Generator().manual_seed(0))
    adapted = TrainedNetwork(network).eval()(**batch)["loss"]
    plain = tiny_network()
    before = TrainedNetwork(plain).eval()(**batch)["loss"]
    plain.load_state_dict(merged_weights(network.state_dict(), lora))
    torch.testing.assert_close(TrainedNetwork(plain).eval()(**batch)["loss"], adapted, atol=1e-5, rtol=1e-5)
    assert abs(before.item() - adapted.item()) > 1e-3


def test_recomputed_activations_give_the_same_gradients_to_the_bit():
    """Per tensor against a control: the plain path run twice with the same seed, dropout on."""
    batch = golden_batch(open_checkpoint(TINY_SINGLE), load_case("model", "new_embodiment_b2"))

    def gradients(*, recomputed):
        network = TrainedNetwork(tiny_network().requires_grad_()).train()
        if recomputed:
            network.recompute_activations()
        torch.manual_seed(3)
        network(**batch)["loss"].backward()
        return {name: p.grad for name, p in network.named_parameters() if p.grad is not None}

    plain, control, recomputed = gradients(recomputed=False), gradients(recomputed=False), gradients(recomputed=True)
    assert plain.keys() == recomputed.keys()
    for name, gradient in plain.items():
        scale = float(gradient.norm()) or 1.0
        run_to_run = float((control[name] - gradient).norm()) / scale
        assert float((recomputed[name] - gradient).norm()) / scale <= run_to_run + 1e-6, name


def test_bfloat16_keeps_what_learns_in_float32(dataset, base_model, contract, tmp_path):
    changes = {"precision": "bfloat16", "steps": 2, "gradient_checkpointing": True}
    quiet(small_config(dataset, base_model, contract, tmp_path / "out", **changes))
    weights = saved_weights(tmp_path / "out")
    assert {value.dtype for name, value in weights.items() if name.startswith("action_head.")} == {torch.float32}
    assert {value.dtype for name, value in weights.items() if name.startswith("backbone.")} == {torch.bfloat16}


def test_a_group_can_be_taken_out_of_the_relative_ones_by_name(dataset, base_model):
    contract = parse_contract(CONTRACT, "contract")
    assert target_of(dataset, base_model, contract).checkpoint.statistics["new_embodiment"].relative_action
    target = target_of(dataset, base_model, contract, absolute=["single_arm"])
    configs = target.checkpoint.processor.modality_configs["new_embodiment"].action.action_configs
    assert {config.rep for config in configs} == {ActionRepresentation.ABSOLUTE}
    assert not target.checkpoint.statistics["new_embodiment"].relative_action
    with pytest.raises(TrainingError, match="absolute: found hand; the action groups are single_arm, gripper"):
        target_of(dataset, base_model, contract, absolute=["hand"])


def test_relative_groups_are_never_trained_with_the_switch_off(dataset, base_model):
    contract = parse_contract(CONTRACT, "contract")
    with pytest.raises(TrainingError, match="use_relative_action is false, but the tag has relative action groups"):
        target_of(dataset, base_model, contract, processing={"use_relative_action": False})


def test_a_new_tag_gets_a_projector_and_unknown_ones_need_a_contract(dataset, base_model):
    contract = parse_contract(CONTRACT.replace("new_embodiment", "my_robot"), "contract")
    target = target_of(dataset, base_model, contract)
    assert target.checkpoint.embodiment("my_robot").id == 10
    assert target.checkpoint.tags == ("new_embodiment", "my_robot")
    assert target_of(dataset, base_model, contract, projector=3).checkpoint.embodiment("my_robot").id == 3
    with pytest.raises(TrainingError, match=r"does not know my_robot .*give --contract"):
        target_of(dataset, base_model, None, embodiment_tag="my_robot")
    with pytest.raises(TrainingError, match="would get number 40, but the network has 11 projectors"):
        target_of(dataset, base_model, contract, projector=40)


def test_end_effector_poses_train_relative_to_the_pose_of_the_state(base_model):
    """Their statistics are those of the rigid transforms, row by row."""
    text = CONTRACT.replace(
        "{topic: joint_states, joints: [shoulder, elbow, wrist]}", "{tf: [base, tool], rotation: rot6d_rows}"
    )
    text = text.replace("single_arm: {meaning: position}", "single_arm: {meaning: pose}")
    text = text.replace(
        "{type: joint_trajectory, topic: arm/joint_trajectory, from: {single_arm: all, gripper: all}}",
        "{type: pose, topic: pose, frame: base, from: {single_arm: all}}",
    )
    text = text.replace("gripper: {meaning: position}}", "gripper: {meaning: unused}}")
    with pytest.raises(TrainingError, match="nothing can be learned for unused action groups: remove gripper"):
        contract_modalities(parse_contract(text, "contract"))
    text = text.replace(", gripper: {meaning: unused}", "").replace(", gripper: absolute", "")
    modalities = contract_modalities(parse_contract(text, "contract"))
    config = modalities.action.action_configs[0]
    assert (config.rep, config.type, config.format) == (
        ActionRepresentation.RELATIVE,
        ActionType.EEF,
        ActionFormat.XYZ_ROT6D,
    )
    rng = np.random.default_rng(0)

    rotations = Rotation.random(20, random_state=0).as_matrix()[:, :2].reshape(20, 6)
    rows = np.concatenate([rng.normal(size=(20, 3)), rotations], axis=1)
    data = SimpleNamespace(
        total_frames=20,
        episodes=[SimpleNamespace(length=20)],
        modality=SimpleNamespace(action={"single_arm": SimpleNamespace(dimension=9)}),
        state=lambda _episode, key: rows if key == "single_arm" else np.zeros((20, 1)),
        action=lambda _episode, _key: rows,
    )
    statistics = tag_statistics(data, modalities, open_checkpoint(base_model).processor)
    starts = range(13)
    windows = np.stack(
        [to_relative(rows[r : r + 8], rows[r].astype(np.float32), RelativeKind.XYZ_ROT6D) for r in starts]
    )
    np.testing.assert_allclose(statistics.relative_action["single_arm"].max, windows.max(axis=0), atol=1e-9)
    text = text.replace("rot6d_rows", "rpy")
    with pytest.raises(TrainingError, match="a pose written as rpy cannot be relative"):
        contract_modalities(parse_contract(text, "contract"))


def test_a_changed_geometry_is_applied_and_saved(dataset, base_model, contract, tmp_path):
    changes = {"processing": {"crop_fraction": 0.5, "use_percentiles": True}, "steps": 1}
    quiet(small_config(dataset, base_model, contract, tmp_path / "out", **changes))
    processor = open_checkpoint(tmp_path / "out").processor
    assert (processor.crop_fraction, processor.use_percentiles) == (0.5, True)


def test_what_cannot_be_changed_is_refused(base_model):
    processor = open_checkpoint(base_model).processor
    with pytest.raises(TrainingError, match=r"max_action_dim cannot be changed; allowed are image_crop_size"):
        changed_processor(processor, {"max_action_dim": 7})
    with pytest.raises(CheckpointError, match="crop_fraction"):
        changed_processor(processor, {"crop_fraction": 1.5})


def test_jitter_is_refused_where_its_arithmetic_is_not_known(base_model):
    checkpoint = open_checkpoint(base_model)
    processor = replace(checkpoint.processor, use_albumentations=False, color_jitter_params={"hue": 0.1})
    with pytest.raises(TrainingError, match="only available with use_albumentations"):
        DrawOptions.of(processor, checkpoint.config, seed=0, frames=1)


def test_a_dataset_of_another_rate_is_refused(tmp_path, base_model):
    other = write_dataset(tmp_path / "fast", lengths=(12,), spec=make_spec(fps=25))
    with pytest.raises(TrainingError, match=r"rate_hz is 20, but .* has 25 rows a second"):
        target_of(other, base_model, parse_contract(CONTRACT, "contract"))


def test_a_new_network_has_the_dimensions_of_the_file(dataset, base_model, contract, tmp_path):
    scratch = {"seed": 1, "network": {"diffusion_model_cfg": {"num_layers": 2}, "max_action_dim": 6}}
    quiet(small_config(dataset, base_model, contract, tmp_path / "out", steps=1, from_scratch=scratch))
    checkpoint = open_checkpoint(tmp_path / "out")
    assert checkpoint.config.max_action_dim == checkpoint.processor.max_action_dim == 6
    assert checkpoint.config.diffusion_model_cfg.num_layers == 2
    wrong = {"network": {"widht": 3}}
    with pytest.raises(TrainingError, match=r"from_scratch\.network: found widht; allowed are select_layer"):
        quiet(small_config(dataset, base_model, contract, tmp_path / "other", from_scratch=wrong))


def test_held_out_episodes_are_spread_and_never_trained_on(dataset):
    data = open_dataset(dataset)
    assert held_out_episodes(data, Validation(episodes=0.0)) == ()
    assert len(held_out_episodes(data, Validation(episodes=0.5))) == 2
    assert held_out_episodes(data, Validation(episodes=(1, 3))) == (1, 3)
    assert len(held_out_episodes(data, Validation(episodes=0.05))) == 1
    assert len(held_out_episodes(data, Validation(episodes=0.99))) == 3, "nothing is left to train on"


@pytest.mark.parametrize(
    ("episodes", "sentence"),
    [
        ((60,), "has no episode 60; its 4 episodes are numbered from 0 to 3"),
        ((3, 500), "has no episode 500; its 4 episodes"),
        ((-1, 4), "has no episode -1, 4; its 4 episodes"),
        ((0, 1, 2, 3), "all 4 episodes of .* are held out; leave some to train on"),
    ],
)
def test_held_out_episodes_that_cannot_be_are_refused(dataset, episodes, sentence):
    with pytest.raises(TrainingError, match=rf"validation\.episodes: .*{sentence}"):
        held_out_episodes(open_dataset(dataset), Validation(episodes=episodes))


def test_one_episode_is_trained_on_by_default_and_that_nothing_validates_is_said(base_model, contract, tmp_path):
    single = write_dataset(tmp_path / "single", lengths=(16,))
    heard = io.StringIO()
    config = small_config(single, base_model, contract, tmp_path / "out", steps=1, validation={})
    assert finetune(config, console=Console(file=heard, width=400)).steps == 1
    assert "no episode is held out" in heard.getvalue()


def test_the_rate_rises_over_its_share_of_the_actual_steps_and_falls_to_its_end():
    schedule = CosineSchedule.of(200, 0.05, 0.02)
    assert [schedule(step) for step in (0, 5, 10)] == [0.0, 0.5, 1.0]
    assert schedule(200) == pytest.approx(0.02)
    assert schedule(105) == pytest.approx(0.51)


def test_biases_and_norms_do_not_decay():
    decaying = {name for name, p in tiny_network().named_parameters() if has_decay(name, p)}
    assert "action_head.state_encoder.layer1.W" in decaying
    assert not any(name.endswith((".b", ".bias", "norm1.weight", "vlln.weight")) for name in decaying)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("stepz: 3", "stepz is not a key of the configuration"),
        ("steps: 0", r"steps: Input should be greater than or equal to 1 \(found 0\)"),
        ("dataset: d\nbase_model: b", "output is missing; give it in the file or on the command line"),
        (
            "{dataset: d, base_model: b, output: o, tune: {llm: true}, lora: {parts: [llm]}}",
            "llm is also tuned as a whole",
        ),
        ("[1, 2]", "found list, wanted a mapping"),
        ("a: [", "cannot be read"),
    ],
)
def test_a_wrong_configuration_is_said_in_a_sentence(tmp_path, text, sentence):
    path = tmp_path / "training.yaml"
    path.write_text(text)
    with pytest.raises(TrainingError, match=sentence):
        load_config(path, {})


def test_the_shipped_configuration_is_read():
    path = Path(__file__).parents[2] / "config" / "training" / "demo.yaml"
    config = load_config(path, {"dataset": "d", "base_model": "b", "output": "o"})
    assert (config.ema_decay, config.tune.visual) == (0.998, True)


def test_the_command_line_wins_over_the_file(tmp_path):
    path = tmp_path / "training.yaml"
    path.write_text(yaml.safe_dump({"dataset": "d", "base_model": "b", "output": "o", "validation": {"every": 7}}))
    config = load_config(path, {"steps": 5, "validation.windows": 3})
    assert (config.steps, config.validation.every, config.validation.windows) == (5, 7, 3)


def test_the_defaults_are_the_recipe_of_n1_7():
    config = FinetuneConfig(dataset="d", base_model="b", output="o")
    assert (config.learning_rate, config.warmup_ratio, config.weight_decay) == (1e-4, 0.05, 1e-5)
    assert config.betas == (0.9, 0.999)
    assert (config.batch_size, config.steps, config.max_gradient_norm) == (64, 10000, 1.0)
