"""One MCAP file of one episode: checksums on, and whole chunks left behind whatever happens."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from mcap.writer import CompressionType, Writer

from groot_ros.errors import RecordingError
from groot_ros.recording.definitions import TypeDefinition

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
    """Takes serialised messages.

    After a failed write the file ends with its last whole chunk, and `recovery.seal` can finish it.

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
        try:
            self._stream = _WholeWrites(path)
        except OSError as error:
            raise _failed(path, error) from error
        self._writer = Writer(
            self._stream,  # type: ignore[arg-type]  # all that the writer calls is there
            chunk_size=CHUNK_BYTES,
            compression=CompressionType.NONE,
            enable_crcs=True,
        )
        self._schemas: dict[str, int] = {}
        self._whole = 0  # bytes up to the end of the last whole chunk
        self.failed = False
        try:
            self._writer.start(profile="ros2", library="groot_ros")
        except OSError as error:
            raise self._give_up(error) from error
        self._whole = self._stream.position

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
        if definition.name not in self._schemas:
            self._schemas[definition.name] = self._writer.register_schema(
                definition.name, "ros2msg", definition.text.encode()
            )
        metadata = {"offered_qos_profiles": qos, "topic_type_hash": definition.hash}
        channel = self._writer.register_channel(topic, "cdr", self._schemas[definition.name], metadata)
        self.channels[channel] = ChannelCount(topic, definition, qos)
        return channel

    def write(self, channel: int, received_ns: int, data: bytes) -> None:
        """Take a message as it came.

        Args:
            channel: What `add_channel` gave.
            received_ns: When it came, nanoseconds.
            data: The serialised message.

        Raises:
            RecordingError: The system refused to write; all chunks before are whole.

        """
        try:
            self._writer.add_message(channel, received_ns, data, received_ns)
        except OSError as error:
            raise self._give_up(error) from error
        self._whole = self._stream.position
        self._count(channel, received_ns)

    def sync(self) -> None:
        """Put everything taken so far on the disk.

        Raises:
            RecordingError: As `write`.

        """
        try:
            self._writer.flush()
            self._whole = self._stream.position
            self._stream.sync()
        except OSError as error:
            raise self._give_up(error) from error

    def finish(self) -> None:
        """Write the index and close the file.

        Raises:
            RecordingError: As `write`.

        """
        try:
            self._writer.flush()
            self._whole = self._stream.position
            self._writer.finish()
            self._stream.sync()
        except OSError as error:
            raise self._give_up(error) from error
        self._stream.close()

    def abandon(self) -> None:
        """Close the file as it is: it is about to be thrown away."""
        self._stream.close()

    def _count(self, channel: int, received_ns: int) -> None:
        self.channels[channel].messages += 1
        self.first_ns = received_ns if self.first_ns is None else min(self.first_ns, received_ns)
        self.last_ns = received_ns if self.last_ns is None else max(self.last_ns, received_ns)

    def _give_up(self, error: OSError) -> RecordingError:
        """Cut off what is not whole, and close."""
        self.failed = True
        self._stream.cut(self._whole)
        self._stream.close()
        return _failed(self.path, error)


class _WholeWrites:
    """A file without a buffer of its own, so that after a failure nothing is left that would be written later."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        self.position = 0

    def write(self, data: bytes) -> int:
        rest = memoryview(data)
        while rest:
            written = os.write(self._file, rest)
            self.position += written
            rest = rest[written:]
        return len(data)

    def tell(self) -> int:
        return self.position

    def flush(self) -> None:
        """Nothing is held back."""

    def sync(self) -> None:
        os.fsync(self._file)

    def cut(self, size: int) -> None:
        os.ftruncate(self._file, size)
        self.position = size

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
        self._file = -1


def _failed(path: Path, error: OSError) -> RecordingError:
    reason = error.strerror or str(error)
    return RecordingError(f"{path} cannot be written: {reason}; free space on the disk, or record to another one")
