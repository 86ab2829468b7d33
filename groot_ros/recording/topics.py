"""Which topics an episode holds: all that the contract's cameras, states and recorded actions are read from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from groot_ros.contract import Contract
from groot_ros.contract.sources import StateSource, TransformSource
from groot_ros.contract.timing import nanoseconds
from groot_ros.errors import RecordingError

TF_STATIC = "/tf_static"


@dataclass(frozen=True)
class RecordedTopic:
    """One topic to record.

    Attributes:
        topic: Its name in the contract.
        type_name: Its type.
        streams: The contract's streams that are read from it.
        is_camera: Whether an interval beyond the contract's ``record.max_gap_s`` marks the episode.
        max_age_ns: How old its newest message may be when an episode begins; None: of any age, and the last message
            from before the beginning belongs to the episode.

    """

    topic: str
    type_name: str
    streams: tuple[str, ...]
    is_camera: bool
    max_age_ns: int | None


def recorded_topics(contract: Contract) -> list[RecordedTopic]:
    """The topics of a contract, each once, cameras first.

    Raises:
        RecordingError: A topic is asked for with two types, or the contract says no actions.

    """
    if not contract.record.groups and contract.record.action_from_state is None:
        msg = (
            f"{contract.path or 'the contract'}: found no source of actions under record; name the topics of the "
            f"commands, or write action_from_state: {{shift_rows: 1}}"
        )
        raise RecordingError(msg)
    topics: dict[str, RecordedTopic] = {}
    for stream, topic, type_name in _wanted(contract):
        known = topics.get(topic)
        if known is not None and known.type_name != type_name:
            msg = f"the topic {topic} is {known.type_name} for {known.streams[0]} and {type_name} for {stream}"
            raise RecordingError(msg)
        age = None if topic == TF_STATIC else contract.alignment.max_age_ns(contract.stream_timing(stream))
        if known is not None and age is not None:
            age = None if known.max_age_ns is None else min(age, known.max_age_ns)
        topics[topic] = RecordedTopic(
            topic=topic,
            type_name=type_name,
            streams=(*(known.streams if known else ()), stream),
            is_camera=stream.startswith("video."),
            max_age_ns=age,
        )
    return list(topics.values())


def max_gap_ns(contract: Contract) -> int:
    """The camera interval that marks an episode, nanoseconds."""
    return nanoseconds(contract.max_gap_s)


def _wanted(contract: Contract) -> Iterator[tuple[str, str, str]]:
    """Stream, topic and type."""
    for camera, source in contract.cameras.items():
        yield f"video.{camera}", source.topic, source.message_type
    for prefix, groups in (("state", contract.state), ("action", contract.record.groups)):
        for group, sources in groups.items():
            for one in sources:
                yield from ((f"{prefix}.{group}", topic, one.message_type) for topic in _topics_of(one))


def _topics_of(source: StateSource) -> tuple[str, ...]:
    return ("/tf", TF_STATIC) if isinstance(source, TransformSource) else (source.topic,)
