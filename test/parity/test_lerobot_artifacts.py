"""Artifacts that LeRobot's policy wrote."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.golden import GOLDEN
from support.parity import ORIGINAL
from support.processing import processor_config

from groot_ros.checkpoint import CheckpointOrigin, parse_statistics
from groot_ros.checkpoint.fields import read_json
from groot_ros.parity.artifact import load_artifact
from groot_ros.parity.check import check_artifact
from groot_ros.parity.tolerances import Tolerances
from groot_ros.processing.processor import Processor

LEROBOT = GOLDEN / "lerobot"
TORCH_PATH = {"use_albumentations": False, "shortest_image_edge": None, "crop_fraction": None}
GEOMETRIES = {
    "torch_geometry__libero_sim": TORCH_PATH,
    "torch_geometry_letterbox__simpler_env_widowx": {**TORCH_PATH, "letter_box_transform": True},
    "no_target_size__simpler_env_widowx": {"image_crop_size": None, "image_target_size": None},
}


def test_lerobots_network_and_ours_give_the_same_actions(tiny, tiny_network):
    """LeRobot ran on the tiny checkpoint with the image sizes that the released ones name; without, it crops more."""
    artifact = load_artifact(ORIGINAL / "lerobot_n1_7_simpler_env_google.npz")
    released = replace(tiny.processor, image_crop_size=(230, 230), image_target_size=(256, 256))
    processor = Processor(replace(tiny, processor=released), artifact.tag)
    report = check_artifact(artifact, processor, tiny_network, Tolerances())
    assert report.passed, [comparison for comparison in report.comparisons if not comparison.passed]
    assert {"pixel_values", "action_pred", "rtc action_pred"} <= {each.quantity for each in report.comparisons}
    assert any("no decoded actions" in note for note in report.notes)


@pytest.mark.parametrize("name", GEOMETRIES)
def test_images_and_state_are_lerobots_where_lerobot_wrote_the_checkpoint(name, tiny):
    artifact = load_artifact(LEROBOT / f"{name}.npz")
    config = processor_config(LEROBOT, GEOMETRIES[name], CheckpointOrigin.LEROBOT)
    statistics = parse_statistics(read_json(LEROBOT / "statistics.json"), "statistics.json")
    checkpoint = replace(tiny, origin=CheckpointOrigin.LEROBOT, processor=config, statistics=statistics)
    sized = replace(
        checkpoint.config,
        action_horizon=config.max_action_horizon,
        max_action_dim=config.max_action_dim,
        max_state_dim=config.max_state_dim,
    )
    processor = Processor(replace(checkpoint, config=sized), artifact.tag)
    report = check_artifact(artifact, processor, None, Tolerances())
    results = {each.quantity: each.passed for each in report.comparisons}
    ids = {"input_ids", "attention_mask"}  # of the full vocabulary, which the tiny checkpoint has not
    assert results.keys() == {"image_grid_thw", "pixel_values", "state", "embodiment_id"} | ids
    assert all(passed for quantity, passed in results.items() if quantity not in ids)
