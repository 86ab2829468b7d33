"""Every spelling of another GR00T version is refused, with the way out; N1.7's own spellings are not."""

import pytest
from checkpoint.conftest import edit_json
from hypothesis import given
from hypothesis import strategies as st

from groot_ros.checkpoint import open_checkpoint, parse_model_config
from groot_ros.checkpoint.versions import version_in_path, version_of_name
from groot_ros.errors import CheckpointError

N1_5 = [
    {"model_type": "gr00t_n1_5"},
    {"model_type": "GR00T_N1_5"},
    {"model_type": "Gr00tN1d5"},
    {"model_type": "gr00t-n1.5"},
    {"model_type": "gr00t_n15"},
    {"model_type": "gr00t_n1d5"},
    {"architectures": ["GR00T_N1_5"]},
    {"architectures": ["GR00TN15"], "model_type": "Gr00tN1d7"},
    *({"model_version": spelling} for spelling in ("n1.5", "n1_5", "n1d5", "n15", "1.5", "N1.5", "n1p5", 1.5)),
    {"backbone_cfg": {"eagle_path": "eagle_2_5"}, "model_type": "Gr00tN1d7"},
    {"tokenizer_assets_repo": "some/eagle-processor", "model_type": "Gr00tN1d7"},
]


@pytest.mark.parametrize("config", N1_5, ids=lambda config: str(config)[1:40])
def test_n1_5_is_refused_in_every_spelling_with_the_migration_advice(config):
    with pytest.raises(CheckpointError) as refusal:
        parse_model_config(config, "config.json")
    message = str(refusal.value)
    assert message.startswith("config.json: this is a GR00T N1.5 checkpoint (")
    assert "pip install 'lerobot==0.5.1'" in message
    assert "nvidia/GR00T-N1.7-3B" in message


@pytest.mark.parametrize("name", ["Gr00tN1d6", "gr00t_n1_6", "n1.6"])
def test_other_versions_are_named(name):
    with pytest.raises(CheckpointError, match=r"this is a GR00T N1\.6 checkpoint .* Only GR00T N1\.7 is supported"):
        parse_model_config({"model_type": name}, "config.json")


@pytest.mark.parametrize("config", [{"model_type": "qwen3_vl"}, {}, {"model_type": None}, {"architectures": ["Llama"]}])
def test_another_model_is_told_from_a_gr00t_checkpoint(config):
    with pytest.raises(CheckpointError, match=r"must be 'Gr00tN1d7': this is not a GR00T N1\.7 checkpoint"):
        parse_model_config(config, "config.json")


@pytest.mark.parametrize("name", ["Gr00tN1d7", "gr00t_n1_7", "gr00t-n1.7", "GR00TN17", "n1.7", "1.7"])
def test_n1_7_is_recognised_in_every_spelling(name):
    assert version_of_name(name) == "1.7"


@pytest.mark.parametrize(
    ("path", "version"),
    [
        ("nvidia/GR00T-N1.5-3B", "1.5"),
        ("/models/gr00t_n1_5_finetuned", "1.5"),
        ("nvidia/GR00T-N1.7-3B", "1.7"),
        ("nvidia/GR00T-N1-2B", "1"),
        ("me/my_robot", None),
        ("me/n1.5-gripper-length", None),
    ],
)
def test_a_hub_id_shows_its_version(path, version):
    assert version_in_path(path) == version


def test_a_hub_id_of_n1_5_is_refused_before_anything_is_downloaded():
    with pytest.raises(CheckpointError, match=r"this is a GR00T N1\.5 checkpoint"):
        open_checkpoint("nvidia/GR00T-N1.5-3B")


@given(st.text(max_size=20))
def test_no_name_whatsoever_breaks_the_recognition(name):
    assert version_of_name(name) is None or version_of_name(name)[0].isdigit()


def test_a_training_folder_points_to_the_checkpoints_inside_it(single):
    outer = single.parent / "run"
    outer.mkdir()
    single.rename(outer / "checkpoint-1000")
    with pytest.raises(
        CheckpointError, match=r"run has no config\.json: give one of the folders inside it: checkpoint"
    ):
        open_checkpoint(outer)


def test_a_misspelled_path_is_not_taken_for_a_hub_id(tmp_path):
    with pytest.raises(CheckpointError, match=r"is not a checkpoint folder, and not a hub id of the form owner/name"):
        open_checkpoint(str(tmp_path / "nothing"))


def test_the_files_own_version_wins_over_the_name_of_the_folder(single):
    edit_json(single / "config.json", lambda data: data.update(model_type="gr00t_n1_5"))
    with pytest.raises(CheckpointError, match=r"config\.json: this is a GR00T N1\.5 checkpoint"):
        open_checkpoint(single)
