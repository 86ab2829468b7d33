"""Bags, read message by message: rosbag2 in MCAP or sqlite3, a directory or one file, without ROS on the machine."""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import apsw
from rosbags.interfaces import Connection, MessageDefinitionFormat
from rosbags.rosbag2 import Reader, ReaderError
from rosbags.serde import SerdeError
from rosbags.typesys import Stores, TypesysError, get_types_from_idl, get_types_from_msg, get_typestore
from typing_extensions import Self

from groot_ros.errors import DatasetError

if TYPE_CHECKING:
    from rosbags.typesys.store import Typestore

FILE_ENDINGS = (".mcap", ".db3")
_READ_FAULTS = (ReaderError, OSError, apsw.Error, struct.error, ValueError, KeyError, EOFError, AssertionError)
_TYPE_FAULTS = (TypesysError, SyntaxError, ValueError, KeyError)
_PADDING = 4
"""Bytes that Fast CDR leaves behind an empty list of 8-byte numbers at the end of a message, as in most JointStates."""
LONGEST_REASON = 200
_IDL_SEPARATOR = "=" * 80 + "\n"


class BagMessage:
    """One message, deserialised when someone wants to see it.

    Attributes:
        topic: Its topic, with the leading slash.
        type: Its type, as ``sensor_msgs/msg/Image``.
        received_ns: When it was recorded, nanoseconds.
        data: Its bytes, CDR as they were sent.

    """

    __slots__ = ("_bag", "data", "received_ns", "topic", "type")

    def __init__(self, bag: Bag, topic: str, kind: str, received_ns: int, data: bytes) -> None:
        self._bag = bag
        self.topic = topic
        self.type = kind
        self.received_ns = received_ns
        self.data = data

    def message(self) -> Any:  # noqa: ANN401 - a ROS message of any type
        """The message with its fields.

        Raises:
            DatasetError: Its type is not known, or its bytes are not of its type.

        """
        return self._bag.deserialize(self)


