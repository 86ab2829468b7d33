"""config.json: defaults of the original's code where keys are absent, and no key that could change a number unseen."""

import pytest

from groot_ros.checkpoint import DiTConfig, ModelConfig, parse_model_config
from groot_ros.checkpoint.writing import model_config_json
from groot_ros.errors import CheckpointError

N1_7 = {"model_type": "Gr00tN1d7"}
DIT = {
    "num_layers": 32,
    "num_attention_heads": 32,
    "attention_head_dim": 48,
    "output_dim": 1024,
    "interleave_self_attention": True,
    "positional_embeddings": None,
}
SELF_ATTENTION = {"num_layers": 4, "num_attention_heads": 32, "attention_head_dim": 64, "positional_embeddings": None}


def parse(**keys):
    return parse_model_config({**N1_7, **keys}, "config.json")


def test_absent_keys_take_the_defaults_of_the_originals_code():
    config = parse()
    assert config == ModelConfig()
    assert (config.select_layer, config.diffusion_model_cfg.num_layers, config.state_dropout_prob) == (12, 16, 0.8)
    assert config.vl_self_attention_cfg is None


def test_the_released_network_is_read():
    config = parse(select_layer=16, diffusion_model_cfg=DIT, vl_self_attention_cfg=SELF_ATTENTION)
    assert config.select_layer == 16
    assert config.diffusion_model_cfg == DiTConfig(num_layers=32, dropout=0.1)
    assert config.vl_self_attention_cfg.num_layers == 4


def test_what_is_written_is_read_back_unchanged():
    config = parse(select_layer=16, diffusion_model_cfg=DIT, vl_self_attention_cfg=SELF_ATTENTION, max_seq_len=64)
    assert parse_model_config(model_config_json(config), "config.json") == config
    assert parse_model_config(model_config_json(ModelConfig()), "config.json") == ModelConfig()


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"new_switch": True}, r"config\.json: unknown key new_switch: this version does not know what it changes"),
        ({"a": 1, "b": 2}, r"unknown keys a, b"),
        ({"strict_action_padding_mask": True}, r"strict_action_padding_mask is true, but only false is supported"),
        ({"reproject_vision": True}, r"reproject_vision is true, but only false is supported"),
        ({"backbone_model_type": "eagle"}, r"backbone_model_type is \"eagle\", but only \"qwen\" is supported"),
        ({"diffusion_model_cfg": {**DIT, "norm_type": "layer_norm"}}, r"norm_type is \"layer_norm\", but only"),
        (
            {"diffusion_model_cfg": {k: v for k, v in DIT.items() if k != "positional_embeddings"}},
            r"positional_embeddings is absent, which means \"sinusoidal\", but only null is supported",
        ),
        ({"diffusion_model_cfg": {**DIT, "qk_norm": True}}, r"diffusion_model_cfg: unknown key qk_norm"),
        ({"diffusion_model_cfg": {**DIT, "output_dim": 512}}, r"output_dim is 512, but must equal hidden_size, which"),
        ({"input_embedding_dim": 512}, r"is 1536, but must equal input_embedding_dim, which is 512"),
        (
            {"vl_self_attention_cfg": {**SELF_ATTENTION, "attention_head_dim": 32}},
            r"is 1024, but must equal backbone_embedding_dim, which is 2048",
        ),
        ({"action_horizon": "40"}, r"action_horizon is \"40\", but must be a whole number of at least 1"),
        ({"action_horizon": True}, r"action_horizon is true, but must be a whole number"),
        ({"select_layer": 0}, r"select_layer is 0, but must be a whole number of at least 1"),
        ({"use_vlln": 1}, r"use_vlln is 1, but must be true or false"),
        ({"noise_s": 1.5}, r"noise_s is 1\.5, but must be a number between 0 and 1"),
        ({"noise_beta_alpha": float("nan")}, r"noise_beta_alpha is NaN, but must be a number of at least"),
        ({"model_name": ""}, r"model_name is \"\", but must be a non-empty string"),
        ({"diffusion_model_cfg": []}, r"diffusion_model_cfg is \[\], but must be a JSON object"),
        ({"max_seq_len": 30}, r"max_seq_len is 30, but must be at least action_horizon, which is 40"),
    ],
)
def test_what_would_change_the_numbers_is_refused(keys, message):
    with pytest.raises(CheckpointError, match=message):
        parse(**keys)


def test_keys_that_only_training_and_transformers_read_are_no_obstacle():
    config = parse(
        dtype="bfloat16",
        transformers_version="4.57.3",
        use_flash_attention=True,
        image_crop_size=[230, 230],
        id2label={},
    )
    assert config == ModelConfig()
