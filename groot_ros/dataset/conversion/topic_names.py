"""The contract's topics in a bag: by their full names, or, where the robot ran in a namespace, with that in front."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from groot_ros.alignment.intake import IntakeTopic
from groot_ros.errors import DatasetError

TF_STATIC = "/tf_static"
TRANSFORMS = ("/tf", TF_STATIC)
"""These have the same name in every namespace."""


def find_topics(wanted: Iterable[IntakeTopic], found: Mapping[str, str], bag: Path) -> dict[str, IntakeTopic]:
    """Bag topic to the contract's topic.

    Args:
        wanted: The contract's topics.
        found: The bag's topics and their types.
        bag: Where the bag lies, for errors.

    Raises:
        DatasetError: A topic is not there, all are there in several namespaces, or one has another type.

    """
    topics = {"/" + topic.name.lstrip("/"): topic for topic in wanted}
    if TF_STATIC not in found:
        topics.pop(TF_STATIC, None)  # a robot without fixed frames never sends any
    namespace = _namespace(topics, found, bag)
    names = {}
    for full, topic in topics.items():
        name = full if full in TRANSFORMS else namespace + full
        if name not in found:
            msg = f"{bag} has no topic {name}; it has {', '.join(sorted(found)) or 'none'}"
            raise DatasetError(msg)
        if found[name] != topic.type:
            msg = f"{bag}: {name} is {found[name]}, but the contract says {topic.type}"
            raise DatasetError(msg)
        names[name] = topic
    return names


def _namespace(topics: Iterable[str], found: Iterable[str], bag: Path) -> str:
    """What stands in front of all topics in the bag; nothing where they are not all there."""
    moving = [full for full in topics if full not in TRANSFORMS]
    possible = [{name.removesuffix(full) for name in found if name.endswith(full)} for full in moving]
    namespaces = set.intersection(*possible) if possible else set()
    if "" in namespaces or not namespaces:
        return ""
    if len(namespaces) > 1:
        msg = (
            f"{bag} has the contract's topics in several namespaces: {', '.join(sorted(namespaces))}; "
            f"write the full names of the topics in the contract"
        )
        raise DatasetError(msg)
    return namespaces.pop()
