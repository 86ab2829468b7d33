"""Compare this implementation with an artifact: preprocessor, network, decoder, chunking and training loss."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groot_ros.errors import GrootError, ObservationError
from groot_ros.model.backbone import VisionLanguageFeatures
from groot_ros.model.model import GrootN17
from groot_ros.model.trace import trace_stages
from groot_ros.observation import Observation
from groot_ros.parity.artifact import REGENERATE, USUAL_SEED, Artifact
from groot_ros.parity.comparison import Comparison, compare, compare_texts
from groot_ros.parity.stages import Parting, first_network_parting, parting_of
from groot_ros.parity.tolerances import EXACT, Tolerances
from groot_ros.processing.inputs import ModelInputs
from groot_ros.processing.processor import Processor

Array = NDArray[Any]


@dataclass
class TagReport:
    """What comparing one artifact has shown.

    Attributes:
        artifact: The artifact.
        comparisons: One for each quantity, in the order of the computation.
        notes: What could not be compared and why, and what was assumed.
        parting: The first stage at which the two sides part, where something failed.

    """

    artifact: Artifact
    comparisons: list[Comparison] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    parting: Parting | None = None

    @property
    def passed(self) -> bool:
        """Whether something was compared, and all of it is within its tolerance."""
        return bool(self.comparisons) and all(comparison.passed for comparison in self.comparisons)


def check_artifact(
    artifact: Artifact, processor: Processor, network: GrootN17 | None, tolerances: Tolerances
) -> TagReport:
    """Compare everything that an artifact holds.

    Args:
        artifact: What the other implementation was given and computed.
        processor: Ours, of the same checkpoint and tag.
        network: Ours, of the same checkpoint; without it, only what comes before and after it is compared.
        tolerances: How far the two may be apart.

    Raises:
        ParityError: The artifact lacks what every artifact has.

    """
    report = TagReport(artifact)
    if artifact.has_raw_observations:
        _check_preprocessor(report, processor, tolerances)
    else:
        report.notes.append(f"preprocessor not compared: the artifact has no raw observations; {REGENERATE}")
    stages: dict[str, Array] = {}
    if network is not None:
        stages = _check_network(report, network, tolerances)
    _check_decoder(report, processor, tolerances)
    report.parting = _parting(report, stages, tolerances)
    return report


def _check_preprocessor(report: TagReport, processor: Processor, tolerances: Tolerances) -> None:
    """From the raw observations through our whole road."""
    artifact = report.artifact
    observations = artifact.observations()
    try:
        inputs = processor.prepare(observations)
        images = np.stack([processor.frames(observation) for observation in observations])
    except (ObservationError, ValueError) as error:
        report.comparisons.append(_refused("preprocessor", "images", error))
        return
    theirs = artifact.group("stage::")
    if "images" in theirs:
        report.comparisons.append(compare("preprocessor", "images", images, theirs["images"]))
    if "texts" in theirs:
        texts = [processor.prompts.chat_text(each.instruction, images.shape[1]) for each in observations]
        report.comparisons.append(
            compare_texts("preprocessor", "texts", texts, [str(text) for text in theirs["texts"]])
        )
    for name, tolerance in (
        ("image_grid_thw", EXACT),
        ("input_ids", EXACT),
        ("attention_mask", EXACT),
        ("pixel_values", tolerances.pixel_values),
        ("state", tolerances.state),
        ("embodiment_id", EXACT),
    ):
        ours = getattr(inputs, name).numpy()
        report.comparisons.append(compare("preprocessor", name, ours, artifact.input(name), tolerance))
    _check_training_targets(report, processor, observations, tolerances)


def _check_training_targets(
    report: TagReport, processor: Processor, observations: list[Observation], tolerances: Tolerances
) -> None:
    artifact = report.artifact
    actions = artifact.group("raw::action.")
    if not actions or "train::action" not in artifact.arrays:
        return
    encoded = [
        processor.encode_actions({key: values[index] for key, values in actions.items()}, observation)
        for index, observation in enumerate(observations)
    ]
    targets, masks = (np.stack([getattr(each, name) for each in encoded]) for name in ("values", "mask"))
    theirs = artifact.require("train::action"), artifact.require("train::action_mask")
    report.comparisons.append(compare("training", "train action", targets, theirs[0], tolerances.state))
    report.comparisons.append(compare("training", "train action_mask", masks, theirs[1]))


def _check_network(report: TagReport, network: GrootN17, tolerances: Tolerances) -> dict[str, Array]:
    """With the other side's inputs and noise; returns the stages of the plain run."""
    artifact = report.artifact
    theirs = artifact.require("action_pred")
    noise = _noise(report, theirs.shape, network)
    inputs = artifact.inputs().to(network.device, network.dtype)
    with torch.inference_mode(), trace_stages(network) as trace:
        features, ours = sample(network, inputs, noise)
        stages = {name: to_numpy(tensor) for name, tensor in trace.items() if f"stage::{name}" in artifact.arrays}
    report.comparisons.append(compare("model", "action_pred", ours, theirs, tolerances.action_pred))
    chunking = artifact.chunking()
    with torch.inference_mode():
        if chunking is not None:
            ours = to_numpy(
                network.sample(
                    features, state=inputs.state, embodiment_id=inputs.embodiment_id, noise=noise, rtc=chunking
                )
            )
            wanted = artifact.require("rtc::action_pred")
            report.comparisons.append(compare("chunking", "rtc action_pred", ours, wanted, tolerances.action_pred))
        if "train::loss" in artifact.arrays:
            loss = network.loss(
                features,
                state=inputs.state,
                embodiment_id=inputs.embodiment_id,
                **{
                    name: torch.from_numpy(artifact.require(f"train::{key}")).to(network.device, network.dtype)
                    for name, key in (
                        ("action", "action"),
                        ("action_mask", "action_mask"),
                        ("noise", "noise"),
                        ("time", "t"),
                    )
                },
            )
            wanted = artifact.require("train::loss")
            report.comparisons.append(compare("training", "train loss", to_numpy(loss.loss), wanted, tolerances.loss))
    return stages


