"""The tensors of a checkpoint: safetensors files, read header first, without torch until a tensor is asked for."""

from __future__ import annotations

import json
import math
import mmap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from groot_ros.checkpoint.fields import Fields, read_json
from groot_ros.errors import CheckpointError

if TYPE_CHECKING:
    import torch

SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"
LEROBOT_PREFIX = "_groot_model."

_LARGEST_HEADER = 100_000_000
_TORCH_TYPES = {
    "BOOL": "bool",
    **{
        f"{letter}{bits}": f"{word}{bits}" for letter, word in (("U", "uint"), ("I", "int")) for bits in (8, 16, 32, 64)
    },
    "F8_E5M2": "float8_e5m2",
    "F8_E4M3": "float8_e4m3fn",
    "BF16": "bfloat16",
    **{f"F{bits}": f"float{bits}" for bits in (16, 32, 64)},
}
_BITS = {
    **dict.fromkeys(("BOOL", "U8", "I8", "F8_E5M2", "F8_E4M3"), 8),
    **dict.fromkeys(("F16", "BF16", "I16", "U16"), 16),
    **dict.fromkeys(("F32", "I32", "U32"), 32),
    **dict.fromkeys(("F64", "I64", "U64"), 64),
}
# The language model's output layer is tied to its input embeddings and never used. Some files hold both, some the
# embeddings alone, and some, whose writer keeps one name of a shared tensor, the output layer alone.
_OUTPUT_LAYER = "backbone.model.lm_head.weight"
_EMBEDDINGS = "backbone.model.model.language_model.embed_tokens.weight"
_AGAIN = "the file is incomplete or damaged, copy or download it again"


@dataclass(frozen=True)
class TensorInfo:
    """Where a tensor lies and what it is.

    Attributes:
        file: The safetensors file.
        stored_name: Its name in the file.
        shape: Its dimensions.
        dtype: Its type as safetensors spells it, for instance ``BF16``.
        bytes: Its size in the file.
        offset: Where it begins in the file.

    """

    file: Path
    stored_name: str
    shape: tuple[int, ...]
    dtype: str
    bytes: int
    offset: int


class WeightFiles:
    """All tensors of a checkpoint under the names of the network's parameters.

    The prefix that LeRobot puts before each name is removed, and the language model's unused output layer is left out.
    """

    def __init__(self, directory: Path) -> None:
        """Read the headers, not the data.

        Raises:
            CheckpointError: There are no safetensors files, one is missing or damaged, or they do not fit the index.

        """
        self._tensors: dict[str, TensorInfo] = {}
        for info in _find(directory):
            name = info.stored_name.removeprefix(LEROBOT_PREFIX)
            if name in self._tensors:
                msg = f"{info.file}: the tensor {name} is there twice: {_AGAIN}."
                raise CheckpointError(msg)
            self._tensors[name] = info
        output_layer = self._tensors.pop(_OUTPUT_LAYER, None)
        if output_layer is not None:
            self._tensors.setdefault(_EMBEDDINGS, output_layer)

    def __getitem__(self, name: str) -> TensorInfo:
        """Return where a tensor lies and what it is."""
        return self._tensors[name]

    def names(self) -> dict[str, tuple[int, ...]]:
        """Return every tensor's name and shape."""
        return {name: info.shape for name, info in self._tensors.items()}

    def tensors(self, prefix: str = "", rows: Mapping[str, int] | None = None) -> Iterator[tuple[str, torch.Tensor]]:
        """Map the tensors whose names begin with ``prefix`` into memory, file by file.

        Nothing is copied, and what is written into a tensor never reaches the file. A tensor shows what the file holds,
        so whoever keeps it for long copies it: the file may change.

        Args:
            prefix: Beginning of the names, without LeRobot's prefix.
            rows: Tensors of which one row is wanted, by name: the rest is not read, and the first dimension is 1.

        Yields:
            The name without LeRobot's prefix, and the tensor on the CPU in the type of the file.

        Raises:
            CheckpointError: A file is damaged or has been removed, or does not have the row.

        """
        by_file: dict[Path, list[tuple[str, TensorInfo]]] = {}
        for name, info in self._tensors.items():
            if name.startswith(prefix):
                by_file.setdefault(info.file, []).append((name, info))
        for file, tensors in by_file.items():
            try:
                with file.open("rb", buffering=0) as stream:
                    for name, info in sorted(tensors, key=lambda entry: entry[1].offset):
                        yield name, _map_tensor(stream, info, (rows or {}).get(name))
            except OSError as error:  # noqa: PERF203
                msg = f"{file} cannot be read ({error}): {_AGAIN}."
                raise CheckpointError(msg) from error


