"""``parity``: compare this implementation with the outputs of another, on this machine or from another environment."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from groot_ros.cli._arguments import add_tool
from groot_ros.cli._run import run

_EXAMPLES = """examples:
  python -m groot_ros parity dump
  python -m groot_ros parity check artifacts --checkpoint ~/models/GR00T-N1.7-LIBERO/libero_10 --device cuda
  python -m groot_ros parity train --checkpoint build/tiny --batch artifacts/original_n1_7_libero_sim.npz \\
      --other /envs/torch_nightly/bin/python

exit status: 0 everything agrees, 1 something does not, 2 nothing could be compared
"""


def main(argv: list[str] | None = None) -> int:
    """Run the tool."""
    arguments = _parser().parse_args(argv)
    return run(lambda: int(arguments.work(arguments)))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="parity",
        description="Compare this implementation of GR00T N1.7 with the outputs of another.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    tools = parser.add_subparsers(required=True, metavar="{dump,check,train}")

    dump = add_tool(tools, "dump", "say where the producers lie that run in the other's environment, and how")
    dump.set_defaults(work=_dump)

    check = add_tool(tools, "check", "compare with artifacts and print the table")
    check.add_argument(
        "artifacts",
        type=Path,
        nargs="?",
        default=os.environ.get("GROOT_N1_7_PARITY_DIR"),
        help="folder with *_n1_7_*.npz (default: GROOT_N1_7_PARITY_DIR)",
    )
    _add_checkpoint(check)
    check.add_argument("--tags", default="", help="comma-separated embodiment tags (default: all that have artifacts)")
    check.add_argument("--device", default=os.environ.get("GROOT_PARITY_DEVICE", "auto"))
    check.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32", help="of our network")
    check.add_argument("--atol", type=float, default=float(os.environ.get("GROOT_PARITY_ATOL", "1e-3")))
    check.add_argument("--rtol", type=float, default=float(os.environ.get("GROOT_PARITY_RTOL", "1e-3")))
    check.add_argument("--markdown", action="store_true", help="print Markdown in a terminal too")
    check.set_defaults(work=_check)

    train = add_tool(tools, "train", "compare a training step of two code versions or environments")
    _add_checkpoint(train)
    train.add_argument("--batch", type=Path, required=True, help="artifact with raw observations and actions")
    train.add_argument("--other", type=Path, default=Path(sys.executable), help="Python of the other environment")
    train.add_argument("--other-path", type=Path, help="folder with the other version of groot_ros")
    train.add_argument("--runs", type=int, default=3, help="of each side: their spread is the control")
    train.add_argument("--device", default=os.environ.get("GROOT_PARITY_DEVICE", "auto"))
    train.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32")
    train.add_argument("--seed", type=int, default=42, help="of noise, time and dropout")
    train.add_argument("--keep", type=Path, help="folder to keep the recorded steps in")
    train.set_defaults(work=_train)
    return parser


def _add_checkpoint(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--checkpoint", required=True, help="folder of the checkpoint, or a hub id")
    parser.add_argument("--backbone", type=Path, help="folder with the backbone's tokenizer and image processor")


def _dump(_arguments: argparse.Namespace) -> int:
    from groot_ros.parity import producers

    folder = Path(producers.__file__).parent
    print(
        f"The producers run in the environment of the other implementation; they do not need this package:\n\n"
        f"NVIDIA's original (an environment with its gr00t):\n"
        f"  python {folder / 'parity_dump.py'} --checkpoint CHECKPOINT --out artifacts [--device cuda]\n\n"
        f"LeRobot's policy (an environment with lerobot; parity_dump.py must lie beside it):\n"
        f"  python {folder / 'parity_dump_lerobot.py'} --checkpoint CHECKPOINT --out artifacts [--device cuda]\n\n"
        f"On another machine, copy the two files there. --help explains them. Then, here:\n"
        f"  python -m groot_ros parity check artifacts --checkpoint CHECKPOINT"
    )
    return 0


def _check(arguments: argparse.Namespace) -> int:
    from groot_ros.checkpoint import open_checkpoint
    from groot_ros.errors import ParityError
    from groot_ros.parity.artifact import find_artifacts, load_artifact
    from groot_ros.parity.check import check_artifact
    from groot_ros.parity.network import load_network
    from groot_ros.parity.report import markdown, print_report
    from groot_ros.parity.tolerances import Tolerances
    from groot_ros.policy import select_device
    from groot_ros.processing.processor import Processor

    if arguments.artifacts is None:
        msg = (
            "no folder of artifacts was given, and GROOT_N1_7_PARITY_DIR is not set; parity dump says how to make them"
        )
        raise ParityError(msg)
    tags = tuple(tag.strip() for tag in arguments.tags.split(",") if tag.strip())
    paths = find_artifacts(Path(arguments.artifacts), tags)
    checkpoint = open_checkpoint(arguments.checkpoint, backbone=arguments.backbone)
    device = select_device(arguments.device)
    network = load_network(checkpoint, device, arguments.dtype)
    tolerances = Tolerances.same_for_all(arguments.atol, arguments.rtol)
    reports = []
    for path in paths:
        artifact = load_artifact(path)
        reports.append(check_artifact(artifact, Processor(checkpoint, artifact.tag), network, tolerances))
    if sys.stdout.isatty() and not arguments.markdown:
        print_report(reports, str(device))
    else:
        print(markdown(reports, str(device)))
    return 0 if all(report.passed for report in reports) else 1


def _train(arguments: argparse.Namespace) -> int:
    from groot_ros.parity.training_runs import compare_versions

    result = compare_versions(
        checkpoint=arguments.checkpoint,
        backbone=arguments.backbone,
        batch=arguments.batch,
        other_python=arguments.other,
        other_path=arguments.other_path,
        runs=arguments.runs,
        device=arguments.device,
        dtype=arguments.dtype,
        seed=arguments.seed,
        keep=arguments.keep,
    )
    print(result.markdown())
    return 0 if result.inside else 1
