"""``processor_config.json``: how observations become model inputs, typed. Read it always, assume nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum


class ActionRepresentation(Enum):
    """How an action group is written: against the current state, or in absolute values."""

    RELATIVE = "relative"
    DELTA = "delta"
    ABSOLUTE = "absolute"


class ActionType(Enum):
    """End-effector poses compose as rigid transforms, everything else adds up."""

    EEF = "eef"
    NON_EEF = "non_eef"


class ActionFormat(Enum):
    """Layout of an end-effector action: position and rotation."""

    DEFAULT = "default"
    XYZ_ROT6D = "xyz+rot6d"
    XYZ_ROTVEC = "xyz+rotvec"


@dataclass(frozen=True)
class ActionConfig:
    """One action group: representation, kind, layout, and the state key that is its reference."""

    rep: ActionRepresentation
    type: ActionType
    format: ActionFormat
    state_key: str | None = None


@dataclass(frozen=True)
class ModalityConfig:
    """Keys of one modality in their order, with the time steps (in rows) that are taken around the present."""

    delta_indices: tuple[int, ...]
    modality_keys: tuple[str, ...]
    sin_cos_embedding_keys: tuple[str, ...] = ()
    mean_std_embedding_keys: tuple[str, ...] = ()
    action_configs: tuple[ActionConfig, ...] | None = None


@dataclass(frozen=True)
class EmbodimentModalities:
    """The modalities of one embodiment tag."""

    video: ModalityConfig
    state: ModalityConfig
    action: ModalityConfig
    language: ModalityConfig


@dataclass(frozen=True, kw_only=True)
class ProcessorConfig:
    """``processor_kwargs``. Absent keys take the defaults of the original's constructor."""

    modality_configs: dict[str, EmbodimentModalities] = field(default_factory=dict)
    image_crop_size: tuple[int, int] | None = None
    image_target_size: tuple[int, int] | None = None
    use_albumentations: bool = False
    shortest_image_edge: int | None = 256
    crop_fraction: float | None = 0.95
    letter_box_transform: bool = False
    random_rotation_angle: float | None = None
    color_jitter_params: dict[str, float] | None = None
    model_name: str = "nvidia/Cosmos-Reason2-2B"
    formalize_language: bool = True
    max_state_dim: int = 29
    max_action_dim: int = 29
    max_action_horizon: int = 50
    use_percentiles: bool = False
    clip_outliers: bool = True
    apply_sincos_state_encoding: bool = False
    use_relative_action: bool = False
    exclude_state: bool = False
    state_dropout_prob: float = 0.0
