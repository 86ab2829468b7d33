"""``finetune``: from a dataset to a checkpoint that the policy node loads; runs on machines without ROS."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import yaml

from groot_ros.cli._run import run
from groot_ros.errors import TrainingError

_EXAMPLES = """examples:
  python -m groot_ros finetune --dataset D --contract C.yaml --base-model ~/models/GR00T-N1.7-3B --output O
  python -m groot_ros finetune --config my_training.yaml --base-model nvidia/GR00T-N1.7-3B --allow-download
  python -m groot_ros finetune --config my_training.yaml --set steps=20000 --set tune.visual=true
  python -m groot_ros finetune --config my_training.yaml --resume
  accelerate launch --num_processes 4 -m groot_ros finetune --config my_training.yaml
"""
_PATHS = ("dataset", "contract", "base_model", "output")


def main(argv: list[str] | None = None) -> int:
    """Run the tool."""
    arguments = _parser().parse_args(argv)
    return run(lambda: _finetune(arguments))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="finetune",
        description="Fine-tune GR00T N1.7 on a dataset.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--config", type=Path, help="YAML with any of the keys in docs/training.md")
    parser.add_argument("--dataset", help="folder of the LeRobot dataset")
    parser.add_argument("--contract", help="robot contract: describes a new embodiment")
    parser.add_argument("--base-model", help="checkpoint folder or hub id")
    parser.add_argument("--output", help="folder of the result")
    parser.add_argument("--absolute", action="append", metavar="GROUP", help="action group that stays absolute")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="any other key of the file")
    parser.add_argument("--allow-download", action="store_true", help="fetch missing files from the Hugging Face hub")
    parser.add_argument("--resume", action="store_true", help="go on from the newest checkpoint of the output folder")
    return parser


def _finetune(arguments: argparse.Namespace) -> int:
    from groot_ros.nodes.memory import keep_freed_memory
    from groot_ros.training.config import load_config

    keep_freed_memory()  # a step on the CPU needs the memory of the last one again: a quarter of its time

    overrides: dict[str, Any] = {key: getattr(arguments, key) for key in _PATHS if getattr(arguments, key) is not None}
    if arguments.absolute:
        overrides["absolute"] = arguments.absolute
    if arguments.allow_download:
        overrides["allow_download"] = True
    for entry in arguments.set:
        key, equals, value = entry.partition("=")
        if not key or not equals:
            msg = f"--set {entry}: write it as key=value, such as --set steps=20000"
            raise TrainingError(msg)
        try:
            overrides[key] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            msg = f"--set {entry}: the value is not YAML"
            raise TrainingError(msg) from error
    config = load_config(arguments.config, overrides)
    try:
        from groot_ros.training.finetune import finetune
    except ImportError as error:
        msg = f"finetune needs more than a policy does ({error}); pip install -r requirements/train.txt"
        raise TrainingError(msg) from error
    finetune(config, resume=arguments.resume)
    return 0
