"""Artifacts for tests: those that the original wrote, those made of golden files, and our own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from groot_ros.observation import Observation
from groot_ros.parity.artifact import Artifact
from support.golden import GoldenCase

ORIGINAL = Path(__file__).parent.parent / "parity" / "artifacts"


def artifact_of(tag: str, arrays: dict[str, Any]) -> Artifact:
    """An artifact that lies in no file."""
    return Artifact(Path(f"original_n1_7_{tag}.npz"), tag, arrays)


def decoding_of(case: GoldenCase) -> Artifact:
    """A golden decoding case as an artifact: the original's normalised and physical actions."""
    prefix = "decoded."
    return artifact_of(
        case.meta["tag"],
        {
            "action_pred": case["in.action_norm"],
            **{f"raw::state.{key}": values for key, values in case.raw("state").items()},
            **{f"decoded::{key[len(prefix) :]}": case[key] for key in case.arrays if key.startswith(prefix)},
        },
    )


def observations_of(case: GoldenCase) -> list[Observation]:
    """The raw observations of a golden case."""
    return [
        Observation(
            images={key: frames[sample] for key, frames in case.raw("video").items()},
            state={key: values[sample] for key, values in case.raw("state").items()},
            instruction=str(text),
            stamp_ns=0,
        )
        for sample, text in enumerate(case["raw.language"])
    ]


def raw_arrays_of(case: GoldenCase) -> dict[str, np.ndarray]:
    """The raw observations and actions of a golden case under an artifact's names."""
    raw = {
        f"raw::{kind}.{key}": values for kind in ("video", "state", "action") for key, values in case.raw(kind).items()
    }
    return {"embodiment_tag": np.array(case.meta["tag"]), "raw::language": case["raw.language"], **raw}
