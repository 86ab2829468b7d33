"""The prepared network gives what the plain network gives, padded batches and every switch included."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from support.golden import TINY_SINGLE, GoldenCase, case_names, load_case
from support.networks import (
    ENCODER_INPUTS,
    backbone_config,
    encode,
    golden_inputs,
    model_config,
    sample,
    tiny_network,
    weights,
)

from groot_ros.checkpoint import WeightFiles
from groot_ros.errors import ModelError
from groot_ros.model import GrootN17, RealTimeChunking, load_model
from groot_ros.model.fast import FastNetwork, load_fast
from groot_ros.model.fast import network as fast_module
from groot_ros.model.fast.network import PreparedFeatures
from groot_ros.model.fast.prompt import REMEMBERED_PROMPTS, TokenChoice

CASES = [name for name in case_names("model") if name != "model_config_variants"]
PADDED = "model_only_b3"
VARIANTS = load_case("model", "model_config_variants").meta["variants"]


def embodiments(inputs: dict[str, torch.Tensor]) -> list[int]:
    return inputs["embodiment_id"].unique().tolist()


def fast_encode(network: FastNetwork, inputs: dict[str, torch.Tensor]) -> PreparedFeatures:
    return network.encode(**{key: inputs[key] for key in ENCODER_INPUTS})


def fast_sample(network: FastNetwork, inputs: dict[str, torch.Tensor], noise: np.ndarray, **options: Any) -> np.ndarray:
    features = fast_encode(network, inputs)
    return network.sample(features, state=inputs["state"], noise=torch.from_numpy(noise), **options).numpy()


def chunking(case: GoldenCase, options: dict[str, Any]) -> RealTimeChunking:
    return RealTimeChunking(
        previous=torch.from_numpy(case["rtc.prev_action"]),
        action_horizon=options["action_horizon"],
        overlap_steps=options["rtc_overlap_steps"],
        frozen_steps=options["rtc_frozen_steps"],
        ramp_rate=options["rtc_ramp_rate"],
    )


@pytest.mark.parametrize("name", CASES)
def test_features_and_actions_equal_the_original(name: str) -> None:
    case = load_case("model", name)
    inputs = golden_inputs(case)
    for embodiment in embodiments(inputs):
        network = FastNetwork(tiny_network(), embodiment)
        rows = (inputs["embodiment_id"] == embodiment).numpy()
        features = fast_encode(network, inputs).hidden_states
        np.testing.assert_allclose(features, case["backbone_features"], atol=1e-4, rtol=1e-3)
        actions = fast_sample(network, inputs, case["initial_noise"])
        tolerance = max(3e-4, 5 * case.meta["float32_vs_float64_max_action_difference"])
        np.testing.assert_allclose(actions[rows], case["action_pred"][rows], atol=tolerance, rtol=1e-3)


@pytest.mark.parametrize("overrides", [{}, *(variant["config_overrides"] for variant in VARIANTS)], ids=str)
@pytest.mark.parametrize("steps", [1, 3, 4, 8])
def test_the_action_head_is_the_plain_one_in_double_precision(overrides: dict[str, Any], steps: int) -> None:
    """With rounding out of the way nothing is left of the difference: masks, tables and projectors are the same."""
    inputs = golden_inputs(load_case("model", PADDED))
    noise = load_case("model", PADDED)["initial_noise"].astype(np.float64)
    plain = tiny_network(dtype=torch.float64, **overrides)
    features = encode(plain, inputs)
    wanted = plain.sample(
        features,
        state=inputs["state"],
        embodiment_id=inputs["embodiment_id"],
        noise=torch.from_numpy(noise),
        steps=steps,
    )
    for embodiment in embodiments(inputs):
        fast = FastNetwork(tiny_network(dtype=torch.float64, **overrides), embodiment, steps=steps)
        prompt = fast_encode(fast, inputs).prompt
        given = PreparedFeatures(features.hidden_states, features.attention_mask, features.image_mask, prompt)
        found = fast.sample(given, state=inputs["state"], noise=torch.from_numpy(noise))
        rows = inputs["embodiment_id"] == embodiment
        np.testing.assert_allclose(found[rows], wanted[rows], atol=1e-10)


@pytest.mark.parametrize("index", range(len(load_case("model", "libero_sim_b1").meta["rtc"])))
def test_real_time_chunking_is_the_same(index: int) -> None:
    case = load_case("model", "libero_sim_b1")
    options = case.meta["rtc"][index]
    if options["rtc_frozen_steps"] > options["rtc_overlap_steps"]:
        with pytest.raises(ModelError):
            chunking(case, options)
        return
    rtc = chunking(case, options)
    inputs = golden_inputs(case)
    actions = fast_sample(FastNetwork(tiny_network(), *embodiments(inputs)), inputs, case["initial_noise"], rtc=rtc)
    np.testing.assert_allclose(actions, case[f"rtc.{index}.action_pred"], atol=3e-4, rtol=1e-3)
    first = rtc.action_horizon - rtc.overlap_steps
    kept = case["rtc.prev_action"][:, first : first + rtc.frozen_steps]
    assert np.array_equal(actions[:, : rtc.frozen_steps], kept)


def middle_network(dtype: torch.dtype = torch.float32, seed: int = 0) -> GrootN17:
    """A network of moderate size whose random weights, unlike those of the tiny one, do not amplify rounding."""
    config = model_config(
        input_embedding_dim=128,
        hidden_size=96,
        backbone_embedding_dim=128,
        diffusion_model_cfg={
            "num_layers": 8,
            "num_attention_heads": 4,
            "attention_head_dim": 32,
            "output_dim": 96,
            "norm_type": "ada_norm",
            "interleave_self_attention": True,
            "positional_embeddings": None,
        },
        vl_self_attention_cfg={
            "num_layers": 2,
            "num_attention_heads": 4,
            "attention_head_dim": 32,
            "positional_embeddings": None,
        },
    )
    backbone = backbone_config()
    backbone["text_config"] |= {"hidden_size": 128, "intermediate_size": 256}
    backbone["vision_config"] |= {"hidden_size": 128, "intermediate_size": 256, "out_hidden_size": 128, "num_heads": 4}
    with torch.device("meta"):
        shapes = {name: parameter.shape for name, parameter in GrootN17(config, backbone).named_parameters()}
    generator = torch.Generator().manual_seed(seed)
    tensors = {}
    for name, shape in shapes.items():
        values = torch.randn(shape, generator=generator)
        is_norm = len(shape) == 1 and name.endswith("weight")
        tensors[name] = 0.02 * values if len(shape) > 1 else 0.1 * values + is_norm
    return load_model(config, backbone, tensors.items(), device="cpu", dtype=dtype)


@pytest.mark.parametrize("packed", [False, True], ids=["plain weights", "packed weights"])
@pytest.mark.parametrize("name", ["model_only_b1", PADDED])
def test_a_network_of_moderate_size_agrees_to_1e_5_with_everything_on(
    name: str, packed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fast_module, "can_pack", lambda _dtype: packed)
    case = load_case("model", name)
    inputs = golden_inputs(case)
    plain = middle_network()
    wanted, features = sample(plain, inputs, case["initial_noise"]), encode(plain, inputs).hidden_states
    assert features.std() > 0.1
    for embodiment in embodiments(inputs):
        fast = FastNetwork(middle_network(), embodiment)
        rows = (inputs["embodiment_id"] == embodiment).numpy()
        np.testing.assert_allclose(fast_encode(fast, inputs).hidden_states, features, atol=1e-5)
        actions = fast_sample(fast, inputs, case["initial_noise"])
        np.testing.assert_allclose(actions[rows], wanted[rows], atol=1e-5)
        assert np.abs(actions - case["initial_noise"]).max() > 1e-2


def test_bfloat16_weights_with_float32_sums_are_nearer_to_float32_than_plain_bfloat16() -> None:
    case = load_case("model", PADDED)
    inputs, noise = golden_inputs(case), case["initial_noise"]
    exact = sample(middle_network(), inputs, noise)
    embodiment = int(inputs["embodiment_id"][0])
    rounded = middle_network(torch.bfloat16)
    features = encode(rounded, inputs)
    plain = rounded.sample(
        features,
        state=inputs["state"],
        embodiment_id=inputs["embodiment_id"],
        noise=torch.from_numpy(noise),
    )
    fast = fast_sample(FastNetwork(middle_network(torch.bfloat16), embodiment), inputs, noise)
    error_plain = np.square(plain.float().numpy()[0] - exact[0]).mean() ** 0.5
    error_fast = np.square(fast[0] - exact[0]).mean() ** 0.5
    assert fast.dtype == np.float32
    assert error_fast < error_plain / 2


def test_residual_sums_can_stay_in_the_type_of_the_weights() -> None:
    case = load_case("model", "libero_sim_b1")
    inputs = golden_inputs(case)
    fast = FastNetwork(tiny_network(dtype=torch.bfloat16), *embodiments(inputs), residual=torch.bfloat16)
    features = fast_encode(fast, inputs)
    assert features.hidden_states.dtype == torch.bfloat16
    golden = torch.from_numpy(case["backbone_features"])
    assert (features.hidden_states.float() - golden).norm() / golden.norm() < 0.03


def test_the_plain_network_s_weights_have_moved() -> None:
    plain = tiny_network()
    fast = FastNetwork(plain, 2)
    assert fast.prompts  # whatever is needed first prepares the network
    left = {name for name, parameter in plain.named_parameters() if parameter.device.type != "meta"}
    assert left == {
        "backbone.model.model.visual.pos_embed.weight",
        "backbone.model.model.language_model.embed_tokens.weight",
        "backbone.model.model.language_model.norm.weight",
    }
    assert fast.device.type == "cpu"


class TestPrompt:
    @pytest.fixture(name="network")
    def make_network(self) -> FastNetwork:
        return FastNetwork(tiny_network(), 2)

    def prepared(self, network: FastNetwork, inputs: dict[str, torch.Tensor]):
        return network.prompts(inputs["input_ids"], inputs["attention_mask"], inputs["image_grid_thw"])

    def test_the_same_instruction_is_prepared_once(self, network: FastNetwork) -> None:
        inputs = golden_inputs(load_case("model", "libero_sim_b1"))
        again = {key: tensor.clone() for key, tensor in inputs.items()}
        assert self.prepared(network, inputs) is self.prepared(network, again)

    def test_another_word_padding_or_image_size_is_prepared_anew(self, network: FastNetwork) -> None:
        inputs = golden_inputs(load_case("model", "libero_sim_b1"))
        first = self.prepared(network, inputs)
        word = {**inputs, "input_ids": inputs["input_ids"].clone()}
        word["input_ids"][0, -3] += 1
        padding = {**inputs, "attention_mask": inputs["attention_mask"].clone()}
        padding["attention_mask"][0, 0] = 0
        size = {**inputs, "image_grid_thw": inputs["image_grid_thw"] * 2 // torch.tensor([2, 4, 1])}
        others = [self.prepared(network, changed) for changed in (word, padding, size)]
        assert len({id(prompt) for prompt in (first, *others)}) == 4
        assert not torch.equal(others[0].embeddings, first.embeddings)
        assert others[1].causal is not None
        assert self.prepared(network, inputs) is first

    def test_only_the_last_prompts_are_kept(self, network: FastNetwork) -> None:
        inputs = golden_inputs(load_case("model", "libero_sim_b1"))
        first = self.prepared(network, inputs)
        for word in range(REMEMBERED_PROMPTS):
            changed = {**inputs, "input_ids": inputs["input_ids"].clone()}
            changed["input_ids"][0, -3] = word
            self.prepared(network, changed)
        assert self.prepared(network, inputs) is not first

    def test_grids_that_do_not_fit_are_refused(self, network: FastNetwork) -> None:
        inputs = golden_inputs(load_case("model", "libero_sim_b1"))
        with pytest.raises(ModelError, match="image tokens of sample 0 do not fit"):
            self.prepared(network, {**inputs, "image_grid_thw": inputs["image_grid_thw"] * torch.tensor([1, 2, 1])})
        with pytest.raises(ModelError, match=r"pixel_values has 3 patches, but image_grid_thw describes"):
            fast_encode(network, {**inputs, "pixel_values": inputs["pixel_values"][:3]})


def test_the_tokens_of_a_choice_keep_their_order_and_the_rest_does_not_count() -> None:
    chosen = torch.tensor([[0, 1, 1, 0, 1], [0, 0, 0, 1, 0], [0, 0, 0, 0, 0]]).bool()
    choice = TokenChoice.of(chosen)
    assert choice.index[0].tolist() == [1, 2, 4]
    assert choice.index[1, 0] == 3
    assert choice.mask is not None
    assert choice.mask[:, 0, 0].tolist() == [[True, True, True], [True, False, False], [False] * 3]
    context = torch.arange(15.0).view(3, 5, 1)
    assert choice.take(context)[0, :, 0].tolist() == [1, 2, 4]
    assert TokenChoice.of(chosen[:1]).mask is None


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"embodiment_id": 32}, r"embodiment_id is 32; this network has projectors 0 to 31"),
        ({"embodiment_id": -1}, r"embodiment_id is -1"),
        ({"steps": 0}, r"denoising steps is 0; it must be 1 or more"),
    ],
)
def test_what_there_is_not_is_refused(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ModelError, match=sentence):
        FastNetwork(tiny_network(), **({"embodiment_id": 0} | change))


def test_inputs_of_another_shape_are_refused() -> None:
    case = load_case("model", "libero_sim_b1")
    inputs = golden_inputs(case)
    network = FastNetwork(tiny_network(), 2)
    features = fast_encode(network, inputs)
    noise = torch.from_numpy(case["initial_noise"])
    with pytest.raises(ModelError, match=r"noise has shape .*; this network needs"):
        network.sample(features, state=inputs["state"], noise=noise[:, 1:])
    with pytest.raises(ModelError, match=r"state has shape .*; this network needs"):
        network.sample(features, state=inputs["state"][..., 1:], noise=noise)


def test_another_activation_of_the_vision_tower_is_refused() -> None:
    network = tiny_network()
    network.backbone.config.vision.hidden_act = "silu"
    with pytest.raises(ModelError, match=r"vision_config.hidden_act 'silu'; GR00T N1.7 has the tanh form"):
        FastNetwork(network, 0)


def test_loading_for_one_embodiment_reads_its_projectors_alone_and_gives_the_same_actions() -> None:
    case = load_case("model", "libero_sim_b1")
    inputs = golden_inputs(case)
    read: list[tuple[str, torch.Tensor]] = []

    def tensors(rows: Mapping[str, int]) -> Iterator[tuple[str, torch.Tensor]]:
        for entry in WeightFiles(TINY_SINGLE).tensors(rows=rows):
            read.append(entry)
            yield entry

    fast = load_fast(model_config(), backbone_config(), tensors, 2, device="cpu", dtype=torch.float32)
    specific = [tensor for name, tensor in read if name.endswith((".W", ".b"))]
    assert len(specific) == 14
    assert {tensor.shape[0] for tensor in specific} == {1}
    wanted = fast_sample(FastNetwork(tiny_network(), 2), inputs, case["initial_noise"])
    assert np.array_equal(fast_sample(fast, inputs, case["initial_noise"]), wanted)
    with pytest.raises(ModelError, match="embodiment_id is 32; this network has projectors 0 to 31"):
        load_fast(model_config(), backbone_config(), tensors, 32, device="cpu", dtype=torch.float32)


def test_a_network_that_has_predicted_does_not_need_its_files_any_more(tmp_path: Path) -> None:
    shutil.copytree(TINY_SINGLE, tmp_path / "checkpoint")
    file = tmp_path / "checkpoint" / "model.safetensors"
    in_bfloat16 = {name: tensor.to(torch.bfloat16) for name, tensor in WeightFiles(TINY_SINGLE).tensors()}
    save_file(in_bfloat16, file)
    files = WeightFiles(file.parent)
    fast = load_fast(
        model_config(), backbone_config(), lambda rows: files.tensors(rows=rows), 2, device="cpu", dtype=torch.bfloat16
    )
    case = load_case("model", "libero_sim_b1")
    first = fast_sample(fast, golden_inputs(case), case["initial_noise"])
    assert str(file) not in Path("/proc/self/maps").read_text()
    with file.open("r+b") as stream:
        stream.write(bytes(file.stat().st_size))
    assert np.array_equal(fast_sample(fast, golden_inputs(case), case["initial_noise"]), first)


def test_tensors_that_are_given_away_become_the_weights_and_others_are_copied() -> None:
    name = "action_head.model.proj_out_2.weight"
    for given_away in (False, True):
        tensors = weights()
        network = load_model(
            model_config(),
            backbone_config(),
            tensors.items(),
            device="cpu",
            dtype=torch.float32,
            given_away=given_away,
        )
        assert (dict(network.named_parameters())[name].data_ptr() == tensors[name].data_ptr()) == given_away
