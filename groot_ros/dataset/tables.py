"""Rows of an episode as a parquet table, and back as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from groot_ros.dataset.files import whole_file
from groot_ros.errors import DatasetError


def is_number(feature: Mapping[str, Any]) -> bool:
    """Return whether a feature of ``info.json`` is a column of numbers (no text, image or video)."""
    return str(feature["dtype"]).startswith(("float", "int", "uint", "bool"))


def rows_table(columns: Mapping[str, NDArray[Any]]) -> pa.Table:
    """Return a table of columns ``(N,)``, as plain scalars, and ``(N, D)``, as lists of fixed size."""
    arrays = {}
    for name, values in columns.items():
        if values.ndim == 1:
            arrays[name] = pa.array(values)
        else:
            flat = pa.array(np.ascontiguousarray(values).reshape(-1))
            arrays[name] = pa.FixedSizeListArray.from_arrays(flat, values.shape[1])
    return pa.table(arrays)


def write_table(path: Path, table: pa.Table) -> None:
    """Write a table the way LeRobot does: snappy, dictionaries, one row group; whole or not at all."""
    with whole_file(path) as temporary:
        pq.write_table(table, temporary, compression="snappy", use_dictionary=True, row_group_size=max(1, len(table)))


def read_table(path: Path, columns: list[str] | None = None) -> pa.Table:
    """Return a parquet file as a table.

    Raises:
        DatasetError: Missing, damaged, or without one of the columns.

    """
    try:
        return pq.read_table(path, columns=columns)
    except FileNotFoundError as error:
        msg = f"{path} is missing"
        raise DatasetError(msg) from error
    except (OSError, pa.ArrowException) as error:
        msg = f"{path} is not a parquet file that can be read: {error}"
        raise DatasetError(msg) from error


def column_array(table: pa.Table, name: str, path: Path) -> NDArray[Any]:
    """Return a column as ``(N,)`` or ``(N, D)``, whether its lists are of fixed or of variable size.

    Raises:
        DatasetError: No such column, a missing value, or rows of different lengths.

    """
    if name not in table.column_names:
        msg = f"{path} has no column {name!r}; it has {', '.join(table.column_names)}"
        raise DatasetError(msg)
    column = table.column(name).combine_chunks()
    if column.null_count:
        msg = f"{path}: column {name!r} has {column.null_count} missing values"
        raise DatasetError(msg)
    if not (pa.types.is_list(column.type) or pa.types.is_fixed_size_list(column.type)):
        return np.asarray(column.to_numpy(zero_copy_only=False))
    values = column.flatten()
    if values.null_count or len(values) % max(1, len(column)):
        msg = f"{path}: the rows of column {name!r} have different lengths or missing values"
        raise DatasetError(msg)
    width = len(values) // max(1, len(column))
    if pa.types.is_list(column.type) and not (np.diff(column.offsets.to_numpy()) == width).all():
        msg = f"{path}: the rows of column {name!r} have different lengths"
        raise DatasetError(msg)
    return np.asarray(values.to_numpy(zero_copy_only=False)).reshape(len(column), width)
