"""``metadata.yaml``: what makes a folder with an MCAP file a rosbag2 bag."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

METADATA_FILE = "metadata.yaml"
VERSION = 8
"""The newest version whose QoS profiles are text, which older ROS distributions read too."""


@dataclass(frozen=True)
class TopicCount:
    """A topic of a bag."""

    topic: str
    type_name: str
    type_hash: str
    qos: str
    messages: int


def write_metadata(
    folder: Path,
    file_name: str,
    topics: Iterable[TopicCount],
    *,
    first_ns: int,
    last_ns: int,
    custom: Mapping[str, str],
) -> None:
    """Write ``metadata.yaml`` into the folder of a bag, whole or not at all, and wait until it is on the disk.

    Args:
        folder: The bag.
        file_name: Its one data file.
        topics: What is in it.
        first_ns: When the first message came, nanoseconds.
        last_ns: When the last one came.
        custom: What is noted of the episode.

    Raises:
        OSError: The system refused to write.

    """
    counted = list(topics)
    messages = sum(topic.messages for topic in counted)
    span = {
        "duration": {"nanoseconds": last_ns - first_ns},
        "starting_time": {"nanoseconds_since_epoch": first_ns},
        "message_count": messages,
    }
    content = {
        "rosbag2_bagfile_information": {
            "version": VERSION,
            "storage_identifier": "mcap",
            **span,
            "topics_with_message_count": [
                {
                    "topic_metadata": {
                        "name": topic.topic,
                        "type": topic.type_name,
                        "serialization_format": "cdr",
                        "offered_qos_profiles": topic.qos,
                        "type_description_hash": topic.type_hash,
                    },
                    "message_count": topic.messages,
                }
                for topic in counted
            ],
            "compression_format": "",
            "compression_mode": "",
            "relative_file_paths": [file_name],
            "files": [{"path": file_name, **span}],
            "custom_data": dict(custom),
            "ros_distro": os.environ.get("ROS_DISTRO", ""),
        }
    }
    temporary = folder / f".{METADATA_FILE}.partial"
    try:
        with temporary.open("w", encoding="utf-8") as file:
            yaml.safe_dump(content, file, sort_keys=False, allow_unicode=True)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(folder / METADATA_FILE)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(folder)


def read_notes(folder: Path) -> dict[str, str]:
    """What ``metadata.yaml`` notes of the episode; nothing where there is none, or it cannot be read."""
    try:
        content = yaml.safe_load((folder / METADATA_FILE).read_text(encoding="utf-8"))
        notes = content["rosbag2_bagfile_information"]["custom_data"]
    except (OSError, UnicodeDecodeError, yaml.YAMLError, KeyError, TypeError):
        return {}
    return {str(name): str(text) for name, text in notes.items()} if isinstance(notes, dict) else {}


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
