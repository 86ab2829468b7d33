"""The checkpoints in the output folder of a training: which of them is whole, and which becomes the result."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from groot_ros.errors import TrainingError

LIVE_WEIGHTS = "live_weights.safetensors"  # what learns, as the optimiser has it: not averaged, adapters apart
CHECKPOINTS = "checkpoint-"
BEST = "best"  # with `patience`: the weights of the smallest validation loss


def newest_checkpoint(output: Path) -> Path | None:
    """The newest checkpoint of an output folder that was written to its end."""
    complete = []
    for directory in output.glob(f"{CHECKPOINTS}*"):
        try:
            step = json.loads((directory / "trainer_state.json").read_text(encoding="utf-8"))["global_step"]
        except (OSError, ValueError, KeyError):
            continue
        if (directory / LIVE_WEIGHTS).is_file():
            complete.append((int(step), directory))
    return max(complete)[1] if complete else None


def make_best_the_result(output: Path) -> None:
    """Give the output folder what its best checkpoint holds, the weights last.

    The best stays where it is: a training that is resumed compares with it.

    Raises:
        TrainingError: The best is gone.

    """
    best = output / BEST
    if not best.is_dir():
        msg = f"{best} is gone, and with it the weights of the best validation; the result was left as it is"
        raise TrainingError(msg)
    for entry in sorted(best.iterdir(), key=lambda entry: entry.suffix == ".safetensors"):
        target = output / entry.name
        if entry.is_dir():
            shutil.copytree(entry, target, dirs_exist_ok=True)
        elif entry.suffix != ".safetensors":
            shutil.copyfile(entry, target)
        elif not (target.exists() and target.samefile(entry)):
            _link(entry, target)


def _link(source: Path, target: Path) -> None:
    """One file under two names, so that the weights fill the disk once; whoever writes either replaces it whole."""
    partial = target.with_name(f".{target.name}.partial")
    partial.unlink(missing_ok=True)
    try:
        partial.hardlink_to(source)
    except OSError:  # not every file system can
        shutil.copy2(source, partial)
    partial.replace(target)
