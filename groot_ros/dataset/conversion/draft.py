"""A contract to begin with, guessed from what a bag holds; a person reads it before it is used."""

from __future__ import annotations

import re

from groot_ros.dataset.conversion.inspection import IMAGE_TYPES, BagReport, TopicReport
from groot_ros.dataset.conversion.video_packets import PACKET_TYPES
from groot_ros.errors import DatasetError

JOINT_STATE = "sensor_msgs/msg/JointState"
JOINT_TRAJECTORY = "trajectory_msgs/msg/JointTrajectory"
COMMANDS = re.compile(r"leader|command|cmd|target|goal|desired|reference")
"""Names of topics whose joint states are rather commanded than measured."""
NOT_A_CAMERA = re.compile(r"depth|mask|debug|theora")


def draft_contract(report: BagReport) -> str:
    """YAML of a contract that reads the bag; every guess is marked.

    Raises:
        DatasetError: The bag has no camera or no joint states, so nothing can be guessed.

    """
    topics = [topic for topic in report.topics if topic.messages and topic.fault is None]
    cameras = [topic for topic in topics if _is_camera(topic)]
    joints = [topic for topic in topics if topic.type == JOINT_STATE and topic.names]
    if not cameras or not joints:
        missing = "camera" if not cameras else "sensor_msgs/JointState"
        msg = f"{report.path} has no {missing}, so no contract can be drafted; see docs/contract.md"
        raise DatasetError(msg)
    commands = [topic for topic in joints if COMMANDS.search(topic.name)]
    measured = max((topic for topic in joints if topic not in commands), key=_width, default=joints[0])
    trajectories = [topic for topic in topics if topic.type == JOINT_TRAJECTORY and topic.names]
    names = ", ".join(measured.names)
    lines = [
        f"# Drafted from {report.path.name}; read every line marked CHECK before you use it.",
        "contract_version: 1",
        "robot: my_robot                          # CHECK",
        "embodiment_tag: new_embodiment",
        f"rate_hz: {max(1, round(cameras[0].rate_hz))}                              # CHECK: of {cameras[0].name}",
        f'instruction: "{_instruction(topics)}"',
        "cameras:                                 # CHECK: the names",
        *(f"  {name}: {_camera(topic)}" for name, topic in zip(_camera_names(cameras), cameras, strict=True)),
        "state:",
        f"  arm: {{topic: {measured.name}, joints: [{names}]}}   # CHECK: units (rad, m); split off the gripper",
        "actions:",
        "  arm: {meaning: position}               # CHECK",
        "outputs:",
        f"  controller: {{type: joint_trajectory, topic: {_controller(trajectories)}, from: {{arm: all}}}}   # CHECK",
        "limits: none                             # CHECK: before the robot moves",
        "record:                                  # CHECK: commanded values, not measured ones",
        f"  {_record(measured, commands, trajectories)}",
        "",
    ]
    return "\n".join(lines)


def _is_camera(topic: TopicReport) -> bool:
    return topic.type in (*IMAGE_TYPES, *PACKET_TYPES) and not NOT_A_CAMERA.search(topic.name.lower())


def _width(topic: TopicReport) -> int:
    return len(topic.names)


def _camera_names(cameras: list[TopicReport]) -> list[str]:
    """The first part of each topic that tells it from the others."""
    parts = [[part for part in camera.name.split("/") if part] for camera in cameras]
    for depth in range(max(map(len, parts))):
        names = [re.sub(r"\W", "_", part[min(depth, len(part) - 1)]) for part in parts]
        if len(set(names)) == len(names) and not set(names) & {"image_raw", "image", "compressed"}:
            return names
    return [f"camera_{number}" for number in range(len(cameras))]


def _camera(topic: TopicReport) -> str:
    guessed = IMAGE_TYPES[1] if topic.name.endswith("/compressed") else IMAGE_TYPES[0]
    return f"{{topic: {topic.name}}}" if topic.type == guessed else f"{{topic: {topic.name}, type: {topic.type}}}"


def _controller(trajectories: list[TopicReport]) -> str:
    return trajectories[0].name if trajectories else "arm_controller/joint_trajectory"


def _record(measured: TopicReport, commands: list[TopicReport], trajectories: list[TopicReport]) -> str:
    names = ", ".join(measured.names)
    for topic in commands:
        if set(measured.names) <= set(topic.names):
            return f"arm: {{topic: {topic.name}, joints: [{names}]}}"
    for topic in trajectories:
        if set(measured.names) <= set(topic.names):
            field = 'field: "points[-1].positions", interpolation: hold'
            return f"arm: {{topic: {topic.name}, type: {JOINT_TRAJECTORY}, joints: [{names}], {field}}}"
    return "action_from_state: {shift_rows: 1}   # the bag has no commands of these joints"


def _instruction(topics: list[TopicReport]) -> str:
    said = [topic.content for topic in topics if topic.type == "std_msgs/msg/String" and "instruction" in topic.name]
    return said[0].replace('"', "'") if said else ""
