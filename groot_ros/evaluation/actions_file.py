"""``actions.parquet``: every predicted row, what was sent at each row's time, and what was recorded then."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from typing_extensions import Self

from groot_ros.evaluation.chunk_block import ChunkBlock
from groot_ros.evaluation.columns import ActionColumns
from groot_ros.evaluation.logbook import Logbook

Array = NDArray[np.float64]
ROWS_A_BLOCK = 4_000
PREDICTED, EXECUTED = "predicted", "executed"


class ActionsFile:
    """Writes the rows as they come; its memory does not grow.

    Columns: ``episode``, ``source`` (predicted or executed), ``observation_stamp_ns``, ``arrived_ns``, ``accepted`` and
    ``row`` (of predicted rows), ``stamp_ns``, then ``action.<group>/<dimension>`` and ``recorded.<group>/<dimension>``,
    float64 in the policy's units, null where nothing is known.

    Args:
        path: The file.
        columns: The action dimensions.

    """

    def __init__(self, path: Path, columns: ActionColumns) -> None:
        self._columns = columns
        numbers = [f"{kind}.{name}" for kind in ("action", "recorded") for name in columns.names]
        self._schema = pa.schema(
            [
                ("episode", pa.string()),
                ("source", pa.string()),
                ("observation_stamp_ns", pa.int64()),
                ("arrived_ns", pa.int64()),
                ("accepted", pa.bool_()),
                ("row", pa.int32()),
                ("stamp_ns", pa.int64()),
                *((name, pa.float64()) for name in numbers),
            ]
        )
        self._writer = pq.ParquetWriter(path, self._schema, compression="zstd")
        self._waiting: list[pa.RecordBatch] = []
        self._rows = 0

    def __enter__(self) -> Self:
        """Return the file itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Write what is left, and close."""
        self._flush()
        self._writer.close()

    def add_chunks(self, episode: str, block: ChunkBlock) -> None:
        """Add the rows of some predictions."""
        chunks, horizon, width = block.predicted.shape
        rows = chunks * horizon
        head = self._head(episode, PREDICTED, block.times_ns.reshape(rows))
        head["observation_stamp_ns"] = pa.array(np.repeat(block.stamps_ns, horizon))
        head["arrived_ns"] = pa.array(np.repeat(block.arrivals_ns, horizon))
        head["accepted"] = pa.array(np.repeat(block.accepted, horizon))
        head["row"] = pa.array(np.tile(np.arange(horizon, dtype=np.int32), chunks))
        self._add(head, block.predicted.reshape(rows, width), block.recorded.reshape(rows, width))

    def add_executed(self, episode: str, log: Logbook) -> None:
        """Add what was sent in an episode."""
        stamps_ns, executed, recorded = log.executed.stamps_ns, log.executed.rows, log.demonstration.rows
        for start in range(0, len(stamps_ns), ROWS_A_BLOCK):
            part = slice(start, start + ROWS_A_BLOCK)
            self._add(self._head(episode, EXECUTED, stamps_ns[part]), executed[part], recorded[part])

    @staticmethod
    def _head(episode: str, source: str, stamps_ns: NDArray[np.int64]) -> dict[str, pa.Array]:
        """The columns that every row has, beside its numbers."""
        rows = len(stamps_ns)
        names = {"episode": pa.repeat(episode, rows), "source": pa.repeat(source, rows)}
        return {**names, "stamp_ns": pa.array(stamps_ns)}

    def _add(self, values: dict[str, pa.Array], actions: Array, recorded: Array) -> None:
        rows = len(actions)
        for kind, numbers in (("action", actions), ("recorded", recorded)):
            for column, name in enumerate(self._columns.names):
                values[f"{kind}.{name}"] = pa.array(np.ascontiguousarray(numbers[:, column]), from_pandas=True)
        arrays = [values.get(field.name, pa.nulls(rows, field.type)) for field in self._schema]
        self._waiting.append(pa.RecordBatch.from_arrays(arrays, schema=self._schema))
        self._rows += rows
        if self._rows >= ROWS_A_BLOCK:
            self._flush()

    def _flush(self) -> None:
        if self._waiting:
            self._writer.write_table(pa.Table.from_batches(self._waiting).combine_chunks())
        self._waiting, self._rows = [], 0
