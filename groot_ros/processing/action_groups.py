"""The action groups of an embodiment: which columns, which scaling, relative to what; refuses what has no meaning."""

from __future__ import annotations

from dataclasses import dataclass

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
from groot_ros.numerics.relative import RelativeKind
from groot_ros.processing.scaling import Scaling, scaling_of


@dataclass(frozen=True)
class ActionGroup:
    """One action key.

    Attributes:
        key: The modality key.
        columns: Its columns among those that the network predicts.
        scaling: Between physical and normalised values.
        relative: How it composes with its reference state; None where the values are absolute.
        state_key: The state key whose last row is the reference; None where the values are absolute.

    """

    key: str
    columns: slice
    scaling: Scaling
    relative: RelativeKind | None = None
    state_key: str | None = None

    @property
    def width(self) -> int:
        """Number of dimensions."""
        return int(self.columns.stop - self.columns.start)


def action_groups(
    modalities: EmbodimentModalities, statistics: TagStatistics, config: ProcessorConfig, embodiment_tag: str
) -> tuple[ActionGroup, ...]:
    """Return the groups in the order of the network's columns.

    Raises:
        CheckpointError: Statistics are missing or have another length, a relative group has no usable reference or
            layout, or the groups do not fit the network's width or horizon.

    """
    action = modalities.action
    horizon = len(action.delta_indices)
    where = f"actions of {embodiment_tag!r}"
    groups: list[ActionGroup] = []
    start = 0
    for index, key in enumerate(action.modality_keys):
        action_config = action.action_configs[index] if action.action_configs is not None else None
        relative = _relative_kind(key, action_config, config, where)
        if relative is None:
            values, state_key = _absolute_statistics(key, statistics, where), None
        else:
            values = _relative_statistics(key, statistics, horizon, where)
            state_key = (action_config.state_key if action_config is not None else None) or key
            width = relative.width or values.dimension
            _check_reference(state_key, width, modalities, statistics, where=f"{where}: group {key!r}")
            if values.dimension != width:
                msg = (
                    f"{where}: group {key!r} is written as {relative.value}, which has {width} dimensions, but its "
                    f"statistics have {values.dimension}"
                )
                raise CheckpointError(msg)
        scaling = scaling_of(
            key,
            action,
            values,
            # As in the original, a relative group keeps minimum and maximum.
            use_percentiles=config.use_percentiles and relative is None,
            where=f"action statistics of {embodiment_tag!r}",
        )
        columns = slice(start, start + values.dimension)
        groups.append(ActionGroup(key, columns, scaling, relative, state_key))
        start = columns.stop
    if start > config.max_action_dim or horizon > config.max_action_horizon:
        msg = (
            f"{where}: {horizon} rows of {start} dimensions do not fit max_action_horizon {config.max_action_horizon} "
            f"and max_action_dim {config.max_action_dim}"
        )
        raise CheckpointError(msg)
    return tuple(groups)


def _relative_kind(
    key: str, action_config: ActionConfig | None, config: ProcessorConfig, where: str
) -> RelativeKind | None:
    """Return how a group composes; DELTA is treated like ABSOLUTE, as in the original."""
    if (
        action_config is None
        or not config.use_relative_action
        or action_config.rep is not ActionRepresentation.RELATIVE
    ):
        return None
    if action_config.type is ActionType.NON_EEF:
        return RelativeKind.JOINTS
    if action_config.format is ActionFormat.DEFAULT:
        msg = (
            f"{where}: group {key!r} is a relative end-effector pose with format DEFAULT, which does not say how its "
            "rotation is written; allowed are XYZ_ROT6D and XYZ_ROTVEC"
        )
        raise CheckpointError(msg)
    return RelativeKind(action_config.format.value)


def _absolute_statistics(key: str, statistics: TagStatistics, where: str) -> KeyStatistics:
    if key not in statistics.action:
        msg = f"{where}: statistics.json has no action statistics of group {key!r}, found {list(statistics.action)}"
        raise CheckpointError(msg)
    return statistics.action[key]


def _relative_statistics(key: str, statistics: TagStatistics, horizon: int, where: str) -> KeyStatistics:
    if key not in statistics.relative_action:
        msg = (
            f"{where}: group {key!r} is relative, but statistics.json has no relative_action statistics of it, found "
            f"{list(statistics.relative_action)}; compute them anew from the training data"
        )
        raise CheckpointError(msg)
    values = statistics.relative_action[key]
    if values.min.ndim == 2 and len(values.min) != horizon:
        msg = (
            f"{where}: the relative_action statistics of group {key!r} have {len(values.min)} rows, but the action "
            f"horizon is {horizon}; compute them anew for this horizon"
        )
        raise CheckpointError(msg)
    return values


def _check_reference(
    state_key: str, width: int, modalities: EmbodimentModalities, statistics: TagStatistics, *, where: str
) -> None:
    if state_key not in modalities.state.modality_keys:
        msg = (
            f"{where} is relative to state group {state_key!r}, which the embodiment has not; its state groups are "
            f"{', '.join(map(repr, modalities.state.modality_keys))}"
        )
        raise CheckpointError(msg)
    if state_key in statistics.state and statistics.state[state_key].dimension != width:
        msg = (
            f"{where} has {width} dimensions, but state group {state_key!r}, which it is relative to, has "
            f"{statistics.state[state_key].dimension}"
        )
        raise CheckpointError(msg)
