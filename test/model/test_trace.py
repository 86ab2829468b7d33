"""Watching the stages of the network."""

from __future__ import annotations

import numpy as np
from support.golden import load_case
from support.networks import golden_inputs, sample, tiny_network, traced

from groot_ros.model import GrootN17
from groot_ros.model.trace import trace_stages

CASE = load_case("model", "model_only_b1")


def test_the_stages_come_in_the_order_in_which_they_arise(network: GrootN17) -> None:
    stages = list(traced(network, golden_inputs(CASE), CASE["initial_noise"]))
    deepstack = {f"vision.block.{index}": f"vision.deepstack.{index - 1}" for index in (1, 2, 3)}
    expected = ["vision.patch_embeddings"]
    for index in range(5):
        block = f"vision.block.{index}"
        expected += [block, deepstack[block]] if block in deepstack else [block]
    expected += ["vision.features", "language.embeddings", *(f"language.layer.{index}" for index in range(4))]
    expected += ["language.features", "vlln", "vl_self_attention", "state_features"]
    for step in range(4):
        expected += [f"denoising.{step}.actions", *(f"denoising.{step}.block.{index}" for index in range(8))]
        expected += [f"denoising.{step}.transformer", f"denoising.{step}.velocity"]
    assert stages == [*expected, "actions"]


def test_the_steps_count_from_zero_again_in_the_next_run(network: GrootN17) -> None:
    inputs, noise = golden_inputs(CASE), CASE["initial_noise"]
    with trace_stages(network) as stages:
        sample(network, inputs, noise)
        first = dict(stages)
        sample(network, inputs, noise)
    assert stages.keys() == first.keys()
    assert all(np.array_equal(stages[stage], first[stage]) for stage in first)


def test_nothing_is_left_behind_when_the_block_ends() -> None:
    network = tiny_network()
    with trace_stages(network):
        assert any(module._forward_hooks for module in network.modules())
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in network.modules())


def test_watching_changes_no_number(network: GrootN17) -> None:
    inputs, noise = golden_inputs(CASE), CASE["initial_noise"]
    assert np.array_equal(traced(network, inputs, noise)["actions"], sample(network, inputs, noise))
