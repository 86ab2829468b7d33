"""``processor_config.json``: how observations become model inputs, typed. Read it always, assume nothing."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, TypeVar

from groot_ros.checkpoint.fields import Fields
from groot_ros.checkpoint.versions import CheckpointOrigin
from groot_ros.errors import CheckpointError


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


# What the original stores and does not use at inference.
_HARMLESS = frozenset({"model_type", "use_mean_std", "extra_augmentation_config", "transformers_loading_kwargs"})
# LeRobot's geometry where a checkpoint names no image size: whatever else it says about the size is not used.
_LEROBOT_GEOMETRY: dict[str, Any] = {
    "image_target_size": (256, 256),
    "image_crop_size": (230, 230),
    "shortest_image_edge": None,
    "crop_fraction": None,
}
# Masks and reinforcement-learning information act in training only.
_TRAINING_MODALITIES = frozenset({"mask", "rl_info"})


def parse_processor_config(
    data: dict[str, Any], where: str, *, origin: CheckpointOrigin = CheckpointOrigin.NVIDIA
) -> ProcessorConfig:
    """Read the content of ``processor_config.json``.

    Args:
        data: The parsed JSON: ``processor_class`` and ``processor_kwargs``.
        where: The file, for the messages.
        origin: Who trained the network. In NVIDIA's files an absent ``shortest_image_edge`` means 256 and an absent
            ``crop_fraction`` 0.95; in LeRobot's they mean nothing, and without ``image_target_size`` the images have
            256 pixels and the crop 230.

    Raises:
        CheckpointError: A value has the wrong type, an image size cannot be known, or a key is unknown: it might
            change the numbers.

    """
    outer = Fields(data, where)
    outer.value("processor_class")
    fields = outer.inner("processor_kwargs")
    outer.refuse_unknown(frozenset({"transformers_version", "auto_map"}))
    default = ProcessorConfig()
    lerobot = origin is CheckpointOrigin.LEROBOT
    modalities = fields.inner("modality_configs")
    config = ProcessorConfig(
        modality_configs={tag: _embodiment(modalities.inner(tag)) for tag in modalities.keys()},  # noqa: SIM118
        image_crop_size=_pair(fields, "image_crop_size"),
        image_target_size=_pair(fields, "image_target_size"),
        use_albumentations=fields.boolean("use_albumentations", default.use_albumentations),
        shortest_image_edge=_edge(fields, None if lerobot else default.shortest_image_edge),
        crop_fraction=_crop_fraction(fields, None if lerobot else default.crop_fraction),
        letter_box_transform=fields.boolean("letter_box_transform", default.letter_box_transform),
        random_rotation_angle=None if fields.value("random_rotation_angle") is None else _rotation(fields),
        color_jitter_params=_color_jitter(fields),
        model_name=fields.text("model_name", default.model_name),
        formalize_language=fields.boolean("formalize_language", default.formalize_language),
        max_state_dim=fields.integer("max_state_dim", default.max_state_dim, minimum=1),
        max_action_dim=fields.integer("max_action_dim", default.max_action_dim, minimum=1),
        max_action_horizon=fields.integer("max_action_horizon", default.max_action_horizon, minimum=1),
        use_percentiles=fields.boolean("use_percentiles", default.use_percentiles),
        clip_outliers=fields.boolean("clip_outliers", default.clip_outliers),
        apply_sincos_state_encoding=fields.boolean("apply_sincos_state_encoding", default.apply_sincos_state_encoding),
        use_relative_action=fields.boolean("use_relative_action", default.use_relative_action),
        exclude_state=fields.boolean("exclude_state", default.exclude_state),
        state_dropout_prob=fields.fraction("state_dropout_prob", default.state_dropout_prob),
    )
    fields.refuse_unknown(_HARMLESS)
    if lerobot and config.image_target_size is None:
        return replace(config, **_LEROBOT_GEOMETRY)
    if lerobot:
        return config
    _check_image_geometry(config, fields.where)
    return config


def _check_image_geometry(config: ProcessorConfig, where: str) -> None:
    """Refuse a configuration that leaves the size of the images open, as the original does."""
    sizes = config.image_target_size is not None and config.image_crop_size is not None
    if not config.use_albumentations and not sizes:
        msg = (
            f"{where}: use_albumentations is false, but image_target_size and image_crop_size are not both given: "
            "the size of the images cannot be known. Take both from the configuration of the training."
        )
        raise CheckpointError(msg)
    if config.use_albumentations and config.shortest_image_edge is None and config.image_target_size is None:
        msg = (
            f"{where}: shortest_image_edge is null and image_target_size is not given: the size of the images cannot "
            "be known. Take either from the configuration of the training."
        )
        raise CheckpointError(msg)
    if config.use_albumentations and config.crop_fraction is None and not sizes:
        msg = (
            f"{where}: crop_fraction is null, but image_crop_size and image_target_size are not both given: the crop "
            "cannot be known. Take crop_fraction or both sizes from the configuration of the training."
        )
        raise CheckpointError(msg)


def _embodiment(fields: Fields) -> EmbodimentModalities:
    modalities = EmbodimentModalities(
        video=_modality(fields.inner("video")),
        state=_modality(fields.inner("state")),
        action=_modality(fields.inner("action")),
        language=_modality(fields.inner("language")),
    )
    fields.refuse_unknown(_TRAINING_MODALITIES)
    return modalities


def _modality(fields: Fields) -> ModalityConfig:
    keys = fields.names("modality_keys")
    if not keys:
        fields.refuse("modality_keys", "a list with at least one name")
    indices = fields.value("delta_indices")
    if (
        not isinstance(indices, list)
        or not indices
        or not all(isinstance(index, int) and not isinstance(index, bool) for index in indices)
        or indices != sorted(set(indices))
    ):
        fields.refuse("delta_indices", "a list of growing whole numbers")
    configs = fields.value("action_configs")
    if configs is not None and (not isinstance(configs, list) or len(configs) != len(keys)):
        found = len(configs) if isinstance(configs, list) else repr(configs)
        msg = f"{fields.where}: action_configs has {found} entries, but modality_keys has {len(keys)}."
        raise CheckpointError(msg)
    modality = ModalityConfig(
        delta_indices=tuple(indices),
        modality_keys=keys,
        sin_cos_embedding_keys=fields.names("sin_cos_embedding_keys", optional=True),
        mean_std_embedding_keys=fields.names("mean_std_embedding_keys", optional=True),
        action_configs=None
        if configs is None
        else tuple(
            _action(Fields(entry, f"{fields.where}: action_configs of {key}"))
            for key, entry in zip(keys, configs, strict=True)
        ),
    )
    for name in ("sin_cos_embedding_keys", "mean_std_embedding_keys"):
        strangers = [key for key in getattr(modality, name) if key not in keys]
        if strangers:
            msg = f"{fields.where}: {name} names {', '.join(strangers)}, but modality_keys has only {', '.join(keys)}."
            raise CheckpointError(msg)
    fields.refuse_unknown()
    return modality


def _action(fields: Fields) -> ActionConfig:
    config = ActionConfig(
        rep=_member(fields, "rep", ActionRepresentation),
        type=_member(fields, "type", ActionType),
        format=_member(fields, "format", ActionFormat),
        state_key=None if fields.value("state_key") is None else fields.text("state_key"),
    )
    fields.refuse_unknown()
    return config


_Member = TypeVar("_Member", bound=Enum)


def _member(fields: Fields, key: str, kind: type[_Member]) -> _Member:
    """Read an enumeration: the file holds the NAME, the training's YAML the value; both are accepted."""
    value = fields.value(key)
    for member in kind:
        if value in (member.name, member.value):
            return member
    return fields.refuse(key, "one of " + ", ".join(member.name for member in kind))


