"""Putting a checkpoint's tensors into the network."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from support.golden import TINY_SHARDED, TINY_SINGLE, load_case
from support.networks import backbone_config, encode, golden_inputs, model_config, tiny_network, weights

from groot_ros.checkpoint import DiTConfig, ModelConfig, VLSelfAttentionConfig
from groot_ros.errors import ModelError
from groot_ros.model import GrootN17, load_model

SOME_WEIGHT = "action_head.model.proj_out_2.weight"


def load(change: Callable[[dict[str, torch.Tensor]], Any], **overrides: Any) -> GrootN17:
    tensors = weights()
    change(tensors)
    return load_model(model_config(**overrides), backbone_config(), tensors.items(), device="cpu", dtype=torch.float32)


def test_the_parameters_are_those_of_the_file_and_no_others(network: GrootN17) -> None:
    tensors = weights()
    parameters = dict(network.named_parameters())
    assert parameters.keys() == tensors.keys()
    assert all(torch.equal(parameters[name], tensor) for name, tensor in tensors.items())


def test_single_and_sharded_checkpoints_give_the_same_parameters_bit_by_bit(network: GrootN17) -> None:
    sharded = dict(tiny_network(TINY_SHARDED).named_parameters())
    assert {p.dtype for p in sharded.values()} == {torch.float32}
    assert all(torch.equal(sharded[name], p) for name, p in network.named_parameters())


def test_nothing_is_left_uninitialised(network: GrootN17) -> None:
    assert not list(network.buffers())
    assert {p.device.type for p in network.parameters()} == {"cpu"}


def test_a_loaded_network_is_ready_to_run(network: GrootN17) -> None:
    assert not network.training
    assert not any(p.requires_grad for p in network.parameters())
    assert (network.dtype, network.device.type) == (torch.float32, "cpu")


def test_bfloat16_weights_run_and_keep_positions_exact() -> None:
    case = load_case("model", "libero_sim_b1")
    features = encode(tiny_network(dtype=torch.bfloat16), golden_inputs(case)).hidden_states
    assert features.dtype == torch.bfloat16
    golden = torch.from_numpy(case["backbone_features"])
    assert (features.float() - golden).norm() / golden.norm() < 0.02


def test_a_change_of_the_source_after_loading_changes_nothing() -> None:
    tensors = weights()
    network = load_model(model_config(), backbone_config(), tensors.items(), device="cpu", dtype=torch.float32)
    tensors[SOME_WEIGHT].zero_()
    assert network.action_head.model.proj_out_2.weight.abs().sum() > 0


def test_the_unused_output_layer_is_accepted() -> None:
    load(lambda tensors: tensors.update({"backbone.model.lm_head.weight": torch.zeros(288, 48)}))


def test_a_missing_tensor_is_named() -> None:
    with pytest.raises(ModelError, match=rf"do not fit its config.json; 1 missing: {SOME_WEIGHT}\.$"):
        load(lambda tensors: tensors.pop(SOME_WEIGHT))


def test_a_surplus_tensor_is_named() -> None:
    with pytest.raises(ModelError, match=r"1 surplus: action_head.tactile.weight\.$"):
        load(lambda tensors: tensors.update({"action_head.tactile.weight": torch.zeros(2)}))


def test_many_missing_tensors_are_counted() -> None:
    def remove_vision(tensors: dict[str, torch.Tensor]) -> None:
        for name in [name for name in tensors if ".visual." in name]:
            del tensors[name]

    with pytest.raises(ModelError, match=r"\d+ missing: backbone.model.model.visual.blocks.*, .* and \d+ more\.$"):
        load(remove_vision)


def test_a_tensor_of_another_shape_is_refused() -> None:
    with pytest.raises(ModelError, match=rf"{SOME_WEIGHT} has shape \(2, 3\); config.json asks for \(28, 24\)"):
        load(lambda tensors: tensors.update({SOME_WEIGHT: torch.zeros(2, 3)}))


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_are_refused_by_name(value: float) -> None:
    with pytest.raises(ModelError, match=rf"{SOME_WEIGHT} holds values that are not finite"):
        load(lambda tensors: tensors[SOME_WEIGHT].view(-1)[5:6].fill_(value))


def test_a_tensor_given_twice_is_refused() -> None:
    tensors = [*weights().items(), (SOME_WEIGHT, torch.zeros(28, 24))]
    with pytest.raises(ModelError, match=rf"{SOME_WEIGHT} twice"):
        load_model(model_config(), backbone_config(), tensors, device="cpu", dtype=torch.float32)


@pytest.mark.parametrize(
    ("prefix", "overrides"),
    [
        ("action_head.vlln.", {"use_vlln": False}),
        ("action_head.vl_self_attention.", {"vl_self_attention_cfg": None}),
        ("action_head.position_embedding.", {"add_pos_embed": False}),
        ("backbone.model.model.language_model.layers.3.", {"select_layer": 3}),
    ],
)
def test_tensors_are_ignored_only_where_a_switch_makes_them_unnecessary(prefix: str, overrides: dict[str, Any]) -> None:
    without = load(lambda tensors: None, **overrides)
    assert not any(name.startswith(prefix) for name, _ in without.named_parameters())

    def remove(tensors: dict[str, torch.Tensor]) -> None:
        for name in [name for name in tensors if name.startswith(prefix)]:
            del tensors[name]

    load(remove, **overrides)
    with pytest.raises(ModelError, match=f"missing: {prefix}"):
        load(remove)


def test_a_decoder_layer_beyond_those_of_the_backbone_is_surplus() -> None:
    name = "backbone.model.model.language_model.layers.6.input_layernorm.weight"
    with pytest.raises(ModelError, match="1 surplus"):
        load(lambda tensors: tensors.update({name: torch.zeros(48)}))


def test_more_kept_layers_than_the_backbone_has_are_refused() -> None:
    with pytest.raises(ModelError, match=r"select_layer is 7, but the backbone has 6 decoder layers"):
        load(lambda tensors: None, select_layer=7)


def test_a_backbone_of_another_width_is_refused() -> None:
    backbone = backbone_config()
    backbone["text_config"]["hidden_size"] = 64
    with pytest.raises(ModelError, match=r"backbone_embedding_dim 48, but the backbone's .* hidden_size 64"):
        load_model(model_config(), backbone, weights().items(), device="cpu", dtype=torch.float32)


@pytest.mark.parametrize(
    ("table", "key"), [("text_config", "head_dim"), ("text_config", "rope_theta"), ("vision_config", "num_heads")]
)
def test_a_key_missing_from_the_backbone_configuration_is_named(table: str, key: str) -> None:
    backbone = backbone_config()
    del backbone[table][key]
    with pytest.raises(ModelError, match=rf"The backbone's config.json has no {table}\.{key}"):
        load_model(model_config(), backbone, weights().items(), device="cpu", dtype=torch.float32)


def test_another_kind_of_backbone_is_refused() -> None:
    with pytest.raises(ModelError, match=r"model_type 'eagle_3_vl'; GR00T N1\.7 needs 'qwen3_vl'"):
        load_model(
            model_config(), backbone_config() | {"model_type": "eagle_3_vl"}, [], device="cpu", dtype=torch.float32
        )


def test_other_rotary_positions_are_refused() -> None:
    backbone = backbone_config()
    backbone["text_config"]["rope_scaling"]["rope_type"] = "yarn"
    with pytest.raises(ModelError, match="only rope_type 'default' with mrope_interleaved true is known"):
        load_model(model_config(), backbone, [], device="cpu", dtype=torch.float32)


def test_a_backbone_configuration_written_by_transformers_5_means_the_same(network: GrootN17) -> None:
    backbone = backbone_config()
    text = backbone["text_config"]
    text["rope_parameters"] = text.pop("rope_scaling") | {"rope_theta": text.pop("rope_theta")}
    newer = load_model(model_config(), backbone, weights().items(), device="cpu", dtype=torch.float32)
    assert newer.backbone.config.rope_theta == network.backbone.config.rope_theta == 5_000_000
    assert newer.backbone.config.mrope_section == network.backbone.config.mrope_section


def test_the_released_network_has_the_published_number_of_parameters() -> None:
    config = ModelConfig(
        select_layer=16,
        diffusion_model_cfg=DiTConfig(
            num_layers=32, num_attention_heads=32, attention_head_dim=48, output_dim=1024, dropout=0.2
        ),
        vl_self_attention_cfg=VLSelfAttentionConfig(num_layers=4, num_attention_heads=32, attention_head_dim=64),
    )
    backbone = json.loads((Path(__file__).parent / "qwen3_vl_2b.json").read_text())
    with torch.device("meta"):
        network = GrootN17(config, backbone)

    def count(module: torch.nn.Module) -> int:
        return sum(p.numel() for p in module.parameters())

    assert count(network.action_head.model) == 1_091_722_240
    assert count(network.action_head.vl_self_attention) == 201_433_088
    assert count(network.action_head) == 1_620_515_968
    assert count(network.backbone) == 1_523_500_032


def test_both_golden_checkpoints_have_the_same_network_configuration() -> None:
    assert model_config(TINY_SINGLE) == model_config(TINY_SHARDED)
