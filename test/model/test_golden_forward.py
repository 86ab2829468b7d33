"""The network against the original's outputs, whole and stage by stage."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from support.golden import GoldenCase, case_names, load_case
from support.networks import encode, golden_inputs, rounding_by_stage, sample, tiny_network, traced

from groot_ros.errors import ModelError
from groot_ros.model import GrootN17, RealTimeChunking
from groot_ros.model.trace import trace_stages

CASES = [name for name in case_names("model") if name != "model_config_variants"]
STAGED = ["model_only_b1", "model_only_b3"]
VARIANTS = load_case("model", "model_config_variants").meta["variants"]


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> GoldenCase:
    return load_case("model", request.param)


def assert_features_close(actual: np.ndarray | torch.Tensor, golden: np.ndarray) -> None:
    np.testing.assert_allclose(np.asarray(actual), golden, atol=1e-4, rtol=1e-3)


def action_tolerance(case: GoldenCase) -> float:
    return max(3e-4, 5 * case.meta["float32_vs_float64_max_action_difference"])


def assert_actions_close(actual: np.ndarray, golden: np.ndarray, case: GoldenCase) -> None:
    np.testing.assert_allclose(actual, golden, atol=action_tolerance(case), rtol=1e-3)


def assert_stage_close(actual: np.ndarray, golden: np.ndarray, rounding: float) -> None:
    """The rule for actions, with the rounding measured for this stage: five times it, and the bulk much nearer."""
    np.testing.assert_allclose(actual, golden, atol=max(3e-4, 5 * rounding), rtol=1e-3)
    relative = np.abs(actual - golden) / np.abs(golden).max()
    assert np.median(relative) < 1e-4


def chunking(case: GoldenCase, index: int) -> tuple[RealTimeChunking, np.ndarray]:
    options = case.meta["rtc"][index]
    chunking = RealTimeChunking(
        previous=torch.from_numpy(case["rtc.prev_action"]),
        action_horizon=options["action_horizon"],
        overlap_steps=options["rtc_overlap_steps"],
        frozen_steps=options["rtc_frozen_steps"],
        ramp_rate=options["rtc_ramp_rate"],
    )
    return chunking, case[f"rtc.{index}.action_pred"]


def test_the_features_are_those_before_the_final_norm(network: GrootN17, case: GoldenCase) -> None:
    features = encode(network, golden_inputs(case))
    assert np.array_equal(features.attention_mask.numpy(), case["backbone_attention_mask"])
    assert np.array_equal(features.image_mask.numpy(), case["image_mask"])
    assert_features_close(features.hidden_states, case["backbone_features"])


def test_the_actions_equal_the_original(network: GrootN17, case: GoldenCase) -> None:
    actions = sample(network, golden_inputs(case), case["initial_noise"])
    assert_actions_close(actions, case["action_pred"], case)


@pytest.mark.parametrize(
    ("name", "steps"), [(name, n) for name in CASES for n in load_case("model", name).meta["steps"]]
)
def test_any_number_of_denoising_steps_equals_the_original(network: GrootN17, name: str, steps: int) -> None:
    case = load_case("model", name)
    actions = sample(network, golden_inputs(case), case["initial_noise"], steps=steps)
    assert_actions_close(actions, case[f"steps{steps}.action_pred"], case)


def _chunking_settings(*, refused: bool) -> list[tuple[str, int]]:
    return [
        (name, index)
        for name in CASES
        for index, options in enumerate(load_case("model", name).meta.get("rtc", []))
        if (options["rtc_frozen_steps"] > options["rtc_overlap_steps"]) == refused
    ]


@pytest.mark.parametrize(("name", "index"), _chunking_settings(refused=False))
def test_real_time_chunking_equals_the_original(network: GrootN17, name: str, index: int) -> None:
    case = load_case("model", name)
    rtc, golden = chunking(case, index)
    actions = sample(network, golden_inputs(case), case["initial_noise"], rtc=rtc)
    assert_actions_close(actions, golden, case)
    first = rtc.action_horizon - rtc.overlap_steps
    kept = case["rtc.prev_action"][:, first : first + rtc.frozen_steps]
    assert np.array_equal(actions[:, : rtc.frozen_steps], kept)


@pytest.mark.parametrize(("name", "index"), _chunking_settings(refused=True))
def test_more_frozen_than_overlapping_rows_are_refused(name: str, index: int) -> None:
    with pytest.raises(ModelError, match=r"frozen_steps must lie between 0 and overlap_steps"):
        chunking(load_case("model", name), index)


def test_a_sample_alone_equals_the_original_without_padding(network: GrootN17) -> None:
    case = load_case("model", "model_only_b3")
    inputs = golden_inputs(case)
    patches = inputs["image_grid_thw"].prod(dim=1)
    image = row = 0
    for index, images in enumerate(case.meta["images_per_sample"]):
        rows = int(patches[image : image + images].sum())
        length = int(inputs["attention_mask"][index].sum())
        alone = {
            "input_ids": inputs["input_ids"][index : index + 1, -length:],
            "attention_mask": inputs["attention_mask"][index : index + 1, -length:],
            "pixel_values": inputs["pixel_values"][row : row + rows],
            "image_grid_thw": inputs["image_grid_thw"][image : image + images],
            "state": inputs["state"][index : index + 1],
            "embodiment_id": inputs["embodiment_id"][index : index + 1],
        }
        actions = sample(network, alone, case["initial_noise"][index : index + 1])
        assert_actions_close(actions, case[f"alone.{index}.action_pred"], case)
        image, row = image + images, row + rows


@pytest.mark.parametrize("name", STAGED)
def test_every_stage_of_the_backbone_equals_the_original(network: GrootN17, name: str) -> None:
    case = load_case("model", name)
    with trace_stages(network) as stages:
        encode(network, golden_inputs(case))
    assert_features_close(stages["vision.features"], case["mid.visual"])
    for index in range(3):
        assert_features_close(stages[f"vision.deepstack.{index}"], case[f"mid.deepstack{index}"])
    for index, golden in enumerate(case["mid.llm_layers"]):
        assert_features_close(stages[f"language.layer.{index}"], golden)


@pytest.mark.parametrize("name", [name for name in CASES if "mid.dit_out" in load_case("model", name)])
def test_every_stage_of_the_action_head_equals_the_original(network: GrootN17, name: str) -> None:
    case = load_case("model", name)
    inputs, noise = golden_inputs(case), case["initial_noise"]
    stages = traced(network, inputs, noise)
    for stage, key in (("vl_self_attention", "mid.vl_features"), ("state_features", "mid.state_features")):
        if key in case:
            assert_features_close(stages[stage], case[key])
    golden = {"denoising.{}.actions": case["mid.x_k"], "denoising.{}.transformer": case["mid.dit_out"]}
    if "mid.dit_blocks_step0" in case:
        golden["denoising.0.block.{}"] = case["mid.dit_blocks_step0"]
    rounding = rounding_by_stage(inputs, noise, runs=3)
    for pattern, arrays in golden.items():
        for index, array in enumerate(arrays):
            stage = pattern.format(index)
            assert_stage_close(stages[stage], array, rounding[stage])


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant["name"])
def test_every_switch_of_the_configuration_equals_the_original(variant: dict[str, Any]) -> None:
    golden, inputs = load_case("model", "model_config_variants"), golden_inputs(load_case("model", "model_only_b3"))
    name, overrides, noise = variant["name"], variant["config_overrides"], golden["initial_noise"]
    stages = traced(tiny_network(**overrides), inputs, noise)
    rounding = rounding_by_stage(inputs, noise, runs=8, **overrides)
    for stage, key in (("actions", "action_pred"), ("denoising.0.transformer", "dit_out_step0")):
        assert_stage_close(stages[stage], golden[f"{name}.{key}"], rounding[stage])
    if f"{name}.backbone_features" in golden:
        assert_features_close(stages["language.features"], golden[f"{name}.backbone_features"])
