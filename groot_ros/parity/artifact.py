"""Artifacts: what another implementation was given and what it computed, one npz file an embodiment tag."""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groot_ros.errors import ParityError
from groot_ros.model.sampler import RealTimeChunking
from groot_ros.observation import Observation
from groot_ros.processing.inputs import ModelInputs

PATTERN = "*_n1_7_*.npz"
USUAL_SEED = 42
REGENERATE = "make the artifacts anew: python -m groot_ros parity dump says how"

_INPUTS = "in::inputs."
# Text about the arrays, pickled in older files; the arrays carry their types themselves.
_UNREAD = ("meta_keys", "meta_dtypes")

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Artifact:
    """One artifact. The producers in ``groot_ros/parity/producers`` describe the keys.

    Attributes:
        path: Its file.
        tag: Embodiment tag.
        arrays: Everything in the file.

    """

    path: Path
    tag: str
    arrays: Mapping[str, Array]

    @property
    def producer(self) -> str:
        """Who computed it."""
        return self._text("producer") or "unknown producer"

    @property
    def device(self) -> str:
        """Where it was computed."""
        return self._text("device") or "unknown device"

    @property
    def versions(self) -> dict[str, str]:
        """Versions on the other side; empty where the file does not say."""
        versions: dict[str, str] = json.loads(self._text("versions") or "{}")
        return versions

    @property
    def kernels(self) -> dict[str, str | bool | int]:
        """How the network was computed on the other side; empty where the file does not say."""
        kernels: dict[str, str | bool | int] = json.loads(self._text("kernels") or "{}")
        return kernels

    @property
    def seed(self) -> int | None:
        """Seed of the noise, where the file says it."""
        return int(self.arrays["seed"]) if "seed" in self.arrays else None

    @property
    def has_raw_observations(self) -> bool:
        """Whether images, state and language are there, and not only the inputs made of them."""
        return "raw::language" in self.arrays and bool(self.group("raw::video.")) and bool(self.group("raw::state."))

    def group(self, prefix: str) -> dict[str, Array]:
        """The arrays whose names begin with a prefix, without it."""
        return {name[len(prefix) :]: array for name, array in self.arrays.items() if name.startswith(prefix)}

    def require(self, name: str) -> Array:
        """One array.

        Raises:
            ParityError: The file has none of that name.

        """
        if name not in self.arrays:
            msg = f"{self.path}: it has no {name}, so it is no parity artifact, or an unfinished one; {REGENERATE}"
            raise ParityError(msg)
        return self.arrays[name]

    def observations(self) -> list[Observation]:
        """The raw observations, one a sample."""
        video, state = self.group("raw::video."), self.group("raw::state.")
        return [
            Observation(
                images={key: frames[index] for key, frames in video.items()},
                state={key: values[index] for key, values in state.items()},
                instruction=str(text),
                stamp_ns=0,
            )
            for index, text in enumerate(self.require("raw::language"))
        ]

    def states(self) -> list[dict[str, Array]]:
        """The raw state of each sample: ``(T, d)`` by key."""
        groups = self.group("raw::state.")
        samples = min((len(values) for values in groups.values()), default=0)
        return [{key: values[index] for key, values in groups.items()} for index in range(samples)]

    def inputs(self) -> ModelInputs:
        """What the other network was given."""
        return ModelInputs(
            input_ids=self._tensor("input_ids").long(),
            attention_mask=self._tensor("attention_mask").long(),
            pixel_values=self._tensor("pixel_values"),
            image_grid_thw=self._tensor("image_grid_thw").long(),
            state=self._tensor("state"),
            embodiment_id=self._tensor("embodiment_id").long(),
        )

    def input(self, name: str) -> Array:
        """One of the other side's model inputs."""
        return self.require(f"{_INPUTS}{name}")

    def chunking(self) -> RealTimeChunking | None:
        """The case of real-time chunking, where there is one."""
        if "rtc::action_pred" not in self.arrays:
            return None
        return RealTimeChunking(
            previous=torch.from_numpy(self.require("rtc::previous")),
            action_horizon=int(self.require("rtc::action_horizon")),
            overlap_steps=int(self.require("rtc::rtc_overlap_steps")),
            frozen_steps=int(self.require("rtc::rtc_frozen_steps")),
            ramp_rate=float(self.require("rtc::rtc_ramp_rate")),
        )

    def _tensor(self, name: str) -> Tensor:
        return torch.from_numpy(self.input(name))

    def _text(self, name: str) -> str:
        return str(self.arrays[name]) if name in self.arrays else ""


def load_artifact(path: Path) -> Artifact:
    """Read an artifact.

    Raises:
        ParityError: The file is no artifact.

    """
    arrays: dict[str, Array] = {}
    try:
        with np.load(path, allow_pickle=False) as archive:
            for name in archive.files:
                if name not in _UNREAD:
                    arrays[name] = archive[name]
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        msg = f"{path}: it cannot be read as an npz file of plain arrays ({error}); {REGENERATE}"
        raise ParityError(msg) from error
    tag = str(arrays["embodiment_tag"]) if "embodiment_tag" in arrays else path.stem.partition("_n1_7_")[2]
    return Artifact(path, tag, arrays)


def find_artifacts(directory: Path, tags: tuple[str, ...] = ()) -> list[Path]:
    """The artifact files of a folder, those of some tags only where tags are given.

    Raises:
        ParityError: There is no folder, or nothing in it for these tags.

    """
    found = sorted(directory.glob(PATTERN))
    chosen = [path for path in found if not tags or path.stem.partition("_n1_7_")[2] in tags]
    if not chosen:
        there = ", ".join(path.name for path in found) or "nothing of the kind"
        asked = f" for the tags {', '.join(tags)}" if tags else ""
        msg = f"{directory}: it has no parity artifacts {PATTERN}{asked}, found {there}; {REGENERATE}"
        raise ParityError(msg)
    return chosen
