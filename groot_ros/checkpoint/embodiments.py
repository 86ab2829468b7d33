"""Embodiment tags: the projector number of each, and whether a checkpoint really can drive it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from groot_ros.checkpoint.config import ModelConfig
from groot_ros.checkpoint.fields import Fields
from groot_ros.checkpoint.processor_config import (
    ActionConfig,
    ActionFormat,
    ActionRepresentation,
    ActionType,
    EmbodimentModalities,
    ProcessorConfig,
)
from groot_ros.checkpoint.statistics import KeyStatistics, TagStatistics
from groot_ros.errors import CheckpointError

# The table of the original's code: a tag that embodiment_id.json does not name takes its number from here.
EMBODIMENT_IDS = {
    "simpler_env_google": 0,
    "simpler_env_widowx": 1,
    "libero_sim": 2,
    "new_embodiment": 10,
    "robocasa_panda_omron": 10,
    "robocasa_gr1_tabletop": 10,
    "unitree_g1_sonic": 11,
    "oxe_droid_relative_eef_relative_joint": 24,
    "real_g1_relative_eef_relative_joints": 25,
    "unitree_g1_full_body_with_waist_height_nav_cmd": 25,
    "real_r1_pro_sharpa_relative_eef": 26,
    "real_r1_pro_sharpa_relative_eef_human": 26,
    "real_r1_pro_sharpa_relative_eef_maxinsights": 26,
    "real_r1_pro_sharpa_relative_eef_mecka": 26,
    "xdof_relative_eef_relative_joint": 27,
    "xdof_relative_eef_relative_joint_subtask": 27,
}

_POSE_WIDTH = {ActionFormat.XYZ_ROT6D: 9, ActionFormat.XYZ_ROTVEC: 6}
_ABSOLUTE = ActionConfig(ActionRepresentation.ABSOLUTE, ActionType.NON_EEF, ActionFormat.DEFAULT)


@dataclass(frozen=True)
class Embodiment:
    """One robot that the checkpoint was trained on: everything the processing of its data needs.

    Attributes:
        tag: The embodiment tag.
        id: Number of the tag's projector in the network.
        modalities: Cameras, state and action groups in their order, with history, horizon and representation.
        statistics: The numbers of normalisation.

    """

    tag: str
    id: int
    modalities: EmbodimentModalities
    statistics: TagStatistics

    @property
    def horizon(self) -> int:
        """Rows of an action chunk."""
        return len(self.modalities.action.delta_indices)


def parse_embodiment_ids(data: dict[str, Any] | None, where: str) -> dict[str, int]:
    """Read the content of ``embodiment_id.json`` and add the original's numbers for the tags that it does not name.

    Args:
        data: The parsed JSON, or None where the file is missing.
        where: The file, for the messages.

    Raises:
        CheckpointError: A number is not a whole number of at least 0.

    """
    fields = Fields(data if data is not None else {}, where)
    return {**EMBODIMENT_IDS, **{tag: fields.integer(tag) for tag in fields.keys()}}  # noqa: SIM118


def action_config(modalities: EmbodimentModalities, key: str) -> ActionConfig:
    """Return how the action group ``key`` is written; without ``action_configs`` all groups are absolute."""
    configs = modalities.action.action_configs
    return _ABSOLUTE if configs is None else configs[modalities.action.modality_keys.index(key)]


def is_relative(processor: ProcessorConfig, modalities: EmbodimentModalities, key: str) -> bool:
    """Return whether the action group ``key`` is decoded against the state of its observation."""
    relative = action_config(modalities, key).rep is ActionRepresentation.RELATIVE
    return relative and processor.use_relative_action


def state_width(processor: ProcessorConfig, embodiment: Embodiment) -> int:
    """Return how many dimensions the normalised state has: sine and cosine double those of their keys."""
    state = embodiment.modalities.state
    doubled = state.sin_cos_embedding_keys if processor.apply_sincos_state_encoding else ()
    return sum(embodiment.statistics.state[key].dimension * (2 if key in doubled else 1) for key in state.modality_keys)


def check_embodiment(embodiment: Embodiment, config: ModelConfig, processor: ProcessorConfig, where: str) -> None:
    """Check that modalities, statistics and network belong together.

    Raises:
        CheckpointError: Statistics are missing or do not fit the horizon, the horizon or the width is above the
            network's, or an action group cannot be decoded.

    """
    place = f"{where}: {embodiment.tag}"
    _check_horizon(embodiment, config, processor, place)
    _check_statistics(embodiment, processor, place)
    for key in embodiment.modalities.action.modality_keys:
        if is_relative(processor, embodiment.modalities, key):
            _check_relative(embodiment, key, place)
    _check_widths(embodiment, config, processor, place)


def _check_horizon(embodiment: Embodiment, config: ModelConfig, processor: ProcessorConfig, place: str) -> None:
    indices = embodiment.modalities.action.delta_indices
    if indices != tuple(range(len(indices))):
        msg = f"{place}: the action's delta_indices are {list(indices)}, but must be 0, 1, 2, ... without a gap."
        raise CheckpointError(msg)
    limit = min(config.action_horizon, processor.max_action_horizon)
    if len(indices) > limit:
        msg = (
            f"{place}: the action horizon is {len(indices)} rows, but the network has only {limit}: "
            f"fine-tune with delta_indices 0 to {limit - 1} at most."
        )
        raise CheckpointError(msg)
    for name, modality in (("video", embodiment.modalities.video), ("state", embodiment.modalities.state)):
        if modality.delta_indices[-1] != 0:
            msg = (
                f"{place}: the {name}'s delta_indices are {list(modality.delta_indices)}, but must end with 0: "
                "the newest row is the present, and actions are decoded against it."
            )
            raise CheckpointError(msg)
    rows = len(embodiment.modalities.state.delta_indices)
    if rows != config.state_history_length and not processor.exclude_state:
        msg = (
            f"{place}: the state's delta_indices have {rows} entries, but state_history_length of the network is "
            f"{config.state_history_length}."
        )
        raise CheckpointError(msg)
    if not 0 <= embodiment.id < config.max_num_embodiments:
        msg = f"{place}: its number is {embodiment.id}, but the network has {config.max_num_embodiments} projectors."
        raise CheckpointError(msg)


def _check_statistics(embodiment: Embodiment, processor: ProcessorConfig, place: str) -> None:
    for name, modality, statistics in (
        ("state", embodiment.modalities.state, embodiment.statistics.state),
        ("action", embodiment.modalities.action, embodiment.statistics.action),
    ):
        missing = [key for key in modality.modality_keys if key not in statistics]
        if missing:
            msg = f"{place}: statistics.json has no {name} statistics for {', '.join(missing)}: compute them again."
            raise CheckpointError(msg)
        for key in modality.modality_keys if processor.use_percentiles else ():
            if statistics[key].q01 is None or statistics[key].q99 is None:
                msg = (
                    f"{place}: use_percentiles is true, but statistics.json has no q01 and q99 for {name} {key}: "
                    "compute them again."
                )
                raise CheckpointError(msg)


def _check_relative(embodiment: Embodiment, key: str, place: str) -> None:
    config = action_config(embodiment.modalities, key)
    reference = config.state_key or key
    width = embodiment.statistics.action[key].dimension
    if reference not in embodiment.modalities.state.modality_keys:
        msg = (
            f"{place}: the relative action {key} refers to the state {reference}, which is not among "
            f"{', '.join(embodiment.modalities.state.modality_keys)}."
        )
        raise CheckpointError(msg)
    statistics = embodiment.statistics.relative_action.get(key)
    if statistics is None:
        msg = (
            f"{place}: {key} is a relative action, but statistics.json has no relative_action statistics for it: "
            "compute them from the training data; those of the absolute values must not take their place."
        )
        raise CheckpointError(msg)
    if statistics.min.ndim == 2 and statistics.min.shape[0] != embodiment.horizon:
        msg = (
            f"{place}: the relative_action statistics of {key} have {statistics.min.shape[0]} rows, but the action "
            f"horizon is {embodiment.horizon}: they are stale, compute them again for this horizon."
        )
        raise CheckpointError(msg)
    reference_width = embodiment.statistics.state[reference].dimension
    if not statistics.dimension == width == reference_width:
        msg = (
            f"{place}: the relative action {key} has {width} dimensions, its relative_action statistics "
            f"{statistics.dimension} and its reference state {reference} {reference_width}, but all must be equal."
        )
        raise CheckpointError(msg)
    if config.type is ActionType.EEF and _POSE_WIDTH.get(config.format) != width:
        allowed = ", ".join(f"{name.name} with {dims}" for name, dims in _POSE_WIDTH.items())
        msg = (
            f"{place}: the relative end-effector action {key} has the format {config.format.name} and {width} "
            f"dimensions, but can only be decoded as {allowed}."
        )
        raise CheckpointError(msg)


def _check_widths(embodiment: Embodiment, config: ModelConfig, processor: ProcessorConfig, place: str) -> None:
    width = sum(_width(embodiment.statistics.action, key) for key in embodiment.modalities.action.modality_keys)
    limit = min(config.max_action_dim, processor.max_action_dim)
    if width > limit:
        msg = f"{place}: the action groups have {width} dimensions together, but max_action_dim is {limit}."
        raise CheckpointError(msg)
    width = state_width(processor, embodiment)
    limit = min(config.max_state_dim, processor.max_state_dim)
    if width > limit:
        msg = f"{place}: the state groups have {width} dimensions together, but max_state_dim is {limit}."
        raise CheckpointError(msg)


def _width(statistics: dict[str, KeyStatistics], key: str) -> int:
    return statistics[key].dimension
