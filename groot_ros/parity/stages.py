"""Where two implementations part: the first stage, in the order of the computation, whose values differ."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groot_ros.parity.comparison import Comparison

Array = NDArray[Any]


@dataclass(frozen=True)
class Parting:
    """The first stage at which two implementations part.

    Attributes:
        stage: Its name.
        meaning: What happens there, in words.
        difference: Largest difference, relative to the largest value of the stage; None where it was compared by a
            tolerance of its own.

    """

    stage: str
    meaning: str
    difference: float | None = None

    def __str__(self) -> str:
        """As it stands in the report."""
        amount = "" if self.difference is None else f", {self.difference:.1e} of its largest value"
        return f"{self.stage}: {self.meaning}{amount}"


# The network's stages in the order of the computation; {0} and {1} are the numbers in the name.
_NETWORK = (
    (r"vision\.deepstack\.(\d+)", "the vision tower up to the features that layer {0} of the language model is given"),
    (r"vision\.features", "the vision tower"),
    (r"language\.layer\.(\d+)", "decoder layer {0}, or what it is given: embeddings, mask, deepstack features"),
    (r"language\.features", "which features leave the language model: those before its final norm are meant"),
    (r"vlln", "the norm over the vision-language features"),
    (r"vl_self_attention", "the self-attention over the vision-language features"),
    (r"state_features", "the state encoder: the weights of the embodiment"),
    (r"denoising\.(\d+)\.actions", "the noise, or the Euler step that leads to denoising step {0}"),
    (r"denoising\.(\d+)\.block\.(\d+)", "block {1} of the diffusion transformer in denoising step {0}"),
    (r"denoising\.(\d+)\.transformer", "the output layer of the diffusion transformer in denoising step {0}"),
    (r"denoising\.(\d+)\.velocity", "the action decoder in denoising step {0}"),
)

_QUANTITIES = {
    "images": "geometry of the images: resize, crop, order of cameras and frames",
    "texts": "the words of the prompt and the chat template",
    "image_grid_thw": "size of the images in patches",
    "input_ids": "tokens of the prompt, image placeholders, side of the padding",
    "attention_mask": "side of the padding",
    "pixel_values": "resize to whole patches, normalisation, order of the patches",
    "state": "normalisation of the state",
    "embodiment_id": "number of the embodiment",
    "initial_noise": "the random numbers that a seed gives on this machine",
    "action_pred": "the network",
    "rtc action_pred": "real-time chunking: prefix, frozen rows, ramp",
    "train action": "normalisation of training targets",
    "train action_mask": "which rows and dimensions count in training",
    "train loss": "the training loss",
}


def first_network_parting(ours: Mapping[str, Array], theirs: Mapping[str, Array], tolerance: float) -> Parting | None:
    """The first stage of the network that both sides recorded and that differs.

    Args:
        ours: Values by stage.
        theirs: Values by stage.
        tolerance: Largest allowed difference, relative to the largest value of a stage.

    """
    for stage in sorted(ours.keys() & theirs.keys(), key=_place):
        difference = _relative_difference(ours[stage], theirs[stage])
        if difference > tolerance:
            return Parting(stage, _meaning(stage), difference)
    return None


def parting_of(comparison: Comparison) -> Parting:
    """What a failed comparison is about."""
    quantity = comparison.quantity
    if comparison.part == "decoder":
        meaning = "statistics, clipping, the reference state or the composition with it"
    else:
        meaning = _QUANTITIES.get(quantity, comparison.part)
    return Parting(quantity, meaning)


def _relative_difference(ours: Array, theirs: Array) -> float:
    if ours.shape != theirs.shape:
        return float("inf")
    if theirs.size == 0:
        return 0.0
    difference = float(np.abs(ours.astype(np.float64) - theirs.astype(np.float64)).max())
    return difference / max(float(np.abs(theirs).max()), 1e-6)


def _place(stage: str) -> tuple[int, ...]:
    """Sort key: the order of the computation."""
    for order, (pattern, _) in enumerate(_NETWORK):
        match = re.fullmatch(pattern, stage)
        if match is None:
            continue
        numbers = [int(number) for number in match.groups()]
        if stage.startswith("denoising."):
            return (len(_NETWORK), numbers[0], order, *numbers[1:])
        return (order, *numbers)
    return (2 * len(_NETWORK),)


def _meaning(stage: str) -> str:
    for pattern, meaning in _NETWORK:
        match = re.fullmatch(pattern, stage)
        if match is not None:
            return meaning.format(*match.groups())
    return "a stage that this version does not know"
