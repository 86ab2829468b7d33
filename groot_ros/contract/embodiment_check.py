"""Whether a contract and a checkpoint's embodiment belong together: tag, cameras, groups, widths, layouts of poses."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from groot_ros.checkpoint.processor_config import (
    ActionFormat,
    ActionRepresentation,
    ActionType,
    EmbodimentModalities,
    ModalityConfig,
)
from groot_ros.checkpoint.statistics import KeyStatistics, TagStatistics
from groot_ros.contract.actions import Meaning
from groot_ros.contract.poses import PoseMap, RotationFormat
from groot_ros.errors import ContractError

if TYPE_CHECKING:
    from groot_ros.contract.contract import Contract

POSE_FORMATS = {
    ActionFormat.XYZ_ROT6D: RotationFormat.ROT6D_ROWS,
    ActionFormat.XYZ_ROTVEC: RotationFormat.AXIS_ANGLE,
    ActionFormat.DEFAULT: RotationFormat.ROT6D_ROWS,
}


class EmbodimentLike(Protocol):
    """What is needed of a checkpoint's embodiment."""

    @property
    def tag(self) -> str:
        """The embodiment tag."""

    @property
    def modalities(self) -> EmbodimentModalities:
        """Cameras, state and action groups."""

    @property
    def statistics(self) -> TagStatistics:
        """The numbers of normalisation, whose widths count."""


def check_against(contract: Contract, embodiment: EmbodimentLike) -> None:
    """Refuse a contract that does not fit an embodiment.

    Raises:
        ContractError: The first thing that does not fit, in one sentence.

    """
    where = str(contract.path or "contract")
    if contract.embodiment_tag != embodiment.tag:
        msg = f"{where}: embodiment_tag: found {contract.embodiment_tag}; the policy runs as {embodiment.tag}"
        raise ContractError(msg)
    modalities, statistics = embodiment.modalities, embodiment.statistics
    _same_keys(where, "cameras", contract.cameras, modalities.video.modality_keys)
    _same_keys(where, "state", contract.state, modalities.state.modality_keys)
    _same_keys(where, "actions", contract.actions, modalities.action.modality_keys)
    for group in contract.state:
        _same_width(f"{where}: state.{group}", contract.state_dimensions(group), statistics.state.get(group))
    for group, action in contract.actions.items():
        dimensions = contract.action_dimensions(group)
        if dimensions or action.meaning is not Meaning.UNUSED:
            _same_width(f"{where}: actions.{group}", dimensions, statistics.action.get(group))
        if action.meaning is not Meaning.UNUSED:
            _same_meaning(where, contract, group, modalities.action)


def _same_keys(where: str, key: str, found: Iterable[str], wanted: Iterable[str]) -> None:
    found, wanted = list(found), list(wanted)
    if set(found) != set(wanted):
        missing = [name for name in wanted if name not in found]
        surplus = [name for name in found if name not in wanted]
        how = [f"add {', '.join(missing)}"] if missing else []
        how += [f"remove {', '.join(surplus)}"] if surplus else []
        msg = f"{where}: {key}: found {', '.join(found)}; the checkpoint wants {', '.join(wanted)}: {' and '.join(how)}"
        raise ContractError(msg)


def _same_width(key: str, dimensions: list[str], statistics: KeyStatistics | None) -> None:
    if statistics is not None and len(dimensions) != statistics.dimension:
        found = f"{len(dimensions)} dimensions ({', '.join(dimensions) or 'none'})"
        msg = f"{key}: found {found}; the checkpoint's statistics have {statistics.dimension}"
        raise ContractError(msg)


def _same_meaning(where: str, contract: Contract, group: str, action: ModalityConfig) -> None:
    """Relative actions are decoded to absolute ones, so they are positions or poses here; deltas stay deltas."""
    if action.action_configs is None:
        return
    config = action.action_configs[action.modality_keys.index(group)]
    meaning = contract.actions[group].meaning
    key = f"{where}: actions.{group}.meaning: found {meaning.value}"
    if config.rep is ActionRepresentation.DELTA and meaning is not Meaning.DELTA:
        msg = f"{key}; the checkpoint gives deltas: write meaning: delta"
        raise ContractError(msg)
    if config.rep is ActionRepresentation.RELATIVE and meaning not in {Meaning.POSITION, Meaning.POSE}:
        msg = f"{key}; relative actions are decoded to absolute targets: write meaning: position or pose"
        raise ContractError(msg)
    if config.type is not ActionType.EEF:
        return
    if meaning is not Meaning.POSE:
        msg = f"{key}; the checkpoint gives end-effector poses: write meaning: pose"
        raise ContractError(msg)
    found, wanted = _rotation_format(contract, group), POSE_FORMATS[config.format]
    if found is not wanted:
        msg = f"{where}: actions.{group}.rotation: found {found.value}; the checkpoint has {wanted.value}"
        raise ContractError(msg)


def _rotation_format(contract: Contract, group: str) -> RotationFormat:
    part = contract.action_map(group).parts[0]
    assert isinstance(part, PoseMap)  # the map of a pose is one
    return part.form
