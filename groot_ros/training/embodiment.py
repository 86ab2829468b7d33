"""What is trained: the embodiment of the base model, or a new one from the contract, with the dataset's statistics."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groot_ros.checkpoint import (
    ActionConfig,
    ActionFormat,
    ActionRepresentation,
    ActionType,
    Checkpoint,
    EmbodimentModalities,
    KeyStatistics,
    ModalityConfig,
    ProcessorConfig,
    TagStatistics,
    is_relative,
)
from groot_ros.checkpoint.embodiments import EMBODIMENT_IDS, action_config, check_embodiment
from groot_ros.checkpoint.processor_config import parse_processor_config
from groot_ros.checkpoint.writing import processor_config_json
from groot_ros.contract import Contract
from groot_ros.contract.actions import Meaning
from groot_ros.contract.poses import PoseMap, RotationFormat
from groot_ros.dataset.reader import Dataset
from groot_ros.dataset.windows import WindowSpec
from groot_ros.errors import TrainingError
from groot_ros.numerics.relative import RelativeKind
from groot_ros.numerics.statistics import RelativeStatistics, Statistics, StreamingStatistics
from groot_ros.training.config import FinetuneConfig

LANGUAGE_KEY = "annotation.human.task_description"
NEW_EMBODIMENT = "new_embodiment"
_POSE_FORMATS = {RotationFormat.ROT6D_ROWS: ActionFormat.XYZ_ROT6D, RotationFormat.AXIS_ANGLE: ActionFormat.XYZ_ROTVEC}


@dataclass(frozen=True)
class Target:
    """The checkpoint that the training makes, all but its weights.

    Attributes:
        checkpoint: The base model with the new processing, statistics and numbers.
        tag: The tag that is trained.

    """

    checkpoint: Checkpoint
    tag: str


def training_target(base: Checkpoint, dataset: Dataset, contract: Contract | None, config: FinetuneConfig) -> Target:
    """Find out what is to be trained.

    Raises:
        TrainingError: Contract, dataset, base model and configuration do not fit each other.

    """
    tag = config.embodiment_tag or (contract.embodiment_tag if contract else None)
    if tag is None:
        msg = "embodiment_tag: neither the configuration nor a contract names the tag; give one of them"
        raise TrainingError(msg)
    if contract is not None and contract.embodiment_tag != tag:
        msg = f"embodiment_tag is {tag}, but {contract.path} says {contract.embodiment_tag}; give one of them"
        raise TrainingError(msg)
    _same_rate(dataset, contract, config)
    known = tag in base.tags
    processor = changed_processor(base.processor, config.processing)
    if contract is not None and (not known or tag == NEW_EMBODIMENT):
        modalities = contract_modalities(contract, config.absolute)
    elif known:
        modalities = _with_absolute(base.processor.modality_configs[tag], config.absolute)
    else:
        msg = (
            f"embodiment_tag: {base.path} does not know {tag} (it knows {', '.join(base.tags) or 'none'}), so a "
            "contract must describe it: give --contract"
        )
        raise TrainingError(msg)
    relative = any(
        action_config(modalities, key).rep is ActionRepresentation.RELATIVE for key in modalities.action.modality_keys
    )
    if relative and not processor.use_relative_action:
        if known and tag != NEW_EMBODIMENT and "use_relative_action" not in config.processing:
            relative = False  # the base model treats these groups as absolute, and goes on doing so
        elif config.processing.get("use_relative_action") is False:
            msg = (
                "processing.use_relative_action is false, but the tag has relative action groups; name them all in "
                "absolute, or leave the key out"
            )
            raise TrainingError(msg)
    processor = replace(
        processor,
        modality_configs={**processor.modality_configs, tag: modalities},
        use_relative_action=processor.use_relative_action or relative,
    )
    if config.statistics == "checkpoint":
        if not known:
            msg = f"statistics: checkpoint: the base model has no statistics of {tag}; use the dataset's"
            raise TrainingError(msg)
        statistics = base.statistics[tag]
    else:
        statistics = tag_statistics(dataset, modalities, processor)
    ids = {**base.embodiment_ids, tag: _projector(base, tag, config)}
    model = (
        base.config if config.state_dropout is None else replace(base.config, state_dropout_prob=config.state_dropout)
    )
    checkpoint = replace(
        base,
        config=model,
        processor=processor,
        statistics={**base.statistics, tag: statistics},
        embodiment_ids=ids,
        fps=float(dataset.info.fps),
    )
    embodiment = checkpoint.embodiment(tag)
    if contract is not None:
        contract.check_against(embodiment)
    check_embodiment(embodiment, model, processor, str(base.path))
    return Target(checkpoint, tag)


def window_spec(modalities: EmbodimentModalities, annotation: str | None) -> WindowSpec:
    """The rows and keys of a training window of an embodiment."""
    return WindowSpec(
        cameras=modalities.video.modality_keys,
        video_delta_indices=modalities.video.delta_indices,
        state_keys=modalities.state.modality_keys,
        state_delta_indices=modalities.state.delta_indices,
        action_keys=modalities.action.modality_keys,
        action_delta_indices=modalities.action.delta_indices,
        annotation=annotation,
    )


def contract_modalities(contract: Contract, absolute: Collection[str] = ()) -> EmbodimentModalities:
    """The modalities of a new embodiment: keys in the contract's order, horizon and representation as it says.

    Raises:
        TrainingError: A group cannot be relative, or is named in ``absolute`` and unknown.

    """
    groups = list(contract.actions)
    unused = [key for key in groups if contract.actions[key].meaning is Meaning.UNUSED]
    if unused:
        msg = f"{contract.path}: nothing can be learned for unused action groups: remove {', '.join(unused)}"
        raise TrainingError(msg)
    _known_groups(absolute, groups)
    return EmbodimentModalities(
        video=ModalityConfig(contract.policy.video_history, tuple(contract.cameras)),
        state=ModalityConfig((0,), tuple(contract.state)),
        action=ModalityConfig(
            tuple(range(contract.policy.horizon)),
            tuple(groups),
            action_configs=tuple(_action_config(contract, key, absolute) for key in groups),
        ),
        language=ModalityConfig((0,), (LANGUAGE_KEY,)),
    )


def changed_processor(base: ProcessorConfig, changes: dict[str, Any]) -> ProcessorConfig:
    """The base model's processing with some keys changed, checked as if read from a file.

    Raises:
        TrainingError: A key is unknown or decided elsewhere.
        CheckpointError: A value is wrong.

    """
    decided = {"modality_configs", "model_name", "max_state_dim", "max_action_dim", "max_action_horizon"}
    allowed = [field.name for field in fields(ProcessorConfig) if field.name not in decided]
    for key in changes:
        if key not in allowed:
            msg = f"processing.{key} cannot be changed; allowed are {', '.join(allowed)}"
            raise TrainingError(msg)
    content = processor_config_json(base)
    content["processor_kwargs"].update(changes)
    return parse_processor_config(content, "processing")


def tag_statistics(dataset: Dataset, modalities: EmbodimentModalities, processor: ProcessorConfig) -> TagStatistics:
    """The statistics of all episodes: states, absolute actions, and relative actions row by row of the chunk.

    Raises:
        TrainingError: No episode is as long as a chunk.

    """
    frames = dataset.total_frames
    state = {key: _column(dataset, "state", key, frames) for key in modalities.state.modality_keys}
    action = {key: _column(dataset, "action", key, frames) for key in modalities.action.modality_keys}
    relative = {
        key: _relative(dataset, key, modalities, frames)
        for key in modalities.action.modality_keys
        if is_relative(replace(processor, use_relative_action=True), modalities, key)
    }
    return TagStatistics(state=state, action=action, relative_action=relative)


def _column(dataset: Dataset, kind: str, key: str, frames: int) -> KeyStatistics:
    read = dataset.state if kind == "state" else dataset.action
    first = read(0, key)
    statistics = StreamingStatistics(first.shape[1:], most_rows=frames)
    for episode in range(len(dataset.episodes)):
        statistics.add(read(episode, key).astype(np.float64))
    return _saved(statistics.finish())


def _relative(dataset: Dataset, key: str, modalities: EmbodimentModalities, frames: int) -> KeyStatistics:
    config = action_config(modalities, key)
    kind = RelativeKind.JOINTS if config.type is ActionType.NON_EEF else RelativeKind(config.format.value)
    statistics = RelativeStatistics(
        modalities.action.delta_indices,
        dimension=dataset.modality.action[key].dimension,
        kind=kind,
        most_frames=frames,
    )
    # In float32, as the windows have the states.
    chunks = sum(
        statistics.add_episode(
            dataset.action(episode, key), dataset.state(episode, config.state_key or key).astype(np.float32)
        )
        for episode in range(len(dataset.episodes))
    )
    if not chunks:
        longest = max(entry.length for entry in dataset.episodes)
        msg = (
            f"{dataset.root}: no episode is as long as the {len(modalities.action.delta_indices)} rows of a chunk (the "
            f"longest has {longest}); record longer ones or lower the contract's policy.horizon"
        )
        raise TrainingError(msg)
    return _saved(statistics.finish())


def _saved(statistics: Statistics) -> KeyStatistics:
    names = ("min", "max", "mean", "std", "q01", "q99")
    values: dict[str, NDArray[np.float64]] = {name: getattr(statistics, name) for name in names}
    return KeyStatistics(**values)


def _action_config(contract: Contract, key: str, absolute: Collection[str]) -> ActionConfig:
    wanted = contract.policy.representation.get(key, "absolute")
    relative = wanted == "relative" and key not in absolute
    meaning = contract.actions[key].meaning
    form, kind = ActionFormat.DEFAULT, ActionType.NON_EEF
    if meaning is Meaning.POSE:
        kind = ActionType.EEF
        part = contract.action_map(key).parts[0]
        assert isinstance(part, PoseMap)
        form = _POSE_FORMATS.get(part.form, ActionFormat.DEFAULT)
        if form is ActionFormat.DEFAULT:
            # Absolute poses in another layout are columns like any other.
            kind = ActionType.NON_EEF
            if relative:
                allowed = ", ".join(layout.value for layout in _POSE_FORMATS)
                msg = (
                    f"policy.representation.{key}: a pose written as {part.form.value} cannot be relative; write its "
                    f"rotation as one of {allowed}"
                )
                raise TrainingError(msg)
    if relative and meaning not in {Meaning.POSE, Meaning.POSITION}:
        msg = (
            f"policy.representation.{key}: found relative, but the group means {meaning.value}; only positions and "
            "poses can be relative to the state"
        )
        raise TrainingError(msg)
    if meaning is Meaning.DELTA:
        rep = ActionRepresentation.DELTA
    else:
        rep = ActionRepresentation.RELATIVE if relative else ActionRepresentation.ABSOLUTE
    state_key = contract.actions[key].state if relative else None
    return ActionConfig(rep, kind, form, state_key)


def _with_absolute(modalities: EmbodimentModalities, absolute: Collection[str]) -> EmbodimentModalities:
    keys = modalities.action.modality_keys
    _known_groups(absolute, keys)
    configs = modalities.action.action_configs
    if configs is None or not absolute:
        return modalities
    changed = tuple(
        replace(config, rep=ActionRepresentation.ABSOLUTE) if key in absolute else config
        for key, config in zip(keys, configs, strict=True)
    )
    return replace(modalities, action=replace(modalities.action, action_configs=changed))


def _known_groups(absolute: Collection[str], groups: Collection[str]) -> None:
    unknown = [key for key in absolute if key not in groups]
    if unknown:
        msg = f"absolute: found {', '.join(unknown)}; the action groups are {', '.join(groups)}"
        raise TrainingError(msg)


def _same_rate(dataset: Dataset, contract: Contract | None, config: FinetuneConfig) -> None:
    if contract is not None and contract.rate_hz != dataset.info.fps:
        msg = (
            f"{contract.path}: rate_hz is {contract.rate_hz:g}, but {config.dataset} has {dataset.info.fps:g} rows a "
            "second; convert the recordings at the contract's rate, or change the contract"
        )
        raise TrainingError(msg)


def _projector(base: Checkpoint, tag: str, config: FinetuneConfig) -> int:
    if config.projector is not None:
        number = config.projector
    else:
        number = base.embodiment_ids.get(tag, EMBODIMENT_IDS[NEW_EMBODIMENT])
    if number >= base.config.max_num_embodiments:
        msg = (
            f"projector: {tag} would get number {number}, but the network has {base.config.max_num_embodiments} "
            "projectors, counted from 0"
        )
        raise TrainingError(msg)
    return number
