"""Contract and checkpoint: what does not fit is said in one sentence, and forgotten units are seen."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from support.contracts import ROBOTS, small_contract
from support.golden import TINY_SINGLE

from groot_ros.checkpoint.embodiments import Embodiment
from groot_ros.checkpoint.processor_config import (
    ActionConfig,
    ActionFormat,
    ActionRepresentation,
    ActionType,
    EmbodimentModalities,
    ModalityConfig,
    parse_processor_config,
)
from groot_ros.checkpoint.statistics import KeyStatistics, TagStatistics, parse_statistics
from groot_ros.contract import UnitVerdict, load_contract, read_units
from groot_ros.errors import ContractError


def golden_embodiment(tag: str) -> Embodiment:
    processor = parse_processor_config(json.loads((TINY_SINGLE / "processor_config.json").read_text()), "processor")
    statistics = parse_statistics(json.loads((TINY_SINGLE / "statistics.json").read_text()), "statistics")
    return Embodiment(tag, 0, processor.modality_configs[tag], statistics[tag])


def ranges(*pairs: tuple[float, float]) -> KeyStatistics:
    low, high = np.array(pairs, np.float64).T
    return KeyStatistics(low, high, (low + high) / 2, (high - low) / 4)


def small_embodiment(
    rep=ActionRepresentation.ABSOLUTE, kind=ActionType.NON_EEF, form=ActionFormat.DEFAULT
) -> Embodiment:
    modalities = EmbodimentModalities(
        video=ModalityConfig((0,), ("front", "wrist")),
        state=ModalityConfig((0,), ("arm",)),
        action=ModalityConfig((0, 1), ("arm",), action_configs=(ActionConfig(rep, kind, form),)),
        language=ModalityConfig((0,), ("task",)),
    )
    statistics = TagStatistics({"arm": ranges((-90, 90), (0, 120))}, {"arm": ranges((-90, 90), (0, 120))})
    return Embodiment("new_embodiment", 10, modalities, statistics)


@pytest.mark.parametrize("name", ["so101", "droid_franka", "libero_sim"])
def test_the_shipped_contracts_fit_the_embodiment_that_they_name(name):
    contract = load_contract(ROBOTS / f"{name}.yaml")
    contract.check_against(golden_embodiment(contract.embodiment_tag))


def test_another_tag_is_refused():
    with pytest.raises(ContractError, match="embodiment_tag: found new_embodiment; the policy runs as libero_sim"):
        small_contract().check_against(replace(small_embodiment(), tag="libero_sim"))


def test_a_camera_of_another_name_is_never_mapped_by_position():
    message = "cameras: found top, wrist; the checkpoint wants front, wrist: add front and remove top"
    with pytest.raises(ContractError, match=message):
        small_contract(("front: {", "top: {")).check_against(small_embodiment())


def test_a_group_of_another_width_is_refused():
    message = r"state\.arm: found 3 dimensions \(a, b, c\); the checkpoint's statistics have 2"
    with pytest.raises(ContractError, match=message):
        small_contract(("[a, b]", "[a, b, c]")).check_against(small_embodiment())


def test_deltas_of_the_checkpoint_are_not_positions():
    with pytest.raises(ContractError, match="found position; the checkpoint gives deltas: write meaning: delta"):
        small_contract().check_against(small_embodiment(rep=ActionRepresentation.DELTA))


def test_relative_joints_are_positions_since_they_are_decoded_to_absolute_ones():
    small_contract().check_against(small_embodiment(rep=ActionRepresentation.RELATIVE))
    contract = small_contract(
        ("meaning: position", "meaning: velocity"), ("type: joint_trajectory", "type: position_command, names: [a, b]")
    )
    with pytest.raises(ContractError, match="found velocity; relative actions are decoded to absolute targets"):
        contract.check_against(small_embodiment(rep=ActionRepresentation.RELATIVE))


def test_poses_of_the_checkpoint_have_its_layout():
    end_effector = {"rep": ActionRepresentation.RELATIVE, "kind": ActionType.EEF, "form": ActionFormat.XYZ_ROTVEC}
    embodiment = small_embodiment(**end_effector)
    with pytest.raises(
        ContractError, match="found position; the checkpoint gives end-effector poses: write meaning: pose"
    ):
        small_contract().check_against(embodiment)
    pose = small_contract(
        ("{topic: joint_states, joints: [a, b], policy_unit: deg}", "{topic: tool, rotation: rot6d_rows}"),
        ("meaning: position", "meaning: pose"),
        ("type: joint_trajectory, topic", "type: pose, frame: base, topic"),
    )
    wide = TagStatistics({"arm": ranges(*[(-1, 1)] * 9)}, {"arm": ranges(*[(-1, 1)] * 9)})
    with pytest.raises(ContractError, match=r"actions\.arm\.rotation: found rot6d_rows; the checkpoint has axis_angle"):
        pose.check_against(replace(embodiment, statistics=wide))


def verdicts(contract, values, statistics) -> list[UnitVerdict]:
    readings = read_units(contract, {"arm": np.array(values)}, TagStatistics({"arm": statistics}))
    return [reading.verdict for reading in readings]


def test_the_reading_of_a_joint_shows_measured_value_policy_value_and_range():
    readings = read_units(small_contract(), {"arm": np.array([np.pi / 4, 1.0])}, small_embodiment().statistics)
    assert readings[0].sentence == "state.arm a: measured 0.7854, for the policy 45, trained on -90 to 90: fits"
    assert [reading.verdict.may_enable for reading in readings] == [True, True]


def test_a_forgotten_degree_is_seen_even_where_the_value_lies_inside_the_range():
    contract = small_contract((", policy_unit: deg", ""))
    assert verdicts(contract, [0.1, 0.2], ranges((-90, 90), (0, 120))) == [UnitVerdict.WRONG_UNIT] * 2


def test_degrees_for_a_policy_that_was_trained_on_radians_are_seen():
    assert verdicts(small_contract(), [0.9, 1.0], ranges((-1.5, 1.5), (-0.5, 2.0))) == [UnitVerdict.WRONG_UNIT] * 2


def test_millimetres_for_metres_are_seen():
    contract = small_contract(("policy_unit: deg", "policy_unit: mm"))
    readings = read_units(
        contract, {"arm": np.array([0.05, 0.05])}, TagStatistics({"arm": ranges((0.0, 0.08), (0.0, 100.0))})
    )
    assert [reading.verdict for reading in readings] == [UnitVerdict.WRONG_UNIT, UnitVerdict.FITS]
    assert "metres and millimetres are mixed up" in readings[0].sentence


def test_a_value_a_little_outside_may_move_and_one_far_outside_may_not():
    contract = small_contract((", policy_unit: deg", ""))
    assert verdicts(contract, [1.6, 30.0], ranges((-1.0, 1.0), (5.0, 6.0))) == [
        UnitVerdict.OUTSIDE,
        UnitVerdict.IMPOSSIBLE,
    ]


def test_a_unit_in_writing_is_believed():
    contract = small_contract(("policy_unit: deg", "topic_unit: rad, policy_unit: rad"))
    assert verdicts(contract, [20.0, 30.0], ranges((-90, 90), (0, 120))) == [UnitVerdict.FITS] * 2
