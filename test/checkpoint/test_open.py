"""The golden checkpoints are opened whole, in both layouts."""

import subprocess
import sys

import pytest
from support.golden import BACKBONE, TINY_SHARDED, TINY_SINGLE

from groot_ros.checkpoint import CheckpointOrigin, open_checkpoint

TAGS = (
    "libero_sim",
    "new_embodiment",
    "oxe_droid_relative_eef_relative_joint",
    "robocasa_panda_omron",
    "xdof_relative_eef_relative_joint",
    "real_g1_relative_eef_relative_joints",
    "simpler_env_google",
    "simpler_env_widowx",
)


@pytest.mark.parametrize("path", [TINY_SINGLE, TINY_SHARDED], ids=["single", "sharded"])
def test_a_checkpoint_opens_with_processor_files_at_the_root_or_in_their_folder(path):
    checkpoint = open_checkpoint(path)
    assert checkpoint.path == path
    assert checkpoint.origin is CheckpointOrigin.NVIDIA
    assert checkpoint.tags == TAGS
    assert checkpoint.config.select_layer == 4
    assert checkpoint.processor.max_action_dim == 18
    assert checkpoint.backbone.directory == BACKBONE
    assert checkpoint.backbone.config["image_token_id"] == 268
    assert checkpoint.fps is None


def test_both_layouts_hold_the_same_metadata():
    single, sharded = open_checkpoint(TINY_SINGLE), open_checkpoint(TINY_SHARDED)
    assert single.config == sharded.config
    assert single.processor == sharded.processor
    assert single.embodiment_ids == sharded.embodiment_ids


@pytest.mark.parametrize("tag", TAGS)
def test_every_tag_of_the_file_fits_the_network(tag):
    embodiment = open_checkpoint(TINY_SINGLE).embodiment(tag)
    assert embodiment.tag == tag
    assert embodiment.horizon == len(embodiment.modalities.action.delta_indices)


def test_metadata_is_read_without_torch():
    code = (
        "import sys; from groot_ros.checkpoint import open_checkpoint; "
        f"open_checkpoint({str(TINY_SHARDED)!r}).weights().names(); "
        "sys.exit(int('torch' in sys.modules or 'transformers' in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
