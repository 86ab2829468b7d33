"""``benchmark``: how fast a checkpoint predicts on this machine, in NVIDIA's columns."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from groot_ros.cli._arguments import image_size
from groot_ros.cli._run import run
from groot_ros.errors import GrootError

_TITLES = {
    "data_processing": "Data processing",
    "backbone": "Backbone",
    "action_head": "Action head",
    "decode": "Decode",
    "end_to_end": "End to end",
}
_EXAMPLES = """examples:
  python -m groot_ros benchmark ~/models/GR00T-N1.7-LIBERO/libero_10 --embodiment-tag libero_sim
  python -m groot_ros benchmark build/demo/checkpoint --device cpu --dtype bfloat16 --runs 5 --json speed.json

Nothing else should run meanwhile. On a GPU the stages are timed there, between captured graphs.
"""


def main(argv: list[str] | None = None) -> int:
    """Run the tool."""
    parser = argparse.ArgumentParser(
        prog="benchmark",
        description="Measure how fast a checkpoint predicts on this machine.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("checkpoint", type=Path, help="checkpoint directory")
    parser.add_argument("--embodiment-tag", help="default: the only one that the checkpoint was trained for")
    parser.add_argument("--backbone", type=Path, help="backbone's folder, where the checkpoint has none")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N (default: auto)")
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), help="default: bfloat16 on a GPU, float32 on a CPU")
    parser.add_argument("--runs", type=_positive, default=20, help="predictions that count (default: 20)")
    parser.add_argument(
        "--camera-size", type=image_size, default=(640, 480), metavar="WIDTHxHEIGHT", help="default: 640x480"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures, every run's too, to FILE")
    arguments = parser.parse_args(argv)
    return run(lambda: _benchmark(arguments))


def _benchmark(arguments: argparse.Namespace) -> int:
    from rich.console import Console
    from rich.table import Table

    from groot_ros.checkpoint import open_checkpoint
    from groot_ros.evaluation.speed import measure_speed
    from groot_ros.policy import GrootPolicy

    checkpoint = open_checkpoint(arguments.checkpoint, backbone=arguments.backbone)
    tag = arguments.embodiment_tag or _only(list(checkpoint.tags))
    start = time.perf_counter()
    policy = GrootPolicy.from_checkpoint(
        arguments.checkpoint,
        tag,
        device=arguments.device,
        dtype=arguments.dtype,
        backbone=arguments.backbone,
        # The rate of the rows takes no part in the time of a prediction.
        rate_hz=checkpoint.fps or 30.0,
    )
    load_s = time.perf_counter() - start
    width, height = arguments.camera_size
    report = measure_speed(policy, runs=arguments.runs, frame_size=(height, width))
    summary = report.summary()
    table = Table(title=f"{report.device}, {report.dtype}, {policy.network.steps} denoising steps, {tag}")
    table.add_column("ms")
    for title in _TITLES.values():
        table.add_column(title, justify="right")
    for figure in ("median_ms", "p95_ms", "minimum_ms"):
        cells = [f"{summary[column][figure]:.1f}" for column in _TITLES]
        table.add_row(figure.removesuffix("_ms"), *cells)
    Console(width=None if sys.stdout.isatty() else 120).print(table)
    print(
        f"{report.rate_hz:.1f} predictions a second; loaded in {load_s:.1f} s; first prediction "
        f"{report.warm_up_s[0]:.2f} s; at most {report.peak_memory_bytes / 1e9:.2f} GB"
    )
    if arguments.json:
        content = {
            "device": report.device,
            "dtype": report.dtype,
            "embodiment_tag": tag,
            "denoising_steps": policy.network.steps,
            "load_s": load_s,
            "warm_up_s": report.warm_up_s,
            "peak_memory_bytes": report.peak_memory_bytes,
            "summary": summary,
            "times_s": report.times_s,
        }
        arguments.json.write_text(json.dumps(content, indent=2) + "\n")
    return 0


def _only(tags: list[str]) -> str:
    if len(tags) != 1:
        msg = f"--embodiment-tag is needed: the checkpoint has {', '.join(tags)}"
        raise GrootError(msg)
    return tags[0]


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        msg = "it must be 1 or more"
        raise argparse.ArgumentTypeError(msg)
    return number


if __name__ == "__main__":
    sys.exit(main())
