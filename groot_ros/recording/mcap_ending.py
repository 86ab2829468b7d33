"""What stands behind the data of an MCAP file: the end of the data, the summary, the footer."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Mapping

from mcap.data_stream import RecordBuilder
from mcap.opcode import Opcode
from mcap.records import Channel, DataEnd, Footer, Schema, Statistics, SummaryOffset

from groot_ros.recording.mcap_scan import MAGIC


def ending(
    start: int,
    *,
    schemas: Iterable[Schema],
    channels: Iterable[Channel],
    counts: Mapping[int, int],
    span_ns: tuple[int, int],
    chunk_indexes: bytes | bytearray,
    chunk_count: int,
) -> bytes:
    """Make the end of a file.

    Args:
        start: Where it begins in the file.
        schemas: All types.
        channels: All topics.
        counts: Channel to its messages.
        span_ns: First and last log time, nanoseconds.
        chunk_indexes: The serialised index records of all chunks.
        chunk_count: How many those are.

    """
    schemas, channels = list(schemas), list(channels)
    statistics = Statistics(
        message_count=sum(counts.values()),
        schema_count=len(schemas),
        channel_count=len(channels),
        attachment_count=0,
        metadata_count=0,
        chunk_count=chunk_count,
        message_start_time=span_ns[0],
        message_end_time=span_ns[1],
        channel_message_counts=dict(counts),
    )
    builder = RecordBuilder()
    DataEnd(data_section_crc=0).write(builder)
    data_end: bytes = builder.end()
    summary_start = start + len(data_end)
    offsets = []
    for opcode, records in ((Opcode.SCHEMA, schemas), (Opcode.CHANNEL, channels), (Opcode.STATISTICS, [statistics])):
        group_start = builder.count
        for record in records:
            record.write(builder)
        offsets.append(SummaryOffset(opcode, summary_start + group_start, builder.count - group_start))
    offsets.append(SummaryOffset(Opcode.CHUNK_INDEX, summary_start + builder.count, len(chunk_indexes)))
    builder.write(chunk_indexes)
    offsets_start = summary_start + builder.count
    for offset in offsets:
        offset.write(builder)
    summary: bytes = builder.end()
    footer_start = struct.pack("<BQQQ", Opcode.FOOTER, 20, summary_start, offsets_start)
    Footer(summary_start, offsets_start, zlib.crc32(footer_start, zlib.crc32(summary))).write(builder)
    footer: bytes = builder.end()
    return data_end + summary + footer + MAGIC