class Bag:
    """A bag that is being read; use it in a ``with`` block.

    Args:
        path: Directory with ``metadata.yaml``, or a single ``.mcap`` or ``.db3`` file.

    Raises:
        DatasetError: It is no bag, damaged, or of a format that is not read.

    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._reader = _reader(self.path)
        try:
            self._reader.open()
        except _READ_FAULTS as error:
            msg = f"{self.path} cannot be read as a bag: {_plain(error)}"
            raise DatasetError(msg) from error
        _agree_on_quality(self._reader)
        self._store, self._type_faults = _types(self._reader.connections)
        self._deserializers: dict[str, Any] = {}

    def __enter__(self) -> Self:
        """Return the bag itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Close the files; once is enough."""
        if self._reader.is_open:
            self._reader.close()

    @property
    def topics(self) -> dict[str, str]:
        """Topic to message type."""
        return {connection.topic: connection.msgtype for connection in self._reader.connections}

    @property
    def counts(self) -> dict[str, int]:
        """Topic to the number of its messages."""
        counts: dict[str, int] = {}
        for connection in self._reader.connections:
            counts[connection.topic] = counts.get(connection.topic, 0) + connection.msgcount
        return counts

    @property
    def start_ns(self) -> int:
        """When the first message was recorded."""
        return int(self._reader.start_time)

    @property
    def end_ns(self) -> int:
        """When the last message was recorded."""
        return int(self._reader.end_time) - 1

    @property
    def message_count(self) -> int:
        """Messages on all topics."""
        return int(self._reader.message_count)

    def messages(self, topics: Collection[str] | None = None) -> Iterator[BagMessage]:
        """The messages in the order of their recording.

        Args:
            topics: Only these; None for all.

        Raises:
            DatasetError: The file is damaged further on.

        """
        chosen = [one for one in self._reader.connections if topics is None or one.topic in topics]
        if not chosen:
            return
        silent = {connection.topic for connection in chosen if connection.msgcount}
        try:
            for connection, received_ns, data in self._reader.messages(chosen):
                silent.discard(connection.topic)
                yield BagMessage(self, connection.topic, connection.msgtype, received_ns, data)
        except _READ_FAULTS as error:
            msg = f"{self.path} is damaged: {_plain(error)}; repair it with `record --recover` or sqlite3"
            raise DatasetError(msg) from error
        if silent:
            msg = f"{self.path} is to have messages on {', '.join(sorted(silent))}, but none are there; was it cut off?"
            raise DatasetError(msg)

    def deserialize(self, message: BagMessage) -> Any:  # noqa: ANN401 - a ROS message of any type
        """See `BagMessage.message`."""
        kind = message.type
        if kind in self._type_faults:
            msg = f"{self.path}, {message.topic}: the type {kind} cannot be read: {self._type_faults[kind]}"
            raise DatasetError(msg)
        try:
            return self._store.deserialize_cdr(message.data, kind)
        except SerdeError as error:
            with suppress(SerdeError, struct.error, ValueError, IndexError):
                return self._store.deserialize_cdr(message.data[:-_PADDING], kind)
            raise self._damaged(message, error) from error
        except (struct.error, ValueError, IndexError, KeyError) as error:
            raise self._damaged(message, error) from error

    def _damaged(self, message: BagMessage, error: Exception) -> DatasetError:
        return DatasetError(
            f"{self.path}, {message.topic} at {message.received_ns} ns: its {len(message.data)} bytes are no "
            f"{message.type}: {_plain(error)}"
        )


def is_bag(path: Path) -> bool:
    """Whether a path looks like a bag: a file with a bag's ending, or a directory with one of a bag's files."""
    if path.is_dir():
        return (path / "metadata.yaml").is_file() or any(any(path.glob(f"*{ending}")) for ending in FILE_ENDINGS)
    return path.suffix in FILE_ENDINGS


def _reader(path: Path) -> Reader:
    if not path.exists():
        msg = f"{path} is not there; wanted a bag: a directory with metadata.yaml, an .mcap or a .db3 file"
        raise DatasetError(msg)
    if path.is_dir() and not (path / "metadata.yaml").is_file():
        parts = sorted(part for ending in FILE_ENDINGS for part in path.glob(f"*{ending}"))
        if not parts:
            msg = f"{path} is no bag: it has neither metadata.yaml nor an .mcap or .db3 file"
            raise DatasetError(msg)
        if len(parts) > 1:
            msg = f"{path} has {len(parts)} bag files but no metadata.yaml; run `ros2 bag reindex {path}`, or name one"
            raise DatasetError(msg)
        path = parts[0]
    if path.is_file() and path.suffix == ".bag":
        msg = f"{path} is a ROS 1 bag; convert it with `rosbags-convert --src {path} --dst {path.stem}`"
        raise DatasetError(msg)
    try:
        return Reader(path)
    except (ReaderError, OSError) as error:
        msg = f"{path} is no bag: {_plain(error)}; wanted a directory with metadata.yaml, an .mcap or a .db3 file"
        raise DatasetError(msg) from error


def _types(connections: Collection[Connection]) -> tuple[Typestore, dict[str, str]]:
    """The bag's own definitions; where it has none, those of the standard packages; and what is known of neither."""
    standard = get_typestore(Stores.LATEST)
    definitions, faults = dict(standard.fielddefs), {}
    for connection in connections:
        kind, definition = connection.msgtype, connection.msgdef
        try:
            if definition.format == MessageDefinitionFormat.MSG:
                definitions.update(get_types_from_msg(definition.data, kind))
            elif definition.format == MessageDefinitionFormat.IDL:
                definitions.update(_idl_types(definition.data))
        except _TYPE_FAULTS as error:
            faults[kind] = _plain(error)
        if kind not in definitions:
            faults.setdefault(kind, "the bag does not hold its definition, and it is no standard type")
    store = get_typestore(Stores.EMPTY)
    store.register(_needed(definitions, {connection.msgtype for connection in connections}))
    return store, faults


def _needed(definitions: dict[str, Any], types: Collection[str]) -> dict[str, Any]:
    """The definitions of these types and of those within them: classes of all that is known take half a second."""
    needed: dict[str, Any] = {}
    open_types = [name for name in types if name in definitions]
    while open_types:
        name = open_types.pop()
        if name not in needed:
            needed[name] = definitions[name]
            open_types += [inner for inner in _names_in(definitions[name][1]) if inner in definitions]
    return needed


def _names_in(fields: Any) -> list[str]:  # noqa: ANN401 - nested pairs of kind and detail
    if isinstance(fields, str):
        return [fields] if "/msg/" in fields else []
    if isinstance(fields, list | tuple):
        return [name for field in fields for name in _names_in(field)]
    return []


def _idl_types(text: str) -> dict[str, Any]:
    if not text.startswith(f"{_IDL_SEPARATOR}IDL: "):
        return dict(get_types_from_idl(text))
    types: dict[str, Any] = {}
    for part in text.split(_IDL_SEPARATOR)[1:]:
        types.update(get_types_from_idl(part.split("\n", 1)[1]))
    return types


def _plain(error: Exception) -> str:
    """What an error says, in one line that is not endless."""
    lines = str(error).strip().rstrip(".").splitlines()
    return lines[0][:LONGEST_REASON] if lines else type(error).__name__


def _agree_on_quality(reader: Reader) -> None:
    """Take the files' topics for those of metadata.yaml, also where the two write quality of service differently.

    rosbags passes over such topics without a word: bags that older versions of rosbag2 wrote have them.
    """
    known = {(connection.topic, connection.msgtype): connection.ext for connection in reader.connections}
    for storage in getattr(reader.storage, "storages", ()):
        storage.connections[:] = [
            connection._replace(ext=known.get((connection.topic, connection.msgtype), connection.ext))
            for connection in storage.connections
        ]