def _map_tensor(stream: FileIO, info: TensorInfo, row: int | None) -> torch.Tensor:
    import torch

    shape, offset, size = info.shape, info.offset, info.bytes
    if row is not None:
        if not shape or not 0 <= row < shape[0]:
            msg = f"{info.file}: the tensor {info.stored_name} of shape {shape} has no row {row}."
            raise CheckpointError(msg)
        size //= shape[0]
        shape, offset = (1, *shape[1:]), offset + row * size
    dtype = getattr(torch, _TORCH_TYPES[info.dtype])
    if not size:
        return torch.empty(shape, dtype=dtype)
    page = offset % mmap.ALLOCATIONGRANULARITY
    try:
        # A mapping for each tensor: it goes when the tensor goes.
        mapped = mmap.mmap(stream.fileno(), page + size, access=mmap.ACCESS_COPY, offset=offset - page)
    except ValueError:
        msg = f"{info.file} cannot be read (it ends inside the tensor {info.stored_name}): {_AGAIN}."
        raise CheckpointError(msg) from None
    mapped.madvise(mmap.MADV_WILLNEED)
    return torch.frombuffer(mapped, dtype=dtype, count=math.prod(shape), offset=page).view(shape)


def read_header(path: Path) -> dict[str, TensorInfo]:
    """Read and check the header of a safetensors file.

    Returns:
        Stored name to description.

    Raises:
        CheckpointError: The file is missing, not safetensors, truncated, or its header contradicts itself.

    """
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if size < 8 or length > min(size - 8, _LARGEST_HEADER):
                msg = f"{path} is not a whole safetensors file: {_AGAIN}."
                raise CheckpointError(msg)
            text = file.read(length)
    except FileNotFoundError:
        msg = f"{path} is missing: copy the whole checkpoint folder, or download it again."
        raise CheckpointError(msg) from None
    except OSError as error:
        msg = f"{path} cannot be read ({error}): copy or download it again."
        raise CheckpointError(msg) from error
    try:
        header = json.loads(text.decode("utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        msg = f"{path} has a damaged header ({error}): {_AGAIN}."
        raise CheckpointError(msg) from error
    if not isinstance(header, dict):
        msg = f"{path} has a header that is no JSON object: {_AGAIN}."
        raise CheckpointError(msg)
    header.pop("__metadata__", None)
    tensors = {name: _tensor_info(path, name, entry, 8 + length) for name, entry in header.items()}
    _check_offsets(path, header, size - 8 - length)
    return tensors


def _tensor_info(path: Path, name: str, entry: Any, data_start: int) -> TensorInfo:  # noqa: ANN401
    try:
        shape = tuple(entry["shape"])
        dtype = entry["dtype"]
        begin, end = entry["data_offsets"]
        well_formed = all(type(number) is int and number >= 0 for number in (*shape, begin, end)) and dtype in _BITS
    except (KeyError, TypeError, ValueError):
        well_formed = False
    if not well_formed or end - begin != math.prod(shape) * _BITS[dtype] // 8:
        msg = f"{path} has a damaged header (tensor {name}): {_AGAIN}."
        raise CheckpointError(msg)
    return TensorInfo(path, name, shape, dtype, end - begin, data_start + begin)


def _check_offsets(path: Path, header: dict[str, Any], available: int) -> None:
    """Require that the tensors lie one behind the other and fill the file."""
    position = 0
    for begin, end in sorted(entry["data_offsets"] for entry in header.values()):
        if begin != position:
            msg = f"{path} has a damaged header (a gap or an overlap at byte {position}): {_AGAIN}."
            raise CheckpointError(msg)
        position = end
    if position != available:
        msg = f"{path} holds {available} bytes of tensors, but its header says {position}: {_AGAIN}."
        raise CheckpointError(msg)


def _find(directory: Path) -> list[TensorInfo]:
    """Collect the tensors of a directory: one file, or the shards that the index names."""
    if (directory / SINGLE).is_file():
        return list(read_header(directory / SINGLE).values())
    if (directory / INDEX).is_file():
        return _find_shards(directory)
    unsafe = sorted(path.name for ending in ("bin", "pt", "pth", "ckpt") for path in directory.glob(f"*.{ending}"))
    found = f"only {', '.join(unsafe)}, which can run code when it is read" if unsafe else "none"
    msg = (
        f"{directory}: no weights: {SINGLE}, or {INDEX} with its files, must be there, but there are {found}. "
        "Only safetensors files are read."
    )
    raise CheckpointError(msg)


def _find_shards(directory: Path) -> list[TensorInfo]:
    path = directory / INDEX
    fields = Fields(read_json(path), str(path)).inner("weight_map")
    places = {name: fields.text(name) for name in fields.keys()}  # noqa: SIM118
    for file in sorted(set(places.values())):
        if Path(file).name != file or not file.endswith(".safetensors"):
            msg = f"{path}: weight_map names {file!r}, but only safetensors files in the same folder are read."
            raise CheckpointError(msg)
    tensors = {file: read_header(directory / file) for file in sorted(set(places.values()))}
    missing = [name for name, file in places.items() if name not in tensors[file]]
    if missing:
        msg = f"{path}: {len(missing)} tensors are not in the file that it names, first {missing[0]}: {_AGAIN}."
        raise CheckpointError(msg)
    surplus = [name for file, header in tensors.items() for name in header if places.get(name) != file]
    if surplus:
        msg = f"{path}: {len(surplus)} tensors are in the files but not in the index, first {surplus[0]}: {_AGAIN}."
        raise CheckpointError(msg)
    return [info for header in tensors.values() for info in header.values()]
