"""The robot's state as the network reads it: normalised key by key, in the tag's order, padded with zeros."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from groot_ros.checkpoint.processor_config import EmbodimentModalities, ProcessorConfig
from groot_ros.checkpoint.statistics import TagStatistics
from groot_ros.errors import CheckpointError, ObservationError
from groot_ros.processing.checks import require_finite, require_keys, require_shape
from groot_ros.processing.scaling import scaling_of

StateGroups = Mapping[str, NDArray[np.float32]]


class StateEncoder:
    """Normalises the state of one embodiment.

    Args:
        modalities: The embodiment's modalities.
        statistics: The embodiment's statistics.
        config: The checkpoint's processing switches.
        embodiment_tag: For messages.

    Raises:
        CheckpointError: Statistics are missing, or the state is wider than the network's.

    """

    def __init__(
        self,
        modalities: EmbodimentModalities,
        statistics: TagStatistics,
        config: ProcessorConfig,
        embodiment_tag: str,
    ) -> None:
        self._where = f"state of {embodiment_tag!r}"
        self._clip = config.clip_outliers
        self._excluded = config.exclude_state
        self._padded_width = config.max_state_dim
        self.history = len(modalities.state.delta_indices)
        keys = modalities.state.modality_keys
        require_keys(
            [key for key in keys if key in statistics.state],
            keys,
            what=f"state statistics of {embodiment_tag!r}",
            error=CheckpointError,
        )
        self.dimensions = {key: statistics.state[key].dimension for key in keys}
        sin_cos = modalities.state.sin_cos_embedding_keys if config.apply_sincos_state_encoding else ()
        self._scalings = {
            key: None
            if key in sin_cos
            else scaling_of(
                key,
                modalities.state,
                statistics.state[key],
                use_percentiles=config.use_percentiles,
                where=f"state statistics of {embodiment_tag!r}",
            )
            for key in keys
        }
        self._mean_std_keys = modalities.state.mean_std_embedding_keys
        width = sum(dimension * (2 if key in sin_cos else 1) for key, dimension in self.dimensions.items())
        if width > config.max_state_dim:
            msg = (
                f"{self._where}: its groups are {width} values wide as the network reads them, but max_state_dim is "
                f"{config.max_state_dim}"
            )
            raise CheckpointError(msg)

    def encode(self, states: Sequence[StateGroups]) -> NDArray[np.float32]:
        """Return the normalised state of each sample; zeros where the checkpoint excludes the state.

        Args:
            states: For each of B samples, values ``(T, D)`` by key in physical units, oldest row first; T is the
                tag's state history.

        Returns:
            Float32 ``(B, T, max_state_dim)``.

        Raises:
            ObservationError: A group is missing or unknown, has another shape, or holds a value that is not finite.

        """
        if not self._excluded:  # what the network does not read need not be there
            for state in states:
                self.check(state)
        return self.encode_unchecked(states)

    def check(self, state: StateGroups) -> None:
        """Refuse a state that does not fit the embodiment.

        Raises:
            ObservationError: A group is missing or unknown, has another shape, or holds a value that is not finite.

        """
        require_keys(state, self.dimensions, what=self._where, error=ObservationError)
        for key, width in self.dimensions.items():
            what = f"{self._where}, group {key!r}"
            require_shape(state[key], rows=self.history, width=width, what=what, error=ObservationError)
        advice = "look at the source of this value: nothing is predicted from it"
        require_finite(state, what=self._where, advice=advice, error=ObservationError)

    def encode_unchecked(self, states: Sequence[StateGroups]) -> NDArray[np.float32]:
        """The arithmetic of `encode` alone: NaN passes through and infinities are clipped, as in the original."""
        encoded = np.zeros((len(states), self.history, self._padded_width), dtype=np.float32)
        if self._excluded:
            return encoded
        for sample, state in enumerate(states):
            values = np.concatenate([self._encode_key(key, state[key]) for key in self._scalings], axis=-1)
            encoded[sample, :, : values.shape[-1]] = values
        return encoded

    def _encode_key(self, key: str, raw: NDArray[np.float32]) -> NDArray[np.float64]:
        values = raw.astype(np.float64)
        scaling = self._scalings[key]
        if scaling is None:
            return np.concatenate([np.sin(values), np.cos(values)], axis=-1)
        normalized = scaling.normalize(values)
        if self._clip and key not in self._mean_std_keys:
            normalized = np.clip(normalized, -1.0, 1.0)
        return normalized
