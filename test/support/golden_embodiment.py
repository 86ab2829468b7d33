"""The embodiment of a golden case: the tiny checkpoint's, with what the case's ``meta`` says on top."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from groot_ros.checkpoint.processor_config import EmbodimentModalities, ProcessorConfig, parse_processor_config
from groot_ros.checkpoint.statistics import TagStatistics, parse_statistics
from groot_ros.processing.action import ActionCodec
from groot_ros.processing.state import StateEncoder
from support.golden import TINY_SINGLE, GoldenCase


@dataclass(frozen=True)
class GoldenEmbodiment:
    """What processing is made of."""

    modalities: EmbodimentModalities
    statistics: TagStatistics
    config: ProcessorConfig
    tag: str

    def state_encoder(self) -> StateEncoder:
        return StateEncoder(self.modalities, self.statistics, self.config, self.tag)

    def action_codec(self) -> ActionCodec:
        return ActionCodec(self.modalities, self.statistics, self.config, self.tag)


def embodiment_of(meta: dict[str, Any]) -> GoldenEmbodiment:
    """Apply processor_kwargs_overrides, modality_overrides and statistics of a case to the tiny checkpoint."""
    processor = copy.deepcopy(json.loads((TINY_SINGLE / "processor_config.json").read_text()))
    statistics = json.loads((TINY_SINGLE / "statistics.json").read_text())
    tag = meta["tag"]
    processor["processor_kwargs"].update(meta.get("processor_kwargs_overrides", {}))
    for modality, fields in meta.get("modality_overrides", {}).items():
        processor["processor_kwargs"]["modality_configs"][tag][modality].update(fields)
    if meta.get("statistics"):
        statistics[tag] = meta["statistics"]
    config = parse_processor_config(processor, "processor_config.json")
    return GoldenEmbodiment(
        config.modality_configs[tag], parse_statistics(statistics, "statistics.json")[tag], config, tag
    )


def samples(groups: dict[str, np.ndarray]) -> list[dict[str, np.ndarray]]:
    """Split values ``(B, T, d)`` by key into one dictionary a sample."""
    batch = len(next(iter(groups.values())))
    return [{key: values[index] for key, values in groups.items()} for index in range(batch)]


def stored(case: GoldenCase, kind: str) -> dict[str, np.ndarray]:
    """The arrays ``<kind>.<key>`` of a case by key, for instance ``stored(case, "decoded")``."""
    prefix = f"{kind}."
    return {key.removeprefix(prefix): value for key, value in case.arrays.items() if key.startswith(prefix)}
