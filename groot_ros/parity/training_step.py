"""Record one training step: what the preprocessor makes of a batch, the loss, and the norm of every gradient.

Runs by itself too, with any Python and any version of this package that its path leads to (``--help``); so it uses the
package's long-standing names only.
"""

from __future__ import annotations

import argparse
import platform
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from numpy.typing import NDArray

import groot_ros
from groot_ros.checkpoint import open_checkpoint
from groot_ros.model.loading import load_model
from groot_ros.observation import Observation
from groot_ros.processing.processor import Processor

Array = NDArray[Any]

INPUTS = ("input_ids", "attention_mask", "pixel_values", "image_grid_thw", "state", "embodiment_id")


def record_training_step(
    checkpoint: str, batch: Path, *, backbone: Path | None, device: str, dtype: torch.dtype, seed: int
) -> dict[str, Array]:
    """Run one step in training mode, dropout included, on all parameters.

    Args:
        checkpoint: Folder of the checkpoint.
        batch: Artifact with ``embodiment_tag``, ``raw::...`` observations and ``raw::action.<key>``.
        backbone: Folder of the backbone's files, where the checkpoint does not hold them.
        device: Where to compute.
        dtype: Of the weights.
        seed: Of noise, time and dropout.

    Returns:
        ``preprocessor::<name>``, ``loss`` (float64), ``gradient::<parameter>`` (norm, float64), and ``environment``.

    """
    opened = open_checkpoint(checkpoint, backbone=backbone)
    with np.load(batch) as archive:
        raw = {name: archive[name] for name in archive.files if name.startswith(("raw::", "embodiment_tag"))}
    processor = Processor(opened, str(raw["embodiment_tag"]))
    observations = _observations(raw)
    inputs = processor.prepare(observations)
    actions = _group(raw, "raw::action.")
    targets = [
        processor.encode_actions({key: values[index] for key, values in actions.items()}, observation)
        for index, observation in enumerate(observations)
    ]
    action, mask = (np.stack([getattr(each, name) for each in targets]) for name in ("values", "mask"))
    generator = np.random.default_rng(seed)  # numpy's numbers are the same with every version of torch
    noise = generator.standard_normal(action.shape)
    time = (1 - generator.beta(opened.config.noise_beta_alpha, opened.config.noise_beta_beta, len(action))) * (
        opened.config.noise_s
    )
    network = load_model(opened.config, opened.backbone.config, opened.weights().tensors(), device=device, dtype=dtype)
    network.requires_grad_(requires_grad=True).train()
    torch.manual_seed(seed)
    placed = inputs.to(device, dtype)
    features = network.encode(
        input_ids=placed.input_ids,
        attention_mask=placed.attention_mask,
        pixel_values=placed.pixel_values,
        image_grid_thw=placed.image_grid_thw,
    )
    loss = network.loss(
        features,
        state=placed.state,
        embodiment_id=placed.embodiment_id,
        action=torch.from_numpy(action).to(device, dtype),
        action_mask=torch.from_numpy(mask).to(device, dtype),
        noise=torch.from_numpy(noise).to(device, dtype),
        time=torch.from_numpy(time).to(device, dtype),
    ).loss
    loss.backward()  # type: ignore[no-untyped-call]
    return {
        "environment": np.array(
            f"python {platform.python_version()}, torch {torch.__version__}, transformers "
            f"{transformers.__version__}, groot_ros in {Path(groot_ros.__file__).parent}"
        ),
        **{f"preprocessor::{name}": getattr(inputs, name).numpy() for name in INPUTS},
        "preprocessor::action": action,
        "preprocessor::action_mask": mask,
        "loss": np.array(loss.item(), dtype=np.float64),
        **{
            f"gradient::{name}": np.array(parameter.grad.double().norm().item())
            for name, parameter in network.named_parameters()
            if parameter.grad is not None
        },
    }


def _observations(raw: dict[str, Array]) -> list[Observation]:
    video, state = _group(raw, "raw::video."), _group(raw, "raw::state.")
    return [
        Observation(
            images={key: frames[index] for key, frames in video.items()},
            state={key: values[index] for key, values in state.items()},
            instruction=str(text),
            stamp_ns=0,
        )
        for index, text in enumerate(raw["raw::language"])
    ]


def _group(arrays: dict[str, Array], prefix: str) -> dict[str, Array]:
    return {name[len(prefix) :]: array for name, array in arrays.items() if name.startswith(prefix)}


def main() -> None:
    """Record the same step several times, each into a file of its own."""
    parser = argparse.ArgumentParser(description="Record a training step of the groot_ros that the path leads to.")
    parser.add_argument("checkpoint")
    parser.add_argument("batch", type=Path)
    parser.add_argument("out", type=Path, nargs="+", help="one file for each run")
    parser.add_argument("--backbone", type=Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--seed", type=int, default=42)
    arguments = parser.parse_args()
    for out in arguments.out:
        step = record_training_step(
            arguments.checkpoint,
            arguments.batch,
            backbone=arguments.backbone,
            device=arguments.device,
            dtype=getattr(torch, arguments.dtype),
            seed=arguments.seed,
        )
        np.savez_compressed(out, **step)  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
