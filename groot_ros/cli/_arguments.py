"""What several command-line tools read in the same way."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from typing import Any


def split_ros_arguments(arguments: Sequence[str] | None) -> tuple[list[str], list[str]]:
    """Part a tool's own arguments from ROS's, which begin with ``--ros-args``; None stands for ``sys.argv``."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    split = given.index("--ros-args") if "--ros-args" in given else len(given)
    return given[:split], given[split:]


def add_tool(tools: Any, name: str, what: str) -> argparse.ArgumentParser:  # noqa: ANN401 - argparse hides its type
    """Add a tool within a tool, whose own ``--help`` says what it does, too."""
    parser: argparse.ArgumentParser = tools.add_parser(name, help=what, description=f"{what[0].upper()}{what[1:]}.")
    return parser


def image_size(text: str) -> tuple[int, int]:
    """Read ``WIDTHxHEIGHT``, in pixels."""
    match = re.fullmatch(r"([1-9]\d*)x([1-9]\d*)", text)
    if match is None:
        msg = f"{text!r} is not a size: write it as 640x480"
        raise argparse.ArgumentTypeError(msg)
    return int(match[1]), int(match[2])
