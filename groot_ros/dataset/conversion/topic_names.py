"""The contract's topics in a bag: by their full name, or, where the robot ran in a namespace, by the end of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from groot_ros.alignment.intake import IntakeTopic
from groot_ros.errors import DatasetError

TF_STATIC = "/tf_static"


def find_topics(wanted: Iterable[IntakeTopic], found: Mapping[str, str], bag: Path) -> dict[str, IntakeTopic]:
    """Bag topic to the contract's topic.

    Args:
        wanted: The contract's topics.
        found: The bag's topics and their types.
        bag: Where the bag lies, for errors.

    Raises:
        DatasetError: A topic is not there, is there in several namespaces, or has another type.

    """
    names = {}
    for topic in wanted:
        full = "/" + topic.name.lstrip("/")
        matches = [full] if full in found else [name for name in found if name.endswith(full)]
        if not matches and full == TF_STATIC:
            continue  # a robot without fixed frames never sends any
        if not matches:
            msg = f"{bag} has no topic {full}; it has {', '.join(sorted(found)) or 'none'}"
            raise DatasetError(msg)
        if len(matches) > 1:
            msg = f"{bag} has several topics that end with {full}: {', '.join(matches)}; write the full name"
            raise DatasetError(msg)
        if found[matches[0]] != topic.type:
            msg = f"{bag}: {matches[0]} is {found[matches[0]]}, but the contract says {topic.type}"
            raise DatasetError(msg)
        names[matches[0]] = topic
    return names
