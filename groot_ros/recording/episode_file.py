"""One MCAP file of one episode: checksums on, and whole chunks left behind whatever happens.

The `mcap` package's own writer copies every message several times and holds Python's lock while it does. Here a message
goes to the system as the middleware gave it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from dataclasses import dataclass
from pathlib import Path

from mcap.data_stream import RecordBuilder
from mcap.records import Channel, Header, Schema

from groot_ros.errors import RecordingError
from groot_ros.recording.definitions import TypeDefinition
from groot_ros.recording.mcap_chunk import ChunkBuilder
from groot_ros.recording.mcap_ending import ending
from groot_ros.recording.mcap_scan import MAGIC

CHUNK_BYTES = 1 << 18
"""Small, since a damaged chunk is lost as a whole; a camera frame fills one alone."""


@dataclass
class ChannelCount:
    """A topic in the file.

    Attributes:
        topic: Its full name.
        definition: Its type.
        qos: What its publishers offered, as the YAML that rosbag2 keeps.
        messages: How many were written.

    """

    topic: str
    definition: TypeDefinition
    qos: str
    messages: int = 0


class EpisodeFile:
    """Takes serialised messages, from one thread; `sync` may be called from another.

    After a failed write the file ends with its last whole chunk, and `recovery.seal` can finish it. Until `close` it is
    locked, so that nobody recovers what is still being written.

    Args:
        path: The file; it must not exist yet.

    Raises:
        RecordingError: It cannot be made.

    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.channels: dict[int, ChannelCount] = {}
        self.first_ns: int | None = None
        self.last_ns: int | None = None
        self.failed = False
        self._schemas: dict[str, Schema] = {}
        self._channels: list[Channel] = []
        self._new_records = RecordBuilder()  # what stands before the next chunk
        self._chunk = ChunkBuilder()
        self._chunk_indexes = bytearray()
        self._chunk_count = 0
        self._whole = 0  # bytes up to the end of the last whole chunk
        try:
            self._stream = _WholeWrites(path)
        except OSError as error:
            raise _failed(path, error) from error
        self._new_records.write(MAGIC)
        Header(profile="ros2", library="groot_ros").write(self._new_records)

    @property
    def size(self) -> int:
        """Bytes written so far."""
        return self._stream.position

    @property
    def messages(self) -> int:
        """Messages taken so far."""
        return sum(channel.messages for channel in self.channels.values())

    def add_channel(self, topic: str, definition: TypeDefinition, qos: str = "") -> int:
        """Make a topic known and return the number by which `write` knows it."""
        schema = self._schemas.get(definition.name)
        if schema is None:
            text = definition.text.encode()
            schema = Schema(id=len(self._schemas) + 1, data=text, encoding="ros2msg", name=definition.name)
            self._schemas[definition.name] = schema
            schema.write(self._new_records)
        metadata = {"offered_qos_profiles": qos, "topic_type_hash": definition.hash}
        number = len(self._channels) + 1
        channel = Channel(id=number, topic=topic, message_encoding="cdr", schema_id=schema.id, metadata=metadata)
        self._channels.append(channel)
        channel.write(self._new_records)
        self.channels[number] = ChannelCount(topic, definition, qos)
        return number

    def write(self, channel: int, received_ns: int, data: bytes) -> None:
        """Take a message as it came.

        Args:
            channel: What `add_channel` gave.
            received_ns: When it came, nanoseconds.
            data: The serialised message.

        Raises:
            RecordingError: The system refused to write; all chunks before are whole.

        """
        self._chunk.add(channel, received_ns, data)
        self._count(channel, received_ns)
        if self._chunk.size >= CHUNK_BYTES:
            self.flush()

    def flush(self) -> None:
        """Give everything taken so far to the system, which keeps it also when this process is killed.

        Raises:
            RecordingError: As `write`.

        """
        if not self._chunk.size:
            return
        chunk, self._chunk = self._chunk, ChunkBuilder()
        records = self._new_records.end()
        pieces, index = chunk.end(self._stream.position + len(records))
        self._write([records, *pieces])
        self._chunk_indexes += index
        self._chunk_count += 1

    def sync(self) -> None:
        """Wait until everything written so far is on the disk. `write` may go on meanwhile.

        Raises:
            RecordingError: The system refused.

        """
        try:
            self._stream.sync()
        except OSError as error:
            raise _failed(self.path, error) from error

    def finish(self) -> None:
        """Write the index; nothing can be written any more.

        Raises:
            RecordingError: As `write`.

        """
        self.flush()
        counts = {number: channel.messages for number, channel in self.channels.items()}
        records = self._new_records.end()
        end = ending(
            self._stream.position + len(records),
            schemas=self._schemas.values(),
            channels=self._channels,
            counts=counts,
            span_ns=(self.first_ns or 0, self.last_ns or 0),
            chunk_indexes=self._chunk_indexes,
            chunk_count=self._chunk_count,
        )
        whole = self._whole
        self._write([records, end])
        try:
            self._stream.sync()
        except OSError as error:
            self._whole = whole
            raise self._give_up(error) from error

    def close(self) -> None:
        """Close the file as it is.

        Raises:
            OSError: The system refused; the file is closed all the same.

        """
        self._stream.close()

    def _write(self, pieces: list[bytes | bytearray]) -> None:
        """Write a whole chunk, or nothing."""
        try:
            self._stream.write(pieces)
        except OSError as error:
            raise self._give_up(error) from error
        self._whole = self._stream.position

    def _count(self, channel: int, received_ns: int) -> None:
        self.channels[channel].messages += 1
        self.first_ns = received_ns if self.first_ns is None else min(self.first_ns, received_ns)
        self.last_ns = received_ns if self.last_ns is None else max(self.last_ns, received_ns)

    def _give_up(self, error: OSError) -> RecordingError:
        """Cut off what is not whole; a disk that is gone refuses that too."""
        self.failed = True
        with contextlib.suppress(OSError):
            self._stream.cut(self._whole)
        return _failed(self.path, error)


class _WholeWrites:
    """A file without a buffer of its own, so that after a failure nothing is left that would be written later."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        with contextlib.suppress(OSError):  # a disk that knows no locks can be recorded to all the same
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self.position = 0

    def write(self, pieces: list[bytes | bytearray]) -> None:
        rest = [memoryview(piece) for piece in pieces if piece]
        while rest:
            written = os.writev(self._file, rest)
            self.position += written
            while rest and written >= len(rest[0]):
                written -= len(rest.pop(0))
            if written:
                rest[0] = rest[0][written:]

    def sync(self) -> None:
        os.fsync(self._file)

    def cut(self, size: int) -> None:
        os.ftruncate(self._file, size)
        os.lseek(self._file, size, os.SEEK_SET)
        self.position = size

    def close(self) -> None:
        file, self._file = self._file, -1
        if file >= 0:
            os.close(file)


def _failed(path: Path, error: OSError) -> RecordingError:
    reason = error.strerror or str(error)
    return RecordingError(f"{path} cannot be written: {reason}; free space on the disk, or record to another one")
