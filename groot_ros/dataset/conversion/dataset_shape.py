"""The shape of a dataset: what the contract says, and the sizes of the pictures, which only the bags know."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from groot_ros.alignment import NotReady
from groot_ros.contract import Contract
from groot_ros.contract.poses import RotationFormat
from groot_ros.contract.sources import PoseSource, TransformSource
from groot_ros.dataset.bag import Bag
from groot_ros.dataset.conversion.action_sources import ActionSources
from groot_ros.dataset.conversion.cuts import Cut
from groot_ros.dataset.conversion.plan import cut_span
from groot_ros.dataset.conversion.playback import Playback
from groot_ros.dataset.layout import INFO_FILE, read_info
from groot_ros.dataset.modality import IMAGE_PREFIX
from groot_ros.dataset.spec import DatasetSpec, RelativeAction
from groot_ros.dataset.video_writer import VideoEncoding
from groot_ros.errors import DatasetError
from groot_ros.numerics.relative import RelativeKind

Sizes = dict[str, tuple[int, int]]
"""Camera to ``(height, width)``."""

_KINDS = {
    RotationFormat.ROT6D_ROWS: RelativeKind.XYZ_ROT6D,
    RotationFormat.AXIS_ANGLE: RelativeKind.XYZ_ROTVEC,
}


def dataset_spec(contract: Contract, sizes: Sizes, encoding: VideoEncoding, notes: dict[str, Any]) -> DatasetSpec:
    """What every episode holds.

    Raises:
        DatasetError: The contract's rate is no whole number, an action has no source, or a picture cannot be stored.

    """
    if contract.rate_hz != int(contract.rate_hz):
        msg = f"rate_hz is {contract.rate_hz:g}, but a LeRobot dataset needs a whole number of rows a second"
        raise DatasetError(msg)
    state = {group: tuple(contract.state_dimensions(group)) for group in contract.state}
    return DatasetSpec(
        fps=int(contract.rate_hz),
        robot_type=contract.robot,
        state={group: names for group, names in state.items() if names},
        action=ActionSources.of(contract).dimensions,
        cameras={camera: sizes[camera] for camera in contract.cameras},
        encoding=encoding,
        relative_actions=tuple(_relative_actions(contract)),
        notes=notes,
    )


def existing_sizes(root: Path, contract: Contract) -> Sizes | None:
    """The sizes of a dataset that is there already; None where there is none."""
    if not (root / INFO_FILE).exists():
        return None
    features = read_info(root).features
    sizes: Sizes = {}
    for camera in contract.cameras:
        feature = features.get(IMAGE_PREFIX + camera)
        if feature is None:
            msg = f"{root} has no camera {camera}, but the contract has: convert into another directory"
            raise DatasetError(msg)
        sizes[camera] = (int(feature["shape"][0]), int(feature["shape"][1]))
    return sizes


def find_sizes(cuts: Iterable[Cut], contract: Contract) -> tuple[Sizes | None, dict[Path, str]]:
    """The sizes of the pictures in the first bag that can be read, and what is wrong with those before it.

    None, where no bag can be read.
    """
    faults: dict[Path, str] = {}
    for bag in dict.fromkeys(cut.bag for cut in cuts):
        sizes = _sizes_or_fault(bag, contract)
        if isinstance(sizes, dict):
            return sizes, faults
        faults[bag] = sizes
    return None, faults


def _sizes_or_fault(path: Path, contract: Contract) -> Sizes | str:
    try:
        return _sizes_in(path, contract)
    except DatasetError as error:
        return str(error)


def _sizes_in(path: Path, contract: Contract) -> Sizes:
    with Bag(path) as bag:
        playback = Playback(bag, contract, *cut_span(bag, Cut(path)))
        reference = next(iter(contract.cameras))
        fault = "the first camera has no frame in it"
        waiting: list[int] = []
        for now_ns in playback.play():
            waiting += playback.frames.take(reference)
            while waiting and now_ns >= waiting[0] + playback.settled_ns:
                observation = playback.aligner.observation_at(waiting.pop(0), "")
                if not isinstance(observation, NotReady):
                    return {camera: frames.shape[1:3] for camera, frames in observation.images.items()}
                fault = observation.sentence
        fault = playback.why_not() or fault
    msg = f"{path} gives no row: {fault}"
    raise DatasetError(msg)


def _relative_actions(contract: Contract) -> Iterable[RelativeAction]:
    for group, representation in contract.policy.representation.items():
        state = contract.actions[group].state or group
        if representation != "relative" or state not in contract.state:
            continue
        kind = _kind(contract, state)
        if kind is not None:
            yield RelativeAction(
                action_key=group,
                state_key=state,
                delta_indices=tuple(range(contract.policy.horizon)),
                kind=kind,
                embodiment_tag=contract.embodiment_tag,
            )


def _kind(contract: Contract, state: str) -> RelativeKind | None:
    """How action and state compose; None for a pose in a layout that has no relative form."""
    sources = contract.state[state]
    pose = next((one for one in sources if isinstance(one, PoseSource | TransformSource)), None)
    return RelativeKind.JOINTS if pose is None else _KINDS.get(pose.rotation)
