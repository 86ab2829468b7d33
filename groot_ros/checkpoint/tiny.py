"""A tiny checkpoint with random weights in the true format: for demos and tests, and to be trained from scratch."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import prod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from groot_ros.checkpoint.backbone import BUNDLED
from groot_ros.checkpoint.config import DiTConfig, ModelConfig, VLSelfAttentionConfig
from groot_ros.checkpoint.embodiments import EMBODIMENT_IDS
from groot_ros.checkpoint.parameters import parameter_shapes
from groot_ros.checkpoint.processor_config import (
    ActionConfig,
    ActionFormat,
    ActionRepresentation,
    ActionType,
    EmbodimentModalities,
    ModalityConfig,
    ProcessorConfig,
)
from groot_ros.checkpoint.statistics import KeyStatistics, TagStatistics
from groot_ros.checkpoint.tiny_backbone import write_tiny_backbone
from groot_ros.checkpoint.weights import SINGLE
from groot_ros.checkpoint.writing import write_metadata
from groot_ros.errors import CheckpointError

Ranges = Mapping[str, Sequence[tuple[float, float]]]

_WIDTH = 96
_LANGUAGE_LAYERS = 3
_PLANAR_ARM: Ranges = {"single_arm": ((-1.0, 3.0), (-2.6, 2.6)), "gripper": ((0.0, 0.8),)}
# Untrained rows are noise: the steps between them must stay below what the arm's speed limits let through.
_PLANAR_ARM_ACTIONS: Ranges = {**_PLANAR_ARM, "gripper": ((0.72, 0.80),)}


def write_tiny_checkpoint(
    out: Path | str,
    *,
    embodiment_tag: str = "new_embodiment",
    cameras: Sequence[str] = ("front", "wrist"),
    state: Ranges = _PLANAR_ARM,
    actions: Ranges = _PLANAR_ARM_ACTIONS,
    relative: Collection[str] = ("single_arm",),
    relative_speed: float = 0.1,
    horizon: int = 8,
    fps: float = 10.0,
    image_edge: int = 64,
    crop_fraction: float = 1.0,
    language_key: str = "annotation.human.task_description",
    seed: int = 0,
) -> Path:
    """Write a checkpoint of N1.7's architecture with about 3 million random parameters.

    Args:
        out: The checkpoint's folder; it must not exist yet, or be empty.
        embodiment_tag: Its only tag.
        cameras: Camera keys in their order.
        state: State group to the smallest and largest value of each dimension, in physical units.
        actions: Action group to the same.
        relative: The action groups that are written against the state group of the same name.
        relative_speed: What a relative action covers, in physical units a second: row i reaches ``(i + 1) / fps`` times
            it to either side.
        horizon: Rows of an action chunk.
        fps: Rows a second, recorded in ``groot_ros.json``.
        image_edge: Shortest edge of the images that the network sees, pixels.
        crop_fraction: Part of the image that is kept.
        language_key: Key of the instruction.
        seed: Of the weights.

    Returns:
        The folder.

    Raises:
        CheckpointError: The folder is not empty, or the arguments contradict each other.

    """
    out = Path(out)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        msg = f"{out} exists already and is not empty: give another folder, or remove it first."
        raise CheckpointError(msg)
    for key in relative:
        if key not in actions or len(state.get(key, ())) != len(actions[key]):
            msg = f"The relative action {key} needs a state group of the same name and number of dimensions."
            raise CheckpointError(msg)
    projector = EMBODIMENT_IDS.get(embodiment_tag, EMBODIMENT_IDS["new_embodiment"])
    config = _config(state, actions, horizon, projectors=projector + 1)
    processor = ProcessorConfig(
        modality_configs={
            embodiment_tag: _modalities(cameras, state, actions, relative, horizon=horizon, language_key=language_key)
        },
        use_albumentations=True,
        shortest_image_edge=image_edge,
        crop_fraction=crop_fraction,
        model_name=config.model_name,
        max_state_dim=config.max_state_dim,
        max_action_dim=config.max_action_dim,
        max_action_horizon=horizon,
        use_relative_action=bool(relative),
    )
    statistics = TagStatistics(
        state={key: _uniform(np.array(ranges, dtype=np.float64).reshape(-1, 2)) for key, ranges in state.items()},
        action={key: _uniform(np.array(ranges, dtype=np.float64).reshape(-1, 2)) for key, ranges in actions.items()},
        relative_action={key: _relative(len(actions[key]), relative_speed, horizon, fps) for key in relative},
    )
    out.mkdir(parents=True, exist_ok=True)
    backbone = write_tiny_backbone(
        out / BUNDLED, width=_WIDTH, layers=_LANGUAGE_LAYERS, least_pixels=image_edge * image_edge
    )
    write_metadata(
        out,
        config=config,
        processor=processor,
        statistics={embodiment_tag: statistics},
        embodiment_ids={embodiment_tag: projector},
        fps=fps,
    )
    _write_weights(out / SINGLE, parameter_shapes(config, backbone), seed)
    return out


def _config(state: Ranges, actions: Ranges, horizon: int, *, projectors: int) -> ModelConfig:
    # Padded dimensions only add noise, which a tiny network cannot ignore: so there are none.
    return ModelConfig(
        model_name="tiny-backbone",
        select_layer=_LANGUAGE_LAYERS,
        backbone_embedding_dim=_WIDTH,
        hidden_size=_WIDTH,
        input_embedding_dim=_WIDTH,
        max_state_dim=sum(len(ranges) for ranges in state.values()),
        max_action_dim=sum(len(ranges) for ranges in actions.values()),
        action_horizon=horizon,
        max_seq_len=horizon,
        max_num_embodiments=projectors,
        state_dropout_prob=0.0,
        diffusion_model_cfg=DiTConfig(
            num_layers=4, num_attention_heads=4, attention_head_dim=24, output_dim=_WIDTH, dropout=0.0
        ),
        vl_self_attention_cfg=VLSelfAttentionConfig(
            num_layers=1, num_attention_heads=3, attention_head_dim=32, dropout=0.0
        ),
    )


def _modalities(
    cameras: Sequence[str],
    state: Ranges,
    actions: Ranges,
    relative: Collection[str],
    *,
    horizon: int,
    language_key: str,
) -> EmbodimentModalities:
    configs = tuple(
        ActionConfig(
            ActionRepresentation.RELATIVE if key in relative else ActionRepresentation.ABSOLUTE,
            ActionType.NON_EEF,
            ActionFormat.DEFAULT,
        )
        for key in actions
    )
    return EmbodimentModalities(
        video=ModalityConfig((0,), tuple(cameras)),
        state=ModalityConfig((0,), tuple(state)),
        action=ModalityConfig(tuple(range(horizon)), tuple(actions), action_configs=configs),
        language=ModalityConfig((0,), (language_key,)),
    )


def _uniform(ranges: NDArray[np.float64]) -> KeyStatistics:
    """Return the statistics of values that are spread evenly over ranges ``(..., 2)``."""
    low, high = ranges[..., 0], ranges[..., 1]
    span = high - low
    return KeyStatistics(
        min=low,
        max=high,
        mean=(low + high) / 2,
        std=span / np.sqrt(12),
        q01=low + 0.01 * span,
        q99=low + 0.99 * span,
    )


def _relative(dimensions: int, speed: float, horizon: int, fps: float) -> KeyStatistics:
    reach = speed * (np.arange(horizon) + 1)[:, np.newaxis] / fps * np.ones(dimensions)
    return _uniform(np.stack([-reach, reach], axis=-1))


def _write_weights(path: Path, shapes: Mapping[str, tuple[int, ...]], seed: int) -> None:
    from safetensors.numpy import save_file

    random = np.random.default_rng(seed)
    tensors = {name: initial_parameter(name, shape, random) for name, shape in shapes.items()}
    save_file(tensors, path, metadata={"format": "pt"})
    path.chmod((path.parent / "config.json").stat().st_mode)  # the library lets only its user read the file


def initial_parameter(name: str, shape: tuple[int, ...], random: np.random.Generator) -> NDArray[np.float32]:
    """Draw a parameter so that activations keep their size: variance 1 / inputs."""
    if name.endswith((".bias", ".b")):
        return np.zeros(shape, dtype=np.float32)
    if name.endswith(("pos_embed.weight", "position_embedding.weight")):
        scale = 0.2
    elif name.endswith("embed_tokens.weight"):
        scale = 1.0
    elif len(shape) == 1:
        return np.ones(shape, dtype=np.float32)
    else:
        # Category-specific weights are (projectors, inputs, outputs), all others (outputs, inputs...).
        scale = (shape[1] if name.endswith(".W") else prod(shape[1:])) ** -0.5
    return (scale * random.standard_normal(shape)).astype(np.float32)
