"""A training step in two code versions or environments, with repeated runs of each as the control.

Two runs of the very same code need not agree to the last bit on every device. What counts is whether the two versions
are further apart than the runs of one version are among themselves.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groot_ros.errors import ParityError
from groot_ros.parity import training_step
from groot_ros.policy import select_device

Array = NDArray[Any]
Step = dict[str, Array]

_HERE = Path(training_step.__file__).parents[2]
_ENVIRONMENT = "environment"
# Runs the file without putting its folder on the path, so that the version on PYTHONPATH is the one that is recorded.
_LAUNCH = "import runpy, sys; file = sys.argv.pop(1); runpy.run_path(file, run_name='__main__')"


@dataclass(frozen=True)
class QuantityResult:
    """One recorded quantity.

    Attributes:
        name: As recorded.
        control: Largest difference among the runs of one version.
        apart: Largest difference between runs of the two versions.
        scale: Largest value, for judging both.

    """

    name: str
    control: float
    apart: float
    scale: float

    @property
    def inside(self) -> bool:
        """Whether the versions are no further apart than the runs of one version."""
        return self.apart <= self.control


@dataclass(frozen=True)
class TrainingResult:
    """The comparison of two versions.

    Attributes:
        quantities: All recorded quantities.
        losses: Loss of each run, of this version and of the other.
        runs: Runs of each.
        environments: Versions of both, in words.

    """

    quantities: list[QuantityResult]
    losses: tuple[list[float], list[float]]
    runs: int
    environments: tuple[str, str]

    @property
    def inside(self) -> bool:
        """The verdict."""
        return all(quantity.inside for quantity in self.quantities)

    def markdown(self) -> str:
        """The report, as Markdown."""
        outside = [quantity for quantity in self.quantities if not quantity.inside]
        verdict = "inside" if self.inside else f"OUTSIDE ({len(outside)} of {len(self.quantities)} quantities)"
        lines = [
            f"## Training step: {verdict} the run-to-run envelope",
            "",
            f"{self.runs} runs of each version; same batch, weights, noise, time and seed of dropout.",
            "",
            "| quantity | largest difference within a version | between the versions | of its largest value | result |",
            "| --- | --- | --- | --- | --- |",
        ]
        lines += [_row(quantity) for quantity in self._shown()]
        gradients = [quantity for quantity in self.quantities if quantity.name.startswith("gradient::")]
        same = sum(quantity.apart == 0 for quantity in gradients)
        lines += ["", f"{same} of {len(gradients)} gradient norms are the same to the last bit."]
        for side, losses, environment in zip(
            ("This version", "The other"), self.losses, self.environments, strict=True
        ):
            bits = ", ".join(sorted({value.hex() for value in losses}))
            lines.append(f"- {side} ({environment}): loss {losses[0]!r}, bits {bits}.")
        return "\n".join(lines)

    def _shown(self) -> list[QuantityResult]:
        """All but the gradients, and of those the ones that are furthest apart."""
        gradients = [quantity for quantity in self.quantities if quantity.name.startswith("gradient::")]
        worst = sorted(gradients, key=lambda quantity: -quantity.apart / max(quantity.scale, 1e-30))[:5]
        return [quantity for quantity in self.quantities if quantity not in gradients] + worst


def compare_versions(
    *,
    checkpoint: str,
    backbone: Path | None,
    batch: Path,
    other_python: Path,
    other_path: Path | None,
    runs: int,
    device: str,
    dtype: str,
    seed: int,
    keep: Path | None = None,
) -> TrainingResult:
    """Record the same training step several times in each of two versions, and compare.

    Args:
        checkpoint: Folder of the checkpoint.
        backbone: Folder of the backbone's files, where the checkpoint does not hold them.
        batch: Artifact with raw observations and actions.
        other_python: Python of the other environment.
        other_path: Folder that holds the other version of ``groot_ros``; this version where None.
        runs: Runs of each version, at least 2.
        device: Where to compute.
        dtype: Of the weights.
        seed: Of noise, time and dropout.
        keep: Folder for the recorded steps; thrown away where None.

    Raises:
        ParityError: A step could not be recorded, or there are too few runs for a control.

    """
    if runs < 2:
        msg = f"--runs {runs}: without at least 2 runs of each version there is no control"
        raise ParityError(msg)
    options = ["--device", str(select_device(device)), "--dtype", dtype, "--seed", str(seed)]
    options += [] if backbone is None else ["--backbone", str(backbone.resolve())]
    where = str(Path(checkpoint).expanduser().resolve()) if Path(checkpoint).expanduser().exists() else checkpoint
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) if keep is None else keep.resolve()
        folder.mkdir(parents=True, exist_ok=True)
        sides = (("this", Path(sys.executable), _HERE), ("other", other_python, other_path or _HERE))
        files = {name: [folder / f"{name}_{run}.npz" for run in range(runs)] for name, *_ in sides}
        for name, python, path in sides:
            outs = [str(file) for file in files[name]]
            _record(python, path, [where, str(batch.resolve()), *outs, *options], folder)
        steps = {name: [_load(file) for file in recorded] for name, recorded in files.items()}
    return compare_steps(steps["this"], steps["other"])


def compare_steps(these: Sequence[Step], others: Sequence[Step]) -> TrainingResult:
    """Compare recorded steps of two versions.

    Raises:
        ParityError: They did not record the same quantities.

    """
    names = [name for name in these[0] if name != _ENVIRONMENT]
    apart = {name for step in (*these, *others) for name in set(step) ^ set(these[0])}
    if apart:
        msg = f"the two versions recorded different quantities; only one side has {', '.join(sorted(apart)[:5])}"
        raise ParityError(msg)
    results = []
    for name in names:
        within = [pair for side in (these, others) for pair in combinations(side, 2)]
        results.append(
            QuantityResult(
                name,
                control=max((_difference(a[name], b[name]) for a, b in within), default=0.0),
                apart=max(_difference(a[name], b[name]) for a, b in product(these, others)),
                scale=float(np.abs(these[0][name].astype(np.float64)).max(initial=0.0)),
            )
        )
    losses = ([float(step["loss"]) for step in these], [float(step["loss"]) for step in others])
    environments = (str(these[0][_ENVIRONMENT]), str(others[0][_ENVIRONMENT]))
    return TrainingResult(results, losses, len(these), environments)


def _record(python: Path, path: Path, arguments: list[str], folder: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(path.resolve())}
    command = [str(python), "-c", _LAUNCH, training_step.__file__, *arguments]
    done = subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1:] or ["no message"]
        msg = f"{python} with groot_ros from {path} could not record a training step: {last[0]}"
        raise ParityError(msg)


def _load(path: Path) -> Step:
    with np.load(path) as archive:
        return {name: archive[name] for name in archive.files}


def _difference(ours: Array, theirs: Array) -> float:
    if ours.shape != theirs.shape:
        return float("inf")
    difference = np.abs(ours.astype(np.float64) - theirs.astype(np.float64))
    both = np.isnan(ours) & np.isnan(theirs)
    return float(np.where(both, 0.0, np.nan_to_num(difference, nan=np.inf)).max(initial=0.0))


def _row(quantity: QuantityResult) -> str:
    relative = quantity.apart / quantity.scale if quantity.scale else 0.0
    result = "inside" if quantity.inside else "OUTSIDE"
    return f"| {quantity.name} | {quantity.control:.2g} | {quantity.apart:.2g} | {relative:.2g} | {result} |"
