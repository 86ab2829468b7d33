"""Give a broken MCAP file the index and the end that it lacks, in place: nothing whole is copied or lost."""

from __future__ import annotations

import os
from pathlib import Path

from mcap.data_stream import RecordBuilder
from mcap.opcode import Opcode
from mcap.records import ChunkIndex, MessageIndex

from groot_ros.errors import RecordingError
from groot_ros.recording.mcap_ending import ending
from groot_ros.recording.mcap_scan import RECORD_HEAD, McapScan, WholeChunk, scan

SKIPPED_OPCODE = 0x80
"""An opcode for private use, which every reader passes over: it hides a chunk whose checksum is wrong."""
LARGEST_CHUNK = 1 << 28
TAIL_SUFFIX = ".tail"


def seal(path: Path) -> McapScan:
    """Cut off what is not whole, hide damaged chunks, and write index and end.

    What is cut off is the chunk that was being written; where it looks like anything else, it is kept beside the file
    with the suffix ``.tail``.

    Returns:
        What the file held before; unchanged if it was whole.

    Raises:
        RecordingError: It is no MCAP file of this recorder, holds no whole message, or the system refused to write.

    """
    found = scan(path)
    if found.finished and not found.bad_chunks:
        return found
    if not found.chunks:
        msg = f"{path} holds no whole message: it was broken off before the first second was on the disk"
        raise RecordingError(msg)
    try:
        with path.open("r+b") as file:
            if not found.finished and not _is_unwritten_chunk(path, found):
                file.seek(found.end)
                path.with_name(path.name + TAIL_SUFFIX).write_bytes(file.read())
            for offset in found.bad_chunks:
                file.seek(offset)
                file.write(bytes([SKIPPED_OPCODE]))
            file.truncate(found.end)
            file.seek(found.end)
            file.write(_ending(found))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        os.truncate(path, found.end)  # as before: still to be sealed
        msg = f"{path} cannot be finished: {error.strerror}; its data is whole: free space and run record --recover"
        raise RecordingError(msg) from error
    return found


def _is_unwritten_chunk(path: Path, found: McapScan) -> bool:
    with path.open("rb") as file:
        file.seek(found.end)
        head = file.read(RECORD_HEAD.size)
    if len(head) < RECORD_HEAD.size:
        return True
    opcode, length = RECORD_HEAD.unpack(head)
    return opcode in (Opcode.CHUNK, Opcode.MESSAGE_INDEX) and length < LARGEST_CHUNK


def _ending(found: McapScan) -> bytes:
    """What is missing behind the data: indexes of the last chunk, and the end of the file."""
    builder = RecordBuilder()
    indexes = [_chunk_index(chunk, found.end, builder) for chunk in found.chunks]
    missing: bytes = builder.end()
    for index in indexes:
        index.write(builder)
    span_ns = min(index.message_start_time for index in indexes), max(index.message_end_time for index in indexes)
    return missing + ending(
        found.end + len(missing),
        schemas=found.schemas.values(),
        channels=found.channels.values(),
        counts=found.messages,
        span_ns=span_ns,
        chunk_indexes=builder.end(),
        chunk_count=len(indexes),
    )


def _chunk_index(chunk: WholeChunk, end: int, builder: RecordBuilder) -> ChunkIndex:
    indexes = dict(chunk.indexes)
    if indexes.keys() != chunk.messages.keys():  # broken off between a chunk and the indexes behind it
        indexes.clear()
        for channel, entries in chunk.messages.items():
            start = builder.count
            MessageIndex(channel, entries).write(builder)
            indexes[channel] = (end + start, builder.count - start)
    times = chunk.times_ns
    return ChunkIndex(
        message_start_time=min(times, default=0),
        message_end_time=max(times, default=0),
        chunk_start_offset=chunk.offset,
        chunk_length=chunk.length,
        message_index_offsets={channel: offset for channel, (offset, _) in indexes.items()},
        message_index_length=sum(length for _, length in indexes.values()),
        compression=chunk.compression,
        compressed_size=chunk.compressed_size,
        uncompressed_size=chunk.uncompressed_size,
    )
