"""Golden cases as observations, and how near the decoded actions of the whole road must come."""

from __future__ import annotations

import numpy as np

from groot_ros.checkpoint import Embodiment
from groot_ros.observation import Observation
from support.golden import GoldenCase


def observation(case: GoldenCase, sample: int = 0, stamp_ns: int = 0) -> Observation:
    """One sample of a case as a robot would see it."""
    return Observation(
        images={key: frames[sample] for key, frames in case.raw("video").items()},
        state={key: values[sample] for key, values in case.raw("state").items()},
        instruction=str(case["raw.language"][sample]),
        stamp_ns=stamp_ns,
    )


def unpadded_samples(case: GoldenCase) -> list[int]:
    """The samples that saw no padding in their batch, so that alone they give the same."""
    return [sample for sample, mask in enumerate(case["in.attention_mask"]) if mask.all()]


def tolerance(case: GoldenCase, embodiment: Embodiment, key: str) -> dict[str, float]:
    """The prediction's own tolerance through the scale of decoding (README of the golden files)."""
    predicted = max(3e-4, 5 * case.meta["float32_vs_float64_max_action_difference"])
    statistics = embodiment.statistics
    source = statistics.relative_action.get(key) or statistics.action[key]
    half_range = float(np.max((source.max - source.min) / 2, initial=0.0))
    spread = float(np.max(source.std, initial=0.0))
    return {"atol": 1e-5 + predicted * max(half_range, spread, 1.0), "rtol": 1e-3}
