"""What goes wrong in a training, in one sentence, and what is safe."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from groot_ros.errors import TrainingError
from groot_ros.training.checkpoints import CHECKPOINTS, newest_checkpoint
from groot_ros.training.loader import WORKER_LOST

_DISK_FULL = {errno.ENOSPC, errno.EDQUOT}


@contextmanager
def plain_failures(output: Path) -> Iterator[None]:
    """Turn what libraries raise into a sentence.

    Args:
        output: The training's folder; checkpoints that were not written to their end are removed from it.

    Raises:
        TrainingError: Out of memory, a full disk, or a worker that was killed.

    """
    try:
        yield
    except torch.OutOfMemoryError as error:
        msg = (
            "the device has not enough memory for this training: halve batch_size and double accumulation, set "
            f"gradient_checkpointing to true, or tune fewer parts. {_safe(output)}"
        )
        raise TrainingError(msg) from error
    except MemoryError as error:
        msg = f"this machine has not enough memory: lower batch_size or workers. {_safe(output)}"
        raise TrainingError(msg) from error
    except (OSError, RuntimeError) as error:
        sentence = _sentence(error, output)
        if sentence is None:
            raise
        msg = f"{sentence} {_safe(output)}"
        raise TrainingError(msg) from error
    except Exception as error:
        # safetensors wraps what the system says into an error of its own.
        if type(error).__name__ == "SafetensorError" and "No space left" in str(error):
            _remove_incomplete(output)
            msg = f"the disk of {output} is full; make room and go on with --resume. {_safe(output)}"
            raise TrainingError(msg) from error
        raise


def _sentence(error: OSError | RuntimeError, output: Path) -> str | None:
    text = str(error)
    if (isinstance(error, OSError) and error.errno in _DISK_FULL) or "No space left" in text:
        _remove_incomplete(output)
        return f"the disk of {output} is full; make room and go on with --resume."
    if "PytorchStreamWriter" in text or "inline_container" in text:
        _remove_incomplete(output)
        return f"a checkpoint could not be written to {output} ({text.splitlines()[0]}); is the disk full?"
    if WORKER_LOST in text:
        return (
            "a worker that prepares batches was killed, most often by the system for want of memory: lower workers or "
            "batch_size, and go on with --resume."
        )
    if "can't allocate memory" in text or "not enough memory" in text:
        return "this machine has not enough memory: lower batch_size or workers."
    return None


def _safe(output: Path) -> str:
    newest = newest_checkpoint(output)
    return f"The last checkpoint, {newest}, is whole." if newest else "No checkpoint had been saved yet."


def _remove_incomplete(output: Path) -> None:
    for directory in output.glob(f"{CHECKPOINTS}*"):
        if not (directory / "trainer_state.json").is_file():
            shutil.rmtree(directory, ignore_errors=True)
