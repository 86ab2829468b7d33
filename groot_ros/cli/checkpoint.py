"""``checkpoint``: inspect a checkpoint, make it whole for a robot without network, or write a tiny one."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from groot_ros.checkpoint import Checkpoint, bundle, open_checkpoint, write_tiny_checkpoint
from groot_ros.cli._arguments import add_tool, image_size
from groot_ros.cli._run import run

_EXAMPLES = """examples:
  python -m groot_ros checkpoint inspect ~/models/GR00T-N1.7-DROID
  python -m groot_ros checkpoint inspect nvidia/GR00T-N1.7-3B --allow-download --camera-size 1280x720
  python -m groot_ros checkpoint bundle ~/models/my_robot --backbone ~/models/Cosmos-Reason2-2B
  python -m groot_ros checkpoint tiny build/tiny --camera front --camera wrist
"""


def main(argv: list[str] | None = None) -> int:
    """Run the tool."""
    arguments = _parser().parse_args(argv)
    return run(lambda: int(arguments.work(arguments)))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="checkpoint",
        description="Inspect a GR00T N1.7 checkpoint, bundle its backbone files for offline use, or write a tiny one.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    tools = parser.add_subparsers(required=True, metavar="{inspect,bundle,tiny}")

    inspect = add_tool(tools, "inspect", "print what is needed to wire a robot; reads no weights")
    _add_source(inspect)
    inspect.add_argument(
        "--camera-size", type=image_size, default=(640, 480), metavar="WIDTHxHEIGHT", help="of a camera"
    )
    inspect.add_argument("--json", action="store_true", help="print JSON instead of text")
    inspect.set_defaults(work=_inspect)

    bundling = add_tool(tools, "bundle", "put the backbone's tokenizer and image processor into the checkpoint")
    _add_source(bundling)
    bundling.add_argument("--output", type=Path, help="write a whole copy there and leave the checkpoint as it is")
    bundling.add_argument("--half", action="store_true", help="write the copy's float32 weights as bfloat16")
    bundling.set_defaults(work=_bundle)

    tiny = add_tool(tools, "tiny", "write a checkpoint with about 3 million random weights in the true format")
    tiny.add_argument("out", type=Path, help="a folder that does not exist yet")
    tiny.add_argument("--embodiment-tag", default="new_embodiment", help="default: %(default)s")
    tiny.add_argument("--camera", action="append", metavar="KEY", help="once for each camera (default: front, wrist)")
    tiny.add_argument("--horizon", type=int, default=8, help="rows of an action chunk (default: %(default)s)")
    tiny.add_argument("--fps", type=float, default=10.0, help="rows a second (default: %(default)s)")
    tiny.add_argument("--image-edge", type=int, default=64, help="shortest edge of the images (default: %(default)s)")
    tiny.add_argument("--seed", type=int, default=0, help="of the weights (default: %(default)s)")
    tiny.set_defaults(work=_tiny)
    return parser


def _add_source(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", help="a folder, or a hub id: owner/name or owner/name/folder")
    parser.add_argument("--backbone", type=Path, help="folder with the backbone's tokenizer and image processor")
    parser.add_argument("--allow-download", action="store_true", help="fetch missing files from the Hugging Face hub")


def _open(arguments: argparse.Namespace) -> Checkpoint:
    return open_checkpoint(arguments.path, backbone=arguments.backbone, allow_download=arguments.allow_download)


def _inspect(arguments: argparse.Namespace) -> int:
    from groot_ros.checkpoint.summary import summarise

    checkpoint = _open(arguments)
    report = {**summarise(checkpoint), "images": _images(checkpoint, arguments.camera_size)}
    if arguments.json:
        print(json.dumps(report, indent=2))
    else:
        from groot_ros.cli._checkpoint_report import print_report

        print_report(report)
    return 0


def _images(checkpoint: Checkpoint, camera_size: tuple[int, int]) -> dict[str, Any]:
    """Send an empty frame through the real geometry: what comes out is what the network will see."""
    import numpy as np

    from groot_ros.processing.images import image_geometry
    from groot_ros.processing.patches import PatchEncoder

    width, height = camera_size
    geometry = image_geometry(checkpoint.processor, checkpoint.origin)
    shaped = geometry(np.zeros((1, height, width, 3), dtype=np.uint8))
    patches = PatchEncoder.from_preprocessor(checkpoint.backbone.preprocessor)
    seen_height, seen_width = patches.resized_size(*shaped.shape[1:3])
    return {
        "geometry": _geometry_in_words(checkpoint),
        "camera_size": [width, height],
        "shaped_size": [shaped.shape[2], shaped.shape[1]],
        "network_size": [seen_width, seen_height],
        "tokens": patches.tokens(*shaped.shape[1:3]),
    }


def _geometry_in_words(checkpoint: Checkpoint) -> str:
    config = checkpoint.processor
    parts = ["padded to a square"] if config.letter_box_transform else []
    target = config.image_target_size
    if config.shortest_image_edge is not None and config.use_albumentations:
        parts.append(f"shortest edge {config.shortest_image_edge}")
    elif target is not None and config.use_albumentations:
        parts.append(f"shortest edge {target[0]}")
    elif target is not None:
        parts.append(f"squeezed to {target[1]}x{target[0]}")
    if config.crop_fraction is not None and config.use_albumentations:
        parts.append(f"centre crop {config.crop_fraction:g}")
    elif config.image_crop_size is not None and target is not None:
        parts.append(f"centre crop {config.image_crop_size[0]}/{target[0]}")
    parts.append("OpenCV area" if config.use_albumentations else "torch antialiased")
    return ", ".join(parts)


def _bundle(arguments: argparse.Namespace) -> int:
    whole = bundle(_open(arguments), arguments.output, half=arguments.half)
    print(f"{whole} is whole: it needs no other file and no network.")
    return 0


def _tiny(arguments: argparse.Namespace) -> int:
    out = write_tiny_checkpoint(
        arguments.out,
        embodiment_tag=arguments.embodiment_tag,
        cameras=tuple(arguments.camera or ("front", "wrist")),
        horizon=arguments.horizon,
        fps=arguments.fps,
        image_edge=arguments.image_edge,
        seed=arguments.seed,
    )
    print(f"{out}: a tiny checkpoint with random weights, so a robot that it drives moves without purpose.")
    return 0
