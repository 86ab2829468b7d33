"""processor_config.json: NVIDIA's and LeRobot's rules for absent keys, and strict modalities."""

import json
from copy import deepcopy

import pytest
from support.golden import GOLDEN, TINY_SINGLE

from groot_ros.checkpoint import ActionFormat, ActionRepresentation, CheckpointOrigin, parse_processor_config
from groot_ros.checkpoint.writing import processor_config_json
from groot_ros.errors import CheckpointError

FILE = json.loads((TINY_SINGLE / "processor_config.json").read_text())
TAG = "new_embodiment"


def parse(change=None, *, origin=CheckpointOrigin.NVIDIA, **kwargs):
    data = deepcopy(FILE)
    data["processor_kwargs"].update(kwargs)
    if change:
        change(data["processor_kwargs"])
    return parse_processor_config(data, "processor_config.json", origin=origin)


def drop(*keys):
    return lambda kwargs: [kwargs.pop(key) for key in keys]


def test_absent_keys_of_nvidias_files_take_edge_256_and_crop_095():
    config = parse(drop("shortest_image_edge", "crop_fraction", "use_percentiles", "max_state_dim", "clip_outliers"))
    assert (config.shortest_image_edge, config.crop_fraction) == (256, 0.95)
    assert (config.use_percentiles, config.max_state_dim, config.clip_outliers) == (False, 29, True)


def test_absent_use_albumentations_means_the_torch_path():
    config = parse(drop("use_albumentations"), image_target_size=[256, 256], image_crop_size=[230, 230])
    assert config.use_albumentations is False


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"shortest_image_edge": None}, r"shortest_image_edge is null and image_target_size is not given"),
        (
            {"crop_fraction": None},
            r"crop_fraction is null, but image_crop_size and image_target_size are not",
        ),
        (
            {"use_albumentations": False},
            r"use_albumentations is false, but image_target_size and image_crop",
        ),
        ({"crop_fraction": 0.0}, r"crop_fraction is 0\.0, but must be null or a number above 0, at most 1"),
        ({"crop_fraction": 1.2}, r"crop_fraction is 1\.2, but must be a number between 0 and 1"),
        ({"image_target_size": [256]}, r"image_target_size is \[256\], but must be null or two whole numbers"),
        ({"color_jitter_params": {"gamma": 0.1}}, r"color_jitter_params: unknown key gamma"),
        ({"background_blur": 3}, r"processor_kwargs: unknown key background_blur: this version does not know"),
        ({"use_percentiles": "yes"}, r"use_percentiles is \"yes\", but must be true or false"),
    ],
)
def test_what_leaves_the_images_or_the_numbers_open_is_refused(kwargs, message):
    with pytest.raises(CheckpointError, match=message):
        parse(**kwargs)


def test_null_edge_and_crop_are_fine_where_the_sizes_are_given():
    config = parse(shortest_image_edge=None, crop_fraction=None, image_target_size=[64, 96], image_crop_size=[58, 40])
    assert (config.shortest_image_edge, config.crop_fraction) == (None, None)
    assert (config.image_target_size, config.image_crop_size) == ((64, 96), (58, 40))


@pytest.mark.parametrize("albumentations", [True, False])
def test_lerobots_files_without_a_size_take_256_and_230_whatever_else_they_say(albumentations):
    config = parse(origin=CheckpointOrigin.LEROBOT, use_albumentations=albumentations, shortest_image_edge=128)
    assert (config.image_target_size, config.image_crop_size) == ((256, 256), (230, 230))
    assert (config.shortest_image_edge, config.crop_fraction) == (None, None)


def test_lerobots_files_have_no_default_edge_and_crop():
    config = parse(
        drop("shortest_image_edge", "crop_fraction"),
        origin=CheckpointOrigin.LEROBOT,
        image_target_size=[128, 128],
        image_crop_size=[100, 100],
    )
    assert (config.shortest_image_edge, config.crop_fraction) == (None, None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda tag: tag["video"].update(modality_keys=[]),
            r"new_embodiment: video: modality_keys is \[\], but must be a",
        ),
        (lambda tag: tag["video"].update(modality_keys=["a", "a"]), r"must be a list of different names"),
        (lambda tag: tag["video"].update(delta_indices=[0, -15]), r"must be a list of growing whole numbers"),
        (lambda tag: tag.pop("language"), r"new_embodiment: language is missing"),
        (lambda tag: tag.update(touch={}), r"new_embodiment: unknown key touch"),
        (lambda tag: tag["state"].update(window=3), r"new_embodiment: state: unknown key window"),
        (lambda tag: tag["action"]["action_configs"].pop(), r"action_configs has 1 entries, but modality_keys has 2"),
        (
            lambda tag: tag["action"]["action_configs"][0].update(rep="INVERSE"),
            r"action_configs of single_arm: rep is \"INVERSE\", but must be one of RELATIVE, DELTA, ABSOLUTE",
        ),
        (
            lambda tag: tag["state"].update(sin_cos_embedding_keys=["elbow"]),
            r"sin_cos_embedding_keys names elbow, but modality_keys has only single_arm, gripper",
        ),
    ],
)
def test_a_modality_that_cannot_be_meant_is_refused(change, message):
    with pytest.raises(CheckpointError, match=message):
        parse(lambda kwargs: change(kwargs["modality_configs"][TAG]))


def test_enumerations_may_be_names_or_values():
    def lower(kwargs):
        for config in kwargs["modality_configs"]["oxe_droid_relative_eef_relative_joint"]["action"]["action_configs"]:
            config.update(rep=config["rep"].lower(), format="xyz+rot6d")

    config = parse(lower).modality_configs["oxe_droid_relative_eef_relative_joint"].action.action_configs[0]
    assert (config.rep, config.format) == (ActionRepresentation.RELATIVE, ActionFormat.XYZ_ROT6D)


def test_training_modalities_and_unused_switches_are_no_obstacle():
    parse(lambda kwargs: kwargs["modality_configs"][TAG].update(mask={"modality_keys": ["m"]}, rl_info=None))


@pytest.mark.parametrize("path", [TINY_SINGLE, GOLDEN / "lerobot"], ids=["tiny", "lerobot"])
def test_what_is_written_is_read_back_unchanged(path):
    config = parse_processor_config(json.loads((path / "processor_config.json").read_text()), "x")
    assert parse_processor_config(processor_config_json(config), "x") == config
