"""The configuration file of a training: every key, its default (N1.7's recipe), and what is allowed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from typing_extensions import Self

from groot_ros.errors import TrainingError

Share = Annotated[float, Field(ge=0.0, lt=1.0)]
Positive = Annotated[float, Field(gt=0.0)]
Count = Annotated[int, Field(ge=1)]
NotNegative = Annotated[float, Field(ge=0.0)]


class Part(BaseModel):
    """A mapping in the file: unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Tune(Part):
    """Which parts of the network learn.

    Attributes:
        llm: The language model.
        visual: The vision tower.
        top_llm_layers: So many of the last layers of the language model.
        projector: Encoders of state and action, the decoder, and the position embedding.
        diffusion_model: The diffusion transformer.
        vlln: The norm and the self-attention over the vision-language features.

    """

    llm: bool = False
    visual: bool = False
    top_llm_layers: Annotated[int, Field(ge=0)] = 0
    projector: bool = True
    diffusion_model: bool = True
    vlln: bool = True


class Lora(Part):
    """Low-rank adapters in the linear layers of parts of the network, whose own weights then stay as they are.

    Attributes:
        rank: Rank of the adapters.
        alpha: Strength; the adapters are scaled by alpha / rank.
        dropout: Of the adapters' inputs.
        parts: Which parts get adapters.

    """

    rank: Count = 16
    alpha: Positive = 32.0
    dropout: Share = 0.0
    parts: tuple[Literal["llm", "visual", "diffusion_model", "vlln"], ...] = Field(
        default=("diffusion_model",), min_length=1
    )


class Validation(Part):
    """What the training is judged by: episodes that it does not see.

    Attributes:
        episodes: Share of the episodes, taken evenly from the whole dataset, or a list of their numbers; 0 for none.
        every: Steps between two validations.
        windows: Windows that are looked at, spread evenly over the held-out episodes.
        patience: Stop after so many validations without a smaller loss; null: never.

    """

    episodes: Share | tuple[int, ...] = 0.05
    every: Count = 1000
    windows: Count = 128
    patience: Count | None = None


class FromScratch(Part):
    """Begin with new random weights instead of the base model's.

    Attributes:
        seed: Of the weights.
        network: Keys of ``config.json`` that the new network has instead of the base model's.

    """

    seed: int = 0
    network: dict[str, Any] = Field(default_factory=dict)


