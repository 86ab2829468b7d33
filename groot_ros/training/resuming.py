"""Where a training goes on from, and whether it is still the same training."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import ValidationError

from groot_ros.checkpoint.weights import SINGLE
from groot_ros.checkpoint.writing import write_json
from groot_ros.errors import TrainingError
from groot_ros.training.checkpoints import newest_checkpoint
from groot_ros.training.config import FinetuneConfig

CONFIG_FILE = "finetune.json"
_MAY_CHANGE = ("steps", "save_every", "log_every", "keep", "workers", "report_to", "device")
_CHANGES_NO_NUMBER = {*_MAY_CHANGE, "output", "allow_download", "check_dataset", "gradient_checkpointing"}
_PATHS = ("dataset", "contract", "base_model", "backbone")


def write_config(config: FinetuneConfig) -> None:
    """Note the configuration in the output folder."""
    write_json(config.output / CONFIG_FILE, config.model_dump(mode="json"))


def checkpoint_to_resume(config: FinetuneConfig, *, resume: bool) -> Path | None:
    """The checkpoint that a training goes on from; None for one that begins.

    Args:
        config: The configuration.
        resume: Whether the training goes on.

    Raises:
        TrainingError: There is nothing to go on from, it would be another training, or one that begins would
            overwrite one.

    """
    newest = newest_checkpoint(config.output)
    if resume:
        if newest is None:
            msg = f"{config.output} holds no complete checkpoint to resume from; start without --resume"
            raise TrainingError(msg)
        _refuse_another_training(config)
        return newest
    if newest is not None or (config.output / SINGLE).exists():
        msg = f"{config.output} holds a training already; go on with --resume, or give another output folder"
        raise TrainingError(msg)
    return None


def _refuse_another_training(config: FinetuneConfig) -> None:
    path = config.output / CONFIG_FILE
    try:
        before = FinetuneConfig.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        msg = (
            f"{path}: what the training was begun with cannot be read ({' '.join(str(error).split())}); put the file "
            "back, or train in another output folder"
        )
        raise TrainingError(msg) from error
    then, now = dict(_decisive(before)), dict(_decisive(config))
    changed = [
        f"{key} was {_word(then.get(key))} and is {_word(now.get(key))} now"
        for key in {**then, **now}
        if then.get(key) != now.get(key)
    ]
    if changed:
        msg = (
            f"{path}: {', '.join(changed)}; a resumed training keeps what it was begun with, apart from "
            f"{', '.join(_MAY_CHANGE)}: take that back, or train in another output folder"
        )
        raise TrainingError(msg)


def _decisive(config: FinetuneConfig) -> Iterator[tuple[str, object]]:
    """What decides the numbers of a training, by dotted keys."""
    content = config.model_dump(mode="json", exclude=_CHANGES_NO_NUMBER)
    for key in _PATHS:
        if content[key] is not None and Path(content[key]).exists():
            content[key] = str(Path(content[key]).resolve())
    # A step of 2 x 32 samples sees those of one of 64.
    content["batch_size * accumulation"] = content.pop("batch_size") * content.pop("accumulation")
    del content["validation"]["every"]
    if config.validation.patience is not None:  # without it no best weights are kept, with it any patience has them
        content["validation"]["patience"] = "a number"
    yield from _flat(content)


def _flat(content: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    for key, value in content.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _word(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
