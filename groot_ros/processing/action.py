"""Actions between the network and the robot: predictions become physical values, physical values training targets.

The way in and the way out are the same for a training target and for the prefix of real-time chunking: the previous
chunk, in physical values, is encoded against the state of the new observation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from groot_ros.checkpoint.processor_config import EmbodimentModalities, ProcessorConfig
from groot_ros.checkpoint.statistics import TagStatistics
from groot_ros.errors import ObservationError, ProcessingError
from groot_ros.numerics.relative import to_absolute, to_relative
from groot_ros.processing.action_groups import ActionGroup, action_groups
from groot_ros.processing.checks import require_finite, require_keys, require_shape

StateGroups = Mapping[str, NDArray[np.floating]]

# A value at the edge of its range may come back a rounding beyond 1; that loses nothing and is not called clipped.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class EncodedActions:
    """Normalised actions, and what normalising them cost.

    Attributes:
        values: Float32 ``(max_action_horizon, max_action_dim)``, padded with zeros.
        mask: Bool, same shape: True where there is a value.
        clipped: Bool, same shape: True where the value lay outside what the network can express and was clipped.
        exact: Float64 ``(T, D)``: the values without padding, before they were rounded to float32.

    """

    values: NDArray[np.float32]
    mask: NDArray[np.bool_]
    clipped: NDArray[np.bool_]
    exact: NDArray[np.float64]

    @property
    def clipped_by_row(self) -> NDArray[np.int64]:
        """Number of clipped entries in each of the T rows."""
        by_row: NDArray[np.int64] = self.clipped[: len(self.exact)].sum(axis=1)
        return by_row


class ActionCodec:
    """Decodes predictions and encodes actions of one embodiment.

    Args:
        modalities: The embodiment's modalities.
        statistics: The embodiment's statistics.
        config: The checkpoint's processing switches.
        embodiment_tag: For messages.

    Raises:
        CheckpointError: The action groups cannot be decoded (see `action_groups`).

    """

    def __init__(
        self,
        modalities: EmbodimentModalities,
        statistics: TagStatistics,
        config: ProcessorConfig,
        embodiment_tag: str,
    ) -> None:
        self._where = f"actions of {embodiment_tag!r}"
        self._config = config
        self.groups: tuple[ActionGroup, ...] = action_groups(modalities, statistics, config, embodiment_tag)
        self.horizon = len(modalities.action.delta_indices)
        self.dimensions = {group.key: group.width for group in self.groups}
        self.width = sum(self.dimensions.values())

    def decode(
        self, action_pred: NDArray[np.floating], states: Sequence[StateGroups]
    ) -> dict[str, NDArray[np.float64]]:
        """Turn predictions into physical actions.

        Args:
            action_pred: Normalised prediction ``(B, H, D)``; what lies beyond the tag's horizon and width is padding.
            states: For each of B samples, the state that was sent with its observation: ``(T, d)`` by key, physical
                units. The last row is the reference of relative groups.

        Returns:
            Float64 ``(B, horizon, d)`` by key.

        Raises:
            ProcessingError: The prediction has another shape, is not finite, or names no rotation.
            ObservationError: A reference state is missing, has another width, or is not finite.

        """
        self.check_prediction(action_pred)
        return self.decode_unchecked(action_pred, states)

    def check_prediction(self, action_pred: NDArray[np.floating]) -> None:
        """Refuse a prediction that must not move a robot.

        Raises:
            ProcessingError: It has another shape, or holds a value that is not finite.

        """
        if action_pred.ndim != 3 or action_pred.shape[1] < self.horizon or action_pred.shape[2] < self.width:
            msg = (
                f"prediction for the {self._where}: found shape {action_pred.shape}, but it must be (samples, at least "
                f"{self.horizon} rows, at least {self.width} dimensions)"
            )
            raise ProcessingError(msg)
        require_finite(
            {group.key: action_pred[:, : self.horizon, group.columns] for group in self.groups},
            what=f"prediction for the {self._where}",
            advice="the chunk is refused; look for damaged weights or an input far outside the training data",
            error=ProcessingError,
        )

    def decode_unchecked(
        self, action_pred: NDArray[np.floating], states: Sequence[StateGroups]
    ) -> dict[str, NDArray[np.float64]]:
        """The arithmetic of `decode` alone: NaN passes through and infinities are clipped, as in the original."""
        normalized = action_pred[:, : self.horizon]
        decoded = {}
        for group in self.groups:
            values = group.scaling.denormalize(normalized[..., group.columns])
            if group.relative is not None:
                references = np.stack([self._reference(group, state) for state in states])[:, None]
                try:
                    values = to_absolute(values, references, group.relative)
                except ValueError as error:
                    raise ProcessingError(self._no_rotation(group, error)) from error
            decoded[group.key] = values
        return decoded

    def encode(self, groups: Mapping[str, NDArray[np.floating]], state: StateGroups) -> EncodedActions:
        """Turn physical actions into what the network is trained on, and what it takes as a prefix.

        Args:
            groups: Values ``(T, d)`` by key in physical units; T is at most the horizon, and row j is normalised with
                the statistics of time step j.
            state: The state that the actions are to be relative to: ``(T_state, d)`` by key; its last row counts.

        Raises:
            ProcessingError: A group is missing, unknown or of another shape, holds a value that is not finite, or
                names no rotation.
            ObservationError: A reference state is missing, has another width, or is not finite.

        """
        self._check_actions(groups)
        columns = [self._normalize(group, groups[group.key], state) for group in self.groups]
        unclipped = np.concatenate(columns, axis=-1)
        exact = np.clip(unclipped, -1.0, 1.0) if self._config.clip_outliers else unclipped
        padded = (self._config.max_action_horizon, self._config.max_action_dim)
        values, mask, clipped = np.zeros(padded, np.float32), np.zeros(padded, np.bool_), np.zeros(padded, np.bool_)
        filled = (slice(len(exact)), slice(self.width))
        values[filled] = exact
        mask[filled] = True
        clipped[filled] = np.abs(unclipped - exact) > _ROUNDING
        return EncodedActions(values, mask, clipped, exact)

    def _normalize(self, group: ActionGroup, values: NDArray[np.floating], state: StateGroups) -> NDArray[np.float64]:
        physical = np.asarray(values, dtype=np.float64)
        if group.relative is not None:
            try:
                physical = to_relative(physical, self._reference(group, state), group.relative)
            except ValueError as error:
                raise ProcessingError(self._no_rotation(group, error)) from error
        return group.scaling.first_rows(len(physical)).normalize(physical)

    def _check_actions(self, groups: Mapping[str, NDArray[np.floating]]) -> None:
        require_keys(groups, self.dimensions, what=self._where, error=ProcessingError)
        rows = len(groups[self.groups[0].key])
        if not 0 < rows <= self.horizon:
            msg = f"{self._where}: found {rows} rows, but they must be 1 to {self.horizon}, the action horizon"
            raise ProcessingError(msg)
        for key, width in self.dimensions.items():
            what = f"{self._where}, group {key!r}"
            require_shape(groups[key], rows=rows, width=width, what=what, error=ProcessingError)
        require_finite(groups, what=self._where, advice="look at where this action came from", error=ProcessingError)

    def _reference(self, group: ActionGroup, state: StateGroups) -> NDArray[np.float64]:
        """Return the last row of the group's reference state, float64 ``(d,)``."""
        assert group.state_key is not None
        values = state.get(group.state_key)
        if values is None:
            msg = (
                f"{self._where}: group {group.key!r} is relative to state group {group.state_key!r}, which the "
                f"observation has not; found {list(state)}"
            )
            raise ObservationError(msg)
        what = f"state group {group.state_key!r}, the reference of action group {group.key!r}"
        require_shape(values, rows=None, width=group.width, what=what, error=ObservationError)
        advice = "look at the source of this value: nothing can be relative to it"
        require_finite({group.state_key: values[-1:]}, what=what, advice=advice, error=ObservationError)
        return np.asarray(values[-1], dtype=np.float64)

    def _no_rotation(self, group: ActionGroup, error: ValueError) -> str:
        return f"{self._where}: group {group.key!r} or its reference, state group {group.state_key!r}: {error}"
