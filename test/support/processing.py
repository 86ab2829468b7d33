"""Processor configurations of the golden checkpoints, with the changes that a golden case names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from groot_ros.checkpoint import CheckpointOrigin, ProcessorConfig, parse_processor_config
from support.golden import case_names, load_case

IMAGE_CASES = [
    ("preprocess", name)
    for name in case_names("preprocess", "[abc]*")
    if "expect_error" not in load_case("preprocess", name).meta
] + [("model", name) for name in case_names("model", "*_b[12]") if not name.startswith("model_only")]


def processor_config(
    directory: Path, changes: dict[str, Any], origin: CheckpointOrigin = CheckpointOrigin.NVIDIA
) -> ProcessorConfig:
    """``processor_config.json`` of a directory, its ``processor_kwargs`` changed as a golden case says."""
    path = directory / "processor_config.json"
    content = json.loads(path.read_text())
    content["processor_kwargs"].update(changes)
    return parse_processor_config(content, str(path), origin=origin)
