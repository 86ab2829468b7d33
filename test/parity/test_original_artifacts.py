"""Artifacts that the producer wrote with NVIDIA's original on the tiny checkpoint."""

from __future__ import annotations

import numpy as np
import pytest
from support.golden import load_case
from support.parity import ORIGINAL

from groot_ros.parity.artifact import load_artifact
from groot_ros.parity.check import check_artifact
from groot_ros.parity.tolerances import Tolerances
from groot_ros.processing.processor import Processor

PATHS = sorted(ORIGINAL.glob("original_*.npz"))
CASES = {"libero_sim": "libero_sim_b1", "robocasa_panda_omron": "robocasa_panda_omron_b1"}


@pytest.fixture(params=PATHS, ids=lambda path: path.stem)
def artifact(request: pytest.FixtureRequest):
    return load_artifact(request.param)


def test_everything_agrees_with_the_original(artifact, tiny, tiny_network):
    report = check_artifact(artifact, Processor(tiny, artifact.tag), tiny_network, Tolerances())
    assert report.passed, [comparison for comparison in report.comparisons if not comparison.passed]
    assert report.parting is None
    assert not report.notes
    compared = {(comparison.part, comparison.quantity) for comparison in report.comparisons}
    assert {
        ("preprocessor", "images"),
        ("preprocessor", "texts"),
        ("preprocessor", "input_ids"),
        ("preprocessor", "pixel_values"),
        ("training", "train action"),
        ("model", "initial_noise"),
        ("model", "action_pred"),
        ("chunking", "rtc action_pred"),
        ("training", "train loss"),
    } <= compared
    assert any(part == "decoder" for part, _ in compared)


def test_the_producer_gives_the_values_of_the_golden_files(artifact):
    case = load_case("model", CASES[artifact.tag])
    for name in ("input_ids", "attention_mask", "image_grid_thw", "embodiment_id", "state"):
        np.testing.assert_array_equal(artifact.input(name), case[f"in.{name}"])
    levels = np.rint(artifact.input("pixel_values") * 127.5 + 127.5).astype(np.uint8)
    np.testing.assert_array_equal(levels, case["in.pixel_values.u8"])
    np.testing.assert_array_equal(artifact.arrays["initial_noise"], case["initial_noise"])
    np.testing.assert_array_equal(artifact.arrays["train::action"], case["train.action"])
    np.testing.assert_allclose(artifact.arrays["train::loss"], case["train.loss"], atol=1e-5, rtol=1e-4)
    actions = max(3e-4, 5 * case.meta["float32_vs_float64_max_action_difference"])
    for name, golden in (("action_pred", "action_pred"), ("rtc::action_pred", "rtc.0.action_pred")):
        np.testing.assert_allclose(artifact.arrays[name], case[golden], atol=actions, rtol=1e-3)
    for key, values in artifact.group("decoded::").items():
        np.testing.assert_allclose(values, case[f"decoded.{key}"], atol=actions, rtol=1e-3)


def test_every_stage_of_the_network_is_recorded(artifact, tiny):
    stages = artifact.group("stage::")
    config = tiny.config
    layers = {f"language.layer.{index}" for index in range(config.select_layer)}
    blocks = {
        f"denoising.{step}.block.{index}"
        for step in range(config.num_inference_timesteps)
        for index in range(config.diffusion_model_cfg.num_layers)
    }
    assert {"images", "texts", "vision.features", "vision.deepstack.2", "language.features"} <= stages.keys()
    assert {"vlln", "vl_self_attention", "state_features", "denoising.3.velocity"} | layers | blocks <= stages.keys()


def test_versions_and_kernels_of_the_original_are_recorded(artifact):
    assert artifact.versions["transformers"] == "4.57.3"
    assert artifact.kernels["attention"] == "sdpa"
    assert artifact.kernels["dtype"] == "float32"
