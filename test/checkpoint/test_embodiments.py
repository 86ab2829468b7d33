"""A tag is served only where modalities, statistics and network fit each other."""

import pytest
from checkpoint.conftest import edit_json, edit_kwargs

from groot_ros.checkpoint import open_checkpoint
from groot_ros.errors import CheckpointError

TAG = "new_embodiment"


def change_modalities(checkpoint, change, tag=TAG):
    edit_kwargs(checkpoint, lambda kwargs: change(kwargs["modality_configs"][tag]))


def change_statistics(checkpoint, change, tag=TAG):
    edit_json(checkpoint / "statistics.json", lambda data: change(data[tag]))


def refused(checkpoint, message, tag=TAG):
    with pytest.raises(CheckpointError, match=message):
        open_checkpoint(checkpoint).embodiment(tag)


def test_a_tag_that_the_base_model_knows_by_name_only_needs_fine_tuning(single):
    refused(
        single,
        r"the embodiment tag unitree_g1_sonic needs fine-tuning: GR00T N1\.7 knows it by name only\. "
        r"Tags of this checkpoint: libero_sim, new_embodiment, oxe_droid",
        tag="unitree_g1_sonic",
    )


def test_a_tag_without_statistics_needs_fine_tuning(single):
    edit_json(single / "statistics.json", lambda data: data.pop(TAG))
    refused(single, r"the embodiment tag new_embodiment needs fine-tuning")
    checkpoint = open_checkpoint(single)
    assert TAG not in checkpoint.tags
    assert TAG in checkpoint.untrained_tags


def test_an_unknown_tag_is_answered_with_the_tags_of_the_file(single):
    refused(single, r"the embodiment tag my_robot is unknown\. Tags of this checkpoint: libero_sim, ", tag="my_robot")


def test_a_checkpoint_without_any_statistics_still_opens(single):
    (single / "statistics.json").write_text("{}")
    refused(single, r"needs fine-tuning.*Tags of this checkpoint: none")


def test_ids_come_from_the_file_and_else_from_the_originals_table(single):
    edit_json(single / "embodiment_id.json", lambda data: data.update(new_embodiment=11))
    assert open_checkpoint(single).embodiment(TAG).id == 11
    (single / "embodiment_id.json").unlink()
    checkpoint = open_checkpoint(single)
    assert checkpoint.embodiment(TAG).id == 10
    assert checkpoint.embodiment("xdof_relative_eef_relative_joint").id == 27


def test_an_id_beyond_the_networks_projectors_is_refused(single):
    edit_json(single / "embodiment_id.json", lambda data: data.update(new_embodiment=32))
    refused(single, r"new_embodiment: its number is 32, but the network has 32 projectors")


def test_a_horizon_above_the_networks_is_refused(single):
    change_modalities(single, lambda tag: tag["action"].update(delta_indices=list(range(50))))
    refused(single, r"new_embodiment: the action horizon is 50 rows, but the network has only 20: fine-tune with delta")


def test_action_rows_with_a_gap_are_refused(single):
    change_modalities(single, lambda tag: tag["action"].update(delta_indices=[0, 2, 4]))
    refused(single, r"the action's delta_indices are \[0, 2, 4\], but must be 0, 1, 2, \.\.\. without a gap")


def test_stale_relative_statistics_are_refused(single):
    change_modalities(single, lambda tag: tag["action"].update(delta_indices=list(range(8))))
    refused(
        single, r"relative_action statistics of single_arm have 16 rows, but the action horizon is 8: they are stale"
    )


def test_missing_relative_statistics_are_not_replaced_by_the_absolute_ones(single):
    change_statistics(single, lambda tag: tag["relative_action"].pop("single_arm"))
    refused(single, r"single_arm is a relative action, but statistics\.json has no relative_action statistics for it")


def test_relative_statistics_given_once_for_all_rows_are_accepted(single):
    def first_row(tag):
        entry = tag["relative_action"]["single_arm"]
        entry.update({name: rows[0] for name, rows in entry.items()})

    change_statistics(single, first_row)
    assert open_checkpoint(single).embodiment(TAG).statistics.relative_action["single_arm"].min.shape == (5,)


def test_without_use_relative_action_no_relative_statistics_are_needed(single):
    edit_kwargs(single, lambda kwargs: kwargs.update(use_relative_action=False))
    change_statistics(single, lambda tag: tag.pop("relative_action"))
    open_checkpoint(single).embodiment(TAG)


@pytest.mark.parametrize("modality", ["state", "action"])
def test_missing_statistics_are_named(single, modality):
    change_statistics(single, lambda tag: tag[modality].pop("gripper"))
    refused(single, rf"statistics\.json has no {modality} statistics for gripper: compute them again")


def test_percentiles_must_be_there_where_they_are_used(single):
    edit_kwargs(single, lambda kwargs: kwargs.update(use_percentiles=True))
    change_statistics(single, lambda tag: tag["action"]["gripper"].pop("q99"))
    refused(single, r"use_percentiles is true, but statistics\.json has no q01 and q99 for action gripper")


def test_a_relative_action_needs_its_reference_state(single):
    change_modalities(single, lambda tag: tag["action"]["action_configs"][0].update(state_key="left_arm"))
    refused(single, r"the relative action single_arm refers to the state left_arm, which is not among single_arm, grip")


def test_a_reference_of_another_width_is_refused(single):
    change_modalities(single, lambda tag: tag["action"]["action_configs"][0].update(state_key="gripper"))
    refused(single, r"relative action single_arm has 5 dimensions, .* reference state gripper 1, but all must be equal")


def test_a_relative_pose_needs_a_format_that_can_be_decoded(single):
    tag = "oxe_droid_relative_eef_relative_joint"
    change_modalities(single, lambda tag: tag["action"]["action_configs"][0].update(format="DEFAULT"), tag)
    refused(single, r"eef_9d has the format DEFAULT and 9 dimensions, but can only be decoded as XYZ_ROT6D with 9", tag)


def test_action_groups_wider_than_the_network_are_refused_when_the_tag_is_chosen(single):
    edit_kwargs(single, lambda kwargs: kwargs.update(max_action_dim=5))
    refused(single, r"new_embodiment: the action groups have 6 dimensions together, but max_action_dim is 5")


def test_state_groups_wider_than_the_network_are_refused_with_sine_and_cosine_counted_twice(single):
    tag = "robocasa_panda_omron"
    open_checkpoint(single).embodiment(tag)
    edit_kwargs(single, lambda kwargs: kwargs.update(max_state_dim=17))
    refused(single, r"the state groups have 18 dimensions together, but max_state_dim is 17", tag)


def test_a_state_history_that_the_network_has_not_is_refused(single):
    change_modalities(single, lambda tag: tag["state"].update(delta_indices=[-1, 0]))
    refused(single, r"the state's delta_indices have 2 entries, but state_history_length of the network is 1")


@pytest.mark.parametrize("modality", ["video", "state"])
def test_a_history_that_does_not_end_with_the_present_is_refused(single, modality):
    change_modalities(single, lambda tag: tag[modality].update(delta_indices=[-1]))
    refused(single, rf"new_embodiment: the {modality}'s delta_indices are \[-1\], but must end with 0")
    open_checkpoint(single).embodiment("libero_sim")
