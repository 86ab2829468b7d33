"""``actions.parquet``: every predicted row, what was sent at each row's time, and what was recorded then."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from typing_extensions import Self

from groot_ros.evaluation.columns import ActionColumns
from groot_ros.evaluation.logbook import Logbook
from groot_ros.evaluation.pilot import Prediction
from groot_ros.evaluation.timing import row_times_ns

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

    def add_chunk(self, episode: str, prediction: Prediction, predicted: Array, recorded: Array) -> None:
        """Add the rows ``(H, width)`` of a prediction."""
        rows = len(predicted)
        self._add(
            row_times_ns(prediction.chunk),
            predicted,
            recorded,
            {
                "episode": pa.array([episode] * rows),
                "source": pa.array([PREDICTED] * rows),
                "observation_stamp_ns": pa.array([prediction.chunk.stamp_ns] * rows, pa.int64()),
                "arrived_ns": pa.array([prediction.arrived_ns] * rows, pa.int64()),
                "accepted": pa.array([not prediction.refusal] * rows, pa.bool_()),
                "row": pa.array(np.arange(rows), pa.int32()),
            },
        )

    def add_executed(self, episode: str, log: Logbook) -> None:
        """Add what was sent in an episode."""
        for start in range(0, len(log.executed), ROWS_A_BLOCK):
            part = slice(start, start + ROWS_A_BLOCK)
            stamps = log.executed.stamps_ns[part]
            names = {"episode": pa.array([episode] * len(stamps)), "source": pa.array([EXECUTED] * len(stamps))}
            self._add(stamps, log.executed.rows[part], log.demonstration.rows[part], names)

    def _add(self, stamps_ns: NDArray[np.int64], actions: Array, recorded: Array, values: dict[str, pa.Array]) -> None:
        rows = len(actions)
        values["stamp_ns"] = pa.array(stamps_ns, pa.int64())
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