def _pair(fields: Fields, key: str) -> tuple[int, int] | None:
    value = fields.value(key)
    if value is None:
        return None
    if isinstance(value, list | tuple) and len(value) == 2 and all(type(size) is int and size > 0 for size in value):
        return (value[0], value[1])
    return fields.refuse(key, "null or two whole numbers, height and width in pixels")


def _edge(fields: Fields, default: int | None) -> int | None:
    if fields.value("shortest_image_edge", default) is None:
        return None
    return fields.integer("shortest_image_edge", default, minimum=1)


def _crop_fraction(fields: Fields, default: float | None) -> float | None:
    if fields.value("crop_fraction", default) is None:
        return None
    fraction = fields.fraction("crop_fraction", default)
    if fraction == 0.0:
        fields.refuse("crop_fraction", "null or a number above 0, at most 1")
    return fraction


def _rotation(fields: Fields) -> float:
    return fields.number("random_rotation_angle")


def _color_jitter(fields: Fields) -> dict[str, float] | None:
    if fields.value("color_jitter_params") is None:
        return None
    jitter = fields.inner("color_jitter_params")
    factors = {key: jitter.number(key, 0.0) for key in ("brightness", "contrast", "saturation", "hue") if key in jitter}
    jitter.refuse_unknown()
    return factors
