"""What of an MCAP file is whole: read record by record, without the index that a broken file lacks."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from mcap.data_stream import ReadDataStream
from mcap.exceptions import McapError
from mcap.opcode import Opcode
from mcap.records import Channel, Chunk, McapRecord, Message, Schema
from mcap.stream_reader import CRCValidationError, breakup_chunk
from zstandard import ZstdError

from groot_ros.errors import RecordingError

MAGIC = b"\x89MCAP0\r\n"
RECORD_HEAD = struct.Struct("<BQ")
DAMAGE = (McapError, CRCValidationError, struct.error, ValueError, EOFError, RuntimeError, ZstdError)
"""What reading a damaged chunk may raise; lz4 raises plain RuntimeErrors."""


@dataclass(frozen=True)
class WholeChunk:
    """A chunk whose checksum is right.

    Attributes:
        offset: Where its record begins in the file.
        length: Bytes of the record.
        compression: Its compression, empty where there is none.
        compressed_size: Bytes of its data in the file.
        uncompressed_size: Bytes of its data.
        messages: Channel to the log time and the offset within the data of each of its messages.
        indexes: Channel to the place and the bytes of the index record that follows the chunk.

    """

    offset: int
    length: int
    compression: str
    compressed_size: int
    uncompressed_size: int
    messages: dict[int, list[tuple[int, int]]]
    indexes: dict[int, tuple[int, int]] = field(default_factory=dict)

    @property
    def times_ns(self) -> list[int]:
        """The log times of all its messages."""
        return [time for entries in self.messages.values() for time, _ in entries]


@dataclass
class McapScan:
    """What was found in a file.

    Attributes:
        schemas: Schemas by number.
        channels: Channels by number.
        chunks: Whole chunks, in the order of the file.
        bad_chunks: Where chunks begin whose checksum is wrong.
        end: Where the last whole record of the data ends.
        size: Bytes of the file.
        finished: Whether the file has its index and its end.

    """

    schemas: dict[int, Schema] = field(default_factory=dict)
    channels: dict[int, Channel] = field(default_factory=dict)
    chunks: list[WholeChunk] = field(default_factory=list)
    bad_chunks: list[int] = field(default_factory=list)
    end: int = 0
    size: int = 0
    finished: bool = False

    @property
    def messages(self) -> dict[int, int]:
        """Channel to the number of its whole messages."""
        counts = dict.fromkeys(self.channels, 0)
        for chunk in self.chunks:
            for channel, entries in chunk.messages.items():
                counts[channel] += len(entries)
        return counts


def scan(path: Path) -> McapScan:
    """Read a file as far as its records go.

    Raises:
        RecordingError: It is no MCAP file, cannot be read, or was not written in chunks.

    """
    try:
        with path.open("rb") as file:
            return _scan(file, path)
    except OSError as error:
        msg = f"{path} cannot be read: {error.strerror}"
        raise RecordingError(msg) from error


def _scan(file: BinaryIO, path: Path) -> McapScan:
    found = McapScan(size=path.stat().st_size)
    if found.size == 0:
        msg = f"{path} is empty: nothing was on the disk yet"
        raise RecordingError(msg)
    if file.read(len(MAGIC)) != MAGIC:
        msg = f"{path} is no MCAP file: it does not begin as one; there is nothing that could be recovered"
        raise RecordingError(msg)
    found.end = len(MAGIC)
    whole: WholeChunk | None = None  # the chunk to which the index records behind it belong
    for opcode, offset, content in _records(file, found.size):
        if opcode in (Opcode.DATA_END, Opcode.FOOTER):
            found.finished = _has_end(file, found.size)
            return found
        if opcode != Opcode.MESSAGE_INDEX:
            whole = _take_chunk(found, offset, content) if opcode == Opcode.CHUNK else None
        elif whole is not None and len(content) >= 2:
            whole.indexes[int.from_bytes(content[:2], "little")] = (offset, RECORD_HEAD.size + len(content))
        if opcode == Opcode.MESSAGE:
            msg = f"{path} has messages outside of chunks, as this recorder never writes them: use `mcap recover`"
            raise RecordingError(msg)
        if opcode == Opcode.SCHEMA:
            _take_record(found, Schema.read(ReadDataStream(BytesIO(content))))
        elif opcode == Opcode.CHANNEL:
            _take_record(found, Channel.read(ReadDataStream(BytesIO(content))))
        found.end = offset + RECORD_HEAD.size + len(content)
    return found


def _records(file: BinaryIO, size: int) -> Iterator[tuple[int, int, bytes]]:
    """Opcode, offset and content of each record that is whole."""
    while True:
        offset = file.tell()
        head = file.read(RECORD_HEAD.size)
        if len(head) < RECORD_HEAD.size:
            return
        opcode, length = RECORD_HEAD.unpack(head)
        if opcode == 0 or length > size - offset - RECORD_HEAD.size:
            return
        yield opcode, offset, file.read(length)


def _has_end(file: BinaryIO, size: int) -> bool:
    file.seek(size - len(MAGIC))
    return file.read() == MAGIC


def _take_chunk(found: McapScan, offset: int, content: bytes) -> WholeChunk | None:
    try:
        chunk = Chunk.read(ReadDataStream(BytesIO(content)))
        records = breakup_chunk(chunk, validate_crc=True)
    except DAMAGE:
        found.bad_chunks.append(offset)
        return None
    messages: dict[int, list[tuple[int, int]]] = {}
    position = 0
    for record in records:
        if isinstance(record, Message):
            messages.setdefault(record.channel_id, []).append((record.log_time, position))
        else:
            _take_record(found, record)
        position += RECORD_HEAD.size + _content_size(record)
    whole = WholeChunk(
        offset=offset,
        length=RECORD_HEAD.size + len(content),
        compression=chunk.compression,
        compressed_size=len(chunk.data),
        uncompressed_size=chunk.uncompressed_size,
        messages=messages,
    )
    found.chunks.append(whole)
    return whole


def _take_record(found: McapScan, record: McapRecord) -> None:
    if isinstance(record, Schema):
        found.schemas[record.id] = record
    elif isinstance(record, Channel):
        found.channels[record.id] = record


def _content_size(record: McapRecord) -> int:
    """Bytes of a record of a chunk, behind its head."""
    if isinstance(record, Message):
        return 22 + len(record.data)
    if isinstance(record, Schema):
        return 2 + 4 + len(record.name.encode()) + 4 + len(record.encoding.encode()) + 4 + len(record.data)
    if isinstance(record, Channel):
        entries = sum(8 + len(key.encode()) + len(value.encode()) for key, value in record.metadata.items())
        text = len(record.topic.encode()) + len(record.message_encoding.encode())
        return 2 + 2 + 4 + 4 + text + 4 + entries
    msg = f"a chunk holds a {type(record).__name__}"
    raise ValueError(msg)