class FinetuneConfig(Part):
    """A whole training.

    Attributes:
        dataset: The dataset's folder.
        contract: The robot contract; it describes a new embodiment and is saved beside the checkpoint.
        base_model: Checkpoint folder or hub id.
        output: Folder of the result.
        embodiment_tag: By default the contract's.
        projector: Number of the network's projector for a new tag; by default the tag's own, or that of new_embodiment.
        backbone: Folder of the backbone's side files, where the base model has none.
        allow_download: Whether the hub may be asked.
        absolute: Action groups that are absolute whatever the contract says.
        annotation: Annotation key of the instruction in the dataset; null: its task.
        statistics: Whether a tag that the base model knows gets the dataset's statistics or keeps the base model's.
        processing: Keys of ``processor_config.json`` that are changed: applied in training and saved for the policy.
        state_dropout: Probability that the head drops the state's features; null: the base model's.
        steps: Optimiser steps.
        batch_size: Samples of a step on all devices together, before accumulation.
        accumulation: Batches of a step.
        noise_draws: Losses of each sample with noise and time of their own.
        learning_rate: At its largest.
        final_learning_rate: At the end, as a share of the largest.
        warmup_ratio: Share of the steps in which the rate rises.
        weight_decay: Of weights; biases and norms have none.
        betas: Of AdamW.
        epsilon: Of AdamW.
        max_gradient_norm: Larger gradients are scaled down to it.
        ema_decay: Average of the weights that is saved instead of the last ones; null: none.
        precision: ``bfloat16`` computes in it and keeps trained weights in float32; auto: on CUDA.
        gradient_checkpointing: Compute activations twice to save memory.
        tune: Which parts learn.
        lora: Adapters; null: none.
        from_scratch: New random weights; null: the base model's.
        validation: Held-out episodes.
        workers: Processes that decode and prepare.
        seed: Of everything random.
        log_every: Steps between two entries of the log.
        save_every: Steps between two checkpoints.
        keep: Checkpoints that are kept.
        report_to: Where the log goes besides the output folder.
        device: auto, cuda or cpu.
        check_dataset: Look at the whole dataset first (``quick``: at a few frames of each video).

    """

    dataset: Path
    contract: Path | None = None
    base_model: str
    output: Path
    embodiment_tag: str | None = None
    projector: Annotated[int, Field(ge=0)] | None = None
    backbone: Path | None = None
    allow_download: bool = False
    absolute: tuple[str, ...] = ()
    annotation: str | None = None
    statistics: Literal["dataset", "checkpoint"] = "dataset"
    processing: dict[str, Any] = Field(default_factory=dict)
    state_dropout: Annotated[float, Field(ge=0.0, le=1.0)] | None = None
    steps: Count = 10000
    batch_size: Count = 64
    accumulation: Count = 1
    noise_draws: Count = 1
    learning_rate: Positive = 1e-4
    final_learning_rate: Annotated[float, Field(ge=0.0, le=1.0)] = 0.0
    warmup_ratio: Share = 0.05
    weight_decay: NotNegative = 1e-5
    betas: tuple[Share, Share] = (0.9, 0.999)
    epsilon: Positive = 1e-8
    max_gradient_norm: Positive = 1.0
    ema_decay: Annotated[float, Field(gt=0.0, lt=1.0)] | None = None
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    gradient_checkpointing: bool = False
    tune: Tune = Tune()
    lora: Lora | None = None
    from_scratch: FromScratch | None = None
    validation: Validation = Validation()
    workers: Annotated[int, Field(ge=0)] = 2
    seed: Annotated[int, Field(ge=0)] = 42
    log_every: Count = 10
    save_every: Count = 1000
    keep: Count = 5
    report_to: tuple[Literal["tensorboard", "wandb"], ...] = ("tensorboard",)
    device: str = "auto"
    check_dataset: Literal["full", "quick", "skip"] = "quick"

    @model_validator(mode="after")
    def _check(self) -> Self:
        tuned = {"llm": self.tune.llm or self.tune.top_llm_layers > 0, "visual": self.tune.visual}
        for part in self.lora.parts if self.lora else ():
            if tuned.get(part):
                msg = f"lora.parts: {part} is also tuned as a whole; take it out of one of the two"
                raise ValueError(msg)
        if self.from_scratch and self.lora:
            msg = "lora: adapters of random weights make no sense; leave out lora or from_scratch"
            raise ValueError(msg)
        return self


def load_config(path: Path | None, overrides: dict[str, Any]) -> FinetuneConfig:
    """Read a configuration file, if there is one, and what the command line says on top.

    Args:
        path: YAML; its paths are relative to where the command runs.
        overrides: Key to value, dotted for inner keys (``validation.every``).

    Raises:
        TrainingError: The file cannot be read, or a key is unknown, missing or wrong.

    """
    content: Any = {}
    where = str(path) if path is not None else "the command line"
    if path is not None:
        try:
            content = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            msg = f"{path}: the configuration cannot be read ({' '.join(str(error).split())}); give a YAML file"
            raise TrainingError(msg) from error
        if not isinstance(content, dict):
            msg = f"{path}: found {type(content).__name__}, wanted a mapping such as `steps: 10000`"
            raise TrainingError(msg)
    for key, value in overrides.items():
        _put(content, key.split("."), value)
    try:
        return FinetuneConfig.model_validate(content)
    except ValidationError as error:
        raise TrainingError("\n".join(_sentences(error, where))) from error


def _put(content: dict[str, Any], keys: list[str], value: object) -> None:
    for key in keys[:-1]:
        inner = content.get(key)
        content[key] = dict(inner) if isinstance(inner, dict) else {}
        content = content[key]
    content[keys[-1]] = value


def _sentences(error: ValidationError, where: str) -> list[str]:
    sentences = []
    for details in error.errors(include_url=False):
        key = ".".join(str(part) for part in details["loc"]) or "the whole file"
        if details["type"] == "extra_forbidden":
            sentences.append(f"{where}: {key} is not a key of the configuration; see docs/training.md for all keys")
        elif details["type"] == "missing":
            sentences.append(f"{where}: {key} is missing; give it in the file or on the command line")
        else:
            found = "" if isinstance(details["input"], dict) else f" (found {details['input']!r})"
            sentences.append(f"{where}: {key}: {details['msg'].removeprefix('Value error, ')}{found}")
    return list(dict.fromkeys(sentences))
