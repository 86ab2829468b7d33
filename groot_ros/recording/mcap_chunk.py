"""One chunk of an MCAP file in the making. Messages are kept as they came: nobody copies a large one."""

from __future__ import annotations

import struct
import zlib

from mcap.opcode import Opcode

RECORD_HEAD_BYTES = 9
MESSAGE_HEAD = struct.Struct("<BQHIQQ")
"""Opcode, bytes that follow; channel, sequence, log time, publish time."""
CHUNK_HEAD = struct.Struct("<BQQQQIIQ")
"""Opcode, bytes that follow; first and last log time, size, checksum, length of the compression's name, size."""
MESSAGE_INDEX_HEAD = struct.Struct("<BQHI")
"""Opcode, bytes that follow; channel, bytes of its entries."""
SMALL_BYTES = 1 << 14
"""Smaller messages are copied into one piece: many tiny pieces cost more."""


class ChunkBuilder:
    """Collects messages until `end`, which is called once."""

    def __init__(self) -> None:
        self.size = 0
        """Bytes of its messages and their heads."""
        self._pieces: list[bytes | bytearray] = []
        self._small = bytearray()
        self._entries: dict[int, list[int]] = {}

    def add(self, channel: int, received_ns: int, data: bytes) -> None:
        """Take a message."""
        self._entries.setdefault(channel, []).extend((received_ns, self.size))
        length = MESSAGE_HEAD.size - RECORD_HEAD_BYTES + len(data)
        self._small += MESSAGE_HEAD.pack(Opcode.MESSAGE, length, channel, 0, received_ns, received_ns)
        self.size += RECORD_HEAD_BYTES + length
        if len(data) < SMALL_BYTES:
            self._small += data
        else:
            self._pieces += (self._small, data)
            self._small = bytearray()

    def end(self, offset: int) -> tuple[list[bytes | bytearray], bytes]:
        """Make the chunk.

        Args:
            offset: Where in the file it will begin.

        Returns:
            Its pieces, the indexes of its messages behind them; and its entry for the index of the file.

        """
        times_ns = [time_ns for entries in self._entries.values() for time_ns in entries[::2]]
        span = min(times_ns), max(times_ns)
        body = [*self._pieces, self._small]
        checksum = 0
        for piece in body:
            checksum = zlib.crc32(piece, checksum)
        length = CHUNK_HEAD.size + self.size
        head = CHUNK_HEAD.pack(Opcode.CHUNK, length - RECORD_HEAD_BYTES, *span, self.size, checksum, 0, self.size)
        indexes, places = bytearray(), bytearray()
        for channel, entries in self._entries.items():
            places += struct.pack("<HQ", channel, offset + length + len(indexes))
            entry_bytes = 8 * len(entries)
            indexes += MESSAGE_INDEX_HEAD.pack(Opcode.MESSAGE_INDEX, 6 + entry_bytes, channel, entry_bytes)
            indexes += struct.pack(f"<{len(entries)}Q", *entries)
        entry = struct.pack("<4QI", *span, offset, length, len(places)) + places
        entry += struct.pack("<QIQQ", len(indexes), 0, self.size, self.size)
        return [head, *body, indexes], struct.pack("<BQ", Opcode.CHUNK_INDEX, len(entry)) + entry
