"""What a person is told about a contract that is wrong: file, key, what was found, what is allowed."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from support.contracts import SMALL, small_contract

from groot_ros.contract import load_contract, parse_contract
from groot_ros.errors import ContractError

WRONG = yaml.safe_load((Path(__file__).parent / "wrong_contracts.yaml").read_text())


def fault(*replacements: tuple[str, str], more: str = "") -> str:
    with pytest.raises(ContractError) as caught:
        small_contract(*replacements, more=more)
    return str(caught.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ContractError, match=r"nothing\.yaml: the contract cannot be read"):
        load_contract(tmp_path / "nothing.yaml")


def test_the_contract_remembers_its_file(tmp_path):
    (tmp_path / "robot.yaml").write_text(SMALL)
    assert load_contract(tmp_path / "robot.yaml").path == tmp_path / "robot.yaml"


@pytest.mark.parametrize("text", ["", "- a list", "just words", "5"])
def test_a_file_that_holds_no_mapping_is_refused(text):
    with pytest.raises(ContractError, match="wanted a mapping that begins with contract_version: 1"):
        parse_contract(text, "x.yaml")


def test_broken_yaml_is_refused_with_its_line():
    with pytest.raises(ContractError, match=r"x\.yaml: this is not YAML: .*line 2"):
        parse_contract("a: 1\n b: : 2", "x.yaml")


def test_a_key_that_stands_twice_is_refused():
    assert "the key 'rate_hz' stands twice" in fault(more="rate_hz: 20\n")


def test_an_unknown_key_suggests_the_nearest_known_one():
    message = fault(more="algnment: {}\n")
    assert message.startswith(
        "small.yaml: algnment: found an unknown key; did you mean alignment? allowed are contract_version,"
    )


def test_an_unknown_key_deep_inside_suggests_the_nearest_known_one():
    message = fault(more="motion: {hold: 0.3}\n")
    assert message.startswith("small.yaml: motion.hold: found an unknown key; did you mean hold_s?")


def test_an_unknown_key_of_an_output_suggests_only_what_this_type_has():
    message = fault(("from: {arm: all}}", "from: {arm: all}, final_velocty: true}"))
    assert "small.yaml: outputs.controller.final_velocty: found an unknown key; did you mean final_velocity?" in message
    assert "max_effort" not in message


def test_a_misspelled_source_key_suggests_joints():
    message = fault(("joints: [a, b], policy_unit: deg", "joint: [a, b]"))
    assert "small.yaml: state.arm.joint: found an unknown key; did you mean joints?" in message


def test_every_fault_is_told_at_once():
    message = fault(("rate_hz: 30", "rate_hz: fast"), ("instruction: wave", "instruction: 5"))
    assert message.splitlines() == [
        "small.yaml: rate_hz: found 'fast'; allowed is a valid number",
        "small.yaml: instruction: found 5; allowed is a valid string",
    ]


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong["says"].split(";")[0])
def test_what_is_wrong_is_named_with_what_is_allowed(wrong):
    replacements = [(wrong["old"], wrong["new"])] if "old" in wrong else []
    assert f"small.yaml: {wrong['says']}" in fault(*replacements, more=wrong.get("more", "") + "\n")


def test_two_arms_in_one_controller_need_the_names_of_the_robot():
    arms = (
        ("  arm: {topic", "  other: {topic: other, joints: [a, b]}\n  arm: {topic"),
        ("  arm: {meaning", "  other: {meaning: position}\n  arm: {meaning"),
        ("{arm: all}", "{arm: all, other: all}"),
    )
    assert "outputs.controller.names: found a, b twice; name each value as the robot does" in fault(*arms)
    contract = small_contract(*arms, ("arm/joint_trajectory,", "both, names: [left_a, left_b, right_a, right_b],"))
    assert [row.robot_name for row in contract.output_rows("controller")] == ["left_a", "left_b", "right_a", "right_b"]


def test_numbers_are_read_as_people_write_them():
    contract = small_contract(("rate_hz: 30", "rate_hz: 3e1"), more="alignment: {tolerance_s: 1e-2}\n")
    assert contract.rate_hz == 30.0
    assert contract.alignment.tolerance_s == 0.01


def test_a_joint_named_on_or_no_stays_a_word():
    contract = small_contract(("joints: [a, b]", "joints: [on, no]"))
    assert contract.state_dimensions("arm") == ["on", "no"]


def test_a_stream_name_that_is_both_camera_and_state_needs_its_prefix():
    both = (
        ("arm: {topic", "front: {topic"),
        ("arm: {meaning: position}", "front: {meaning: position}"),
        ("arm: all", "front: all"),
    )
    message = fault(*both, more="alignment: {streams: {front: {offset_s: 0.1}}}\n")
    assert "alignment.streams.front: found 'front', which names 2 streams" in message
    contract = small_contract(*both, more="alignment: {streams: {video.front: {offset_s: 0.1}}}\n")
    assert contract.stream_timing("video.front").offset_ns == 100_000_000
    assert contract.stream_timing("state.front").offset_ns == 0
