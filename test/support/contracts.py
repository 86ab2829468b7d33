"""A small contract that tests change line by line."""

from __future__ import annotations

from pathlib import Path

from groot_ros.contract import Contract, parse_contract

ROBOTS = Path(__file__).parent.parent.parent / "config" / "robots"

SMALL = """
contract_version: 1
robot: two_joints
embodiment_tag: new_embodiment
rate_hz: 30
instruction: wave
cameras:
  front: {topic: front/image_raw}
  wrist: {topic: wrist/image_raw}
state:
  arm: {topic: joint_states, joints: [a, b], policy_unit: deg}
actions:
  arm: {meaning: position}
outputs:
  controller: {type: joint_trajectory, topic: arm/joint_trajectory, from: {arm: all}}
limits: none
"""


def small_contract(*replacements: tuple[str, str], more: str = "") -> Contract:
    """The small contract with some of its text replaced, and lines added."""
    text = SMALL
    for old, new in replacements:
        assert old in text, f"{old!r} is not in the small contract"
        text = text.replace(old, new)
    return parse_contract(text + more, "small.yaml")
