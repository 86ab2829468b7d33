"""How the time of a prediction grows with cameras, history, denoising steps and robots, beside the machine's floor.

    python -m benchmarks.speed_growth --checkpoint build/real_size/checkpoint --out build/bench

The floor counts the operations of the network and the bytes of its weights, and divides them by what this machine does
at best, which is measured too: one large product of packed matrices, and one large copy.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import torch

from groot_ros.checkpoint import Checkpoint, open_checkpoint
from groot_ros.checkpoint.parameters import part_of
from groot_ros.model.fast import FastNetwork, load_fast

mpl.use("agg")
import matplotlib.pyplot as plt

GRID = (16, 22)
"""Patches of a 640x480 camera as the released checkpoints shape it."""
TEXT_TOKENS = 24
GROWTH = {"cameras": (1, 2, 3, 4), "history": (1, 2, 3, 4), "steps": (1, 2, 4, 8), "robots": (1, 2, 4, 8)}
USUAL = {"cameras": 2, "history": 1, "steps": 4, "robots": 1}


@dataclass(frozen=True)
class Machine:
    """What the machine does at best.

    Attributes:
        operations_s: Operations a second in a product of packed bfloat16 matrices.
        bytes_s: Bytes a second that a copy reads and writes.

    """

    operations_s: float
    bytes_s: float


def best(work: Callable[[], object], runs: int) -> float:
    """Seconds of the fastest run."""
    seconds = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def measure_machine() -> Machine:
    """Measure both peaks."""
    rows, inputs, outputs = 704, 2048, 6144
    x = torch.randn(rows, inputs, dtype=torch.bfloat16)
    weight = torch.ops.mkldnn._reorder_linear_weight(torch.randn(outputs, inputs, dtype=torch.bfloat16))
    product_s = best(lambda: torch.ops.mkldnn._linear_pointwise(x, weight, None, "none", [], ""), 10)
    source = torch.zeros(1 << 26, dtype=torch.uint8)
    target = torch.zeros_like(source)
    copy_s = best(lambda: target.copy_(source), 5)
    return Machine(2 * rows * inputs * outputs / product_s, 2 * source.numel() / copy_s)


def predict_s(network: FastNetwork, case: dict[str, int], runs: int) -> float:
    """Seconds from patches to actions."""
    robots, images = case["robots"], case["cameras"] * case["history"]
    tokens = GRID[0] * GRID[1] // 4
    image_token = network.prompts._image_token_id
    one = torch.tensor([*([1, *[image_token] * tokens, 2] * images), *range(3, 3 + TEXT_TOKENS)])
    ids = one.repeat(robots, 1)
    grid = torch.tensor([[1, *GRID]] * (robots * images))
    pixels = torch.randn(robots * images * GRID[0] * GRID[1], 1536, generator=torch.Generator().manual_seed(0))
    config = network.config
    state = torch.zeros(robots, config.state_history_length, config.max_state_dim)
    noise = torch.randn(robots, config.action_horizon, config.max_action_dim)

    def run() -> None:
        features = network.encode(
            input_ids=ids, attention_mask=torch.ones_like(ids), pixel_values=pixels, image_grid_thw=grid
        )
        conditions = network.conditions(features, state)
        actions = noise
        for step in range(case["steps"]):  # more than were prepared cost what the prepared ones cost
            actions = actions + network._parts.head.velocity(conditions, actions, step % network.steps) / case["steps"]

    with torch.inference_mode():
        run()
        return best(run, runs)


def floor_s(shapes: dict[str, tuple[int, ...]], case: dict[str, int], machine: Machine) -> float:
    """Seconds that the operations take, or the bytes of the weights where those take longer, part by part."""
    robots, images = case["robots"], case["cameras"] * case["history"]
    patches = robots * images * GRID[0] * GRID[1]
    tokens = robots * (images * (GRID[0] * GRID[1] // 4 + 2) + TEXT_TOKENS)
    total = 0.0
    for name, shape in shapes.items():
        count, part = int(np.prod(shape)), part_of(name)
        if len(shape) < 2 or "embed" in name.split(".")[-2] or "norm1.linear" in name or ".proj_out_1." in name:
            continue
        rows, times = {
            "vision tower": (patches if "merger" not in name else patches // 4, 1),
            "language model": (tokens, 1),
            "vision-language adapter": (tokens, 1),
        }.get(part, (robots * 41, case["steps"]))
        if name.endswith((".W", ".b")):
            count //= shape[0]
        if (
            part == "diffusion transformer"
            and (".to_k." in name or ".to_v." in name)
            and int(name.split(".")[3]) % 2 == 0
        ):
            rows, times = tokens // 2, 1  # once, over only the image or only the text tokens
        total += times * max(2 * rows * count / machine.operations_s, 2 * count / machine.bytes_s)
    return total


def chart(results: dict[str, list[dict[str, float]]], path: Path) -> None:
    """One panel for each thing that grows."""
    figure, panels = plt.subplots(1, len(results), figsize=(14, 3.5), layout="constrained", sharey=True)
    for panel, (name, rows) in zip(panels, results.items(), strict=True):
        places = [row["count"] for row in rows]
        panel.plot(places, [row["seconds"] for row in rows], "o-", label="measured")
        panel.plot(places, [row["floor_s"] for row in rows], "k--", label="floor")
        panel.set(xlabel=name, xticks=places, ylim=(0, None))
    panels[0].set_ylabel("seconds a prediction")
    panels[0].legend()
    figure.savefig(path)


def load(checkpoint: Checkpoint, dtype: torch.dtype) -> FastNetwork:
    """The prepared network of the checkpoint's first tag."""
    weights = checkpoint.weights()
    return load_fast(
        checkpoint.config,
        checkpoint.backbone.config,
        lambda rows: weights.tensors(rows=rows),
        checkpoint.embodiment(next(iter(checkpoint.tags))).id,
        device="cpu",
        dtype=dtype,
    )


def main() -> int:
    """Measure, print, write and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("build/bench"))
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    arguments.out.mkdir(parents=True, exist_ok=True)
    checkpoint = open_checkpoint(arguments.checkpoint)
    machine = measure_machine()
    shapes = checkpoint.weights().names()
    network = load(checkpoint, torch.bfloat16)
    results: dict[str, list[dict[str, float]]] = {}
    for name, counts in GROWTH.items():
        for count in counts:
            case = {**USUAL, name: count}
            row: dict[str, float] = {"count": count, "seconds": predict_s(network, case, arguments.runs)}
            row["floor_s"] = floor_s(shapes, case, machine)
            results.setdefault(name, []).append(row)
            print(f"{name} {count}: {row['seconds']:.2f} s, floor {row['floor_s']:.2f} s", flush=True)
    content: dict[str, Any] = {"machine": vars(machine), "load": os.getloadavg(), "results": results}
    (arguments.out / "growth.json").write_text(json.dumps(content, indent=2))
    chart(results, arguments.out / "growth.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
