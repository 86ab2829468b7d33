"""Access to the golden files: inputs and outputs of the original implementation (see test/golden/README.md)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

GOLDEN = Path(__file__).parent.parent / "golden"
TINY_SINGLE = GOLDEN / "checkpoint" / "tiny-single"
TINY_SHARDED = GOLDEN / "checkpoint" / "tiny-sharded"
BACKBONE = GOLDEN / "checkpoint" / "Qwen" / "Qwen3-VL-tiny"


@dataclass(frozen=True)
class GoldenCase:
    """One npz file: its arrays and its parsed ``meta``."""

    name: str
    meta: dict[str, Any]
    arrays: dict[str, np.ndarray]

    def __getitem__(self, key: str) -> np.ndarray:
        return self.arrays[key]

    def __contains__(self, key: str) -> bool:
        return key in self.arrays

    def raw(self, kind: str) -> dict[str, np.ndarray]:
        """The arrays ``raw.<kind>.<key>`` by key, for instance ``raw("video")``."""
        prefix = f"raw.{kind}."
        return {key.removeprefix(prefix): value for key, value in self.arrays.items() if key.startswith(prefix)}


def case_names(folder: str, pattern: str = "*") -> list[str]:
    """Names of the golden files of a folder, for ``pytest.mark.parametrize``."""
    names = sorted(path.stem for path in (GOLDEN / folder).glob(f"{pattern}.npz"))
    assert names, f"no golden files {pattern} in {folder}"
    return names


def load_case(folder: str, name: str) -> GoldenCase:
    """Read one golden file."""
    with np.load(GOLDEN / folder / f"{name}.npz") as archive:
        arrays = {key: archive[key] for key in archive.files}
    meta = json.loads(str(arrays.pop("meta")))
    return GoldenCase(name=name, meta=meta, arrays=arrays)