def _noise(report: TagReport, shape: tuple[int, ...], network: GrootN17) -> Tensor:
    """The noise that the other side began with: recorded, or drawn again from the seed."""
    artifact = report.artifact
    seed = artifact.seed
    if seed is None:
        report.notes.append(f"the artifact names no seed: {USUAL_SEED} is taken")
        seed = USUAL_SEED
    device = torch.device("cuda" if artifact.device.startswith("cuda") and torch.cuda.is_available() else "cpu")
    torch.manual_seed(seed)
    drawn = torch.randn(shape, device=device)
    if "initial_noise" not in artifact.arrays:
        return drawn.to(network.device)
    recorded = artifact.arrays["initial_noise"]
    if device.type == artifact.device.partition(":")[0]:
        report.comparisons.append(compare("model", "initial_noise", to_numpy(drawn), recorded))
    else:
        report.notes.append(f"the seed was set on {artifact.device}, which is not here: its recorded noise is taken")
    return torch.from_numpy(recorded).to(network.device)


def _check_decoder(report: TagReport, processor: Processor, tolerances: Tolerances) -> None:
    """The other side's normalised actions, decoded by us."""
    artifact = report.artifact
    theirs = artifact.group("decoded::")
    if not theirs:
        report.notes.append(f"decoder not compared: the artifact has no decoded actions; {REGENERATE}")
        return
    try:
        ours = processor.actions.decode(artifact.require("action_pred"), artifact.states())
    except GrootError as error:
        report.comparisons.append(_refused("decoder", "decoded", error))
        return
    for key, wanted in theirs.items():
        found = ours.get(key, np.empty(0))
        report.comparisons.append(compare("decoder", f"decoded {key}", found, wanted, tolerances.decoded))


def _parting(report: TagReport, stages: dict[str, Array], tolerances: Tolerances) -> Parting | None:
    """The first failed quantity; for the network, the first of its stages that differs."""
    failed = [comparison for comparison in report.comparisons if not comparison.passed]
    if not failed:
        return None
    first = failed[0]
    if first.part in ("model", "chunking") or first.quantity == "train loss":
        inside = first_network_parting(stages, report.artifact.group("stage::"), tolerances.stage)
        if inside is not None and first.quantity != "initial_noise":
            return inside
    return parting_of(first)


def _refused(part: str, quantity: str, error: Exception) -> Comparison:
    return Comparison(part, quantity, (), False, np.nan, np.nan, (), str(EXACT), f"refused here: {error}")


def sample(network: GrootN17, inputs: ModelInputs, noise: Tensor) -> tuple[VisionLanguageFeatures, Array]:
    """The whole network once: the backbone's features, and the normalised actions."""
    features = network.encode(
        input_ids=inputs.input_ids,
        attention_mask=inputs.attention_mask,
        pixel_values=inputs.pixel_values,
        image_grid_thw=inputs.image_grid_thw,
    )
    actions = network.sample(features, state=inputs.state, embodiment_id=inputs.embodiment_id, noise=noise)
    return features, to_numpy(actions)


def to_numpy(tensor: Tensor) -> Array:
    """Values of a tensor, whole numbers as they are and all others as float32."""
    array: Array = (tensor.float() if tensor.is_floating_point() else tensor).detach().cpu().numpy()
    return array
