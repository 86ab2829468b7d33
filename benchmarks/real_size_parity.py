"""Time and memory of a parity check at the real size of GR00T N1.7 (3.1 billion parameters) on the CPU.

    python benchmarks/real_size_parity.py build/real_size

Writes a checkpoint of the released dimensions with random weights (bfloat16, 6.3 GB on disk, one tensor in memory at a
time), records an artifact with it in one process and checks it in another. Random weights prove nothing about values,
but the whole road of a real check is travelled: sharded files, load, preprocess, network, decode, report.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import time
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file

from groot_ros.checkpoint import DiTConfig, ModelConfig, VLSelfAttentionConfig, open_checkpoint, write_tiny_checkpoint
from groot_ros.checkpoint.backbone import BUNDLED
from groot_ros.checkpoint.parameters import parameter_shapes
from groot_ros.checkpoint.writing import model_config_json, write_json
from groot_ros.observation import Observation
from groot_ros.parity.network import load_network
from groot_ros.parity.record import record_artifact
from groot_ros.processing.processor import Processor

TAG = "new_embodiment"
SHARD_BYTES = 500_000_000
TEXT = {
    "hidden_size": 2048,
    "num_hidden_layers": 28,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "intermediate_size": 6144,
    "vocab_size": 151_936,
}
VISION = {
    "hidden_size": 1024,
    "depth": 24,
    "num_heads": 16,
    "intermediate_size": 4096,
    "out_hidden_size": 2048,
    "num_position_embeddings": 2304,
    "deepstack_visual_indexes": [5, 11, 17],
}
NETWORK = ModelConfig(
    model_name="random-weights",
    select_layer=16,
    diffusion_model_cfg=DiTConfig(num_layers=32, num_attention_heads=32, attention_head_dim=48, output_dim=1024),
    vl_self_attention_cfg=VLSelfAttentionConfig(num_layers=4, num_attention_heads=32, attention_head_dim=64),
)


def main() -> int:
    """Write, record and check, and say what each took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="for the checkpoint and the artifact; 7 GB")
    parser.add_argument("--dtype", choices=("bfloat16", "float32"), default="bfloat16", help="float32 takes 13 GB")
    parser.add_argument("--record", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    checkpoint, artifacts = arguments.folder / "checkpoint", arguments.folder / "artifacts"
    if arguments.record:
        record(checkpoint, artifacts, arguments.dtype)
        return 0
    if not (checkpoint / "model.safetensors.index.json").is_file():
        write_checkpoint(checkpoint)
    timed("record", [__file__, str(arguments.folder), "--record", "--dtype", arguments.dtype])
    check = ["-m", "groot_ros", "parity", "check", str(artifacts), "--checkpoint", str(checkpoint), "--device", "cpu"]
    return timed("check", [*check, "--dtype", arguments.dtype])


def write_metadata(folder: Path) -> dict[str, Any]:
    """Write everything of a checkpoint of the released dimensions but its weights; return the backbone's config."""
    shutil.rmtree(folder, ignore_errors=True)
    write_tiny_checkpoint(folder, embodiment_tag=TAG, horizon=16, image_edge=256, crop_fraction=0.95)
    (folder / "model.safetensors").unlink()
    backbone_file = folder / BUNDLED / "config.json"
    backbone: dict[str, Any] = json.loads(backbone_file.read_text())
    backbone["text_config"].update(TEXT)
    backbone["text_config"]["rope_scaling"]["mrope_section"] = [24, 20, 20]
    backbone["vision_config"].update(VISION)
    write_json(backbone_file, backbone)
    write_json(folder / "config.json", model_config_json(NETWORK))
    processor_file = folder / "processor_config.json"
    processor = json.loads(processor_file.read_text())
    sizes = {"max_state_dim": NETWORK.max_state_dim, "max_action_dim": NETWORK.max_action_dim}
    # Both are written out: without them LeRobot crops another fraction than the file says.
    sizes |= {"image_target_size": [256, 256], "image_crop_size": [230, 230]}
    processor["processor_kwargs"].update(sizes, max_action_horizon=NETWORK.action_horizon)
    write_json(processor_file, processor)
    return backbone


def write_checkpoint(folder: Path) -> None:
    """Write a checkpoint of the released dimensions, a shard at a time."""
    backbone = write_metadata(folder)
    shards: dict[str, str] = {}
    pending: dict[str, torch.Tensor] = {}
    generator = torch.Generator().manual_seed(0)
    total = 0

    def flush() -> None:
        if pending:
            name = f"model-{len(set(shards.values())) + 1:05d}.safetensors"
            save_file(pending, folder / name, metadata={"format": "pt"})
            shards.update(dict.fromkeys(pending, name))
            pending.clear()

    for name, shape in parameter_shapes(NETWORK, backbone).items():
        pending[name] = random_parameter(name, shape, generator)
        total += 2 * prod(shape)
        if sum(2 * tensor.numel() for tensor in pending.values()) > SHARD_BYTES:
            flush()
    flush()
    write_json(folder / "model.safetensors.index.json", {"metadata": {"total_size": total}, "weight_map": shards})
    print(f"checkpoint: {total / 2e9:.2f} billion parameters, {total / 1e9:.1f} GB")


def random_parameter(name: str, shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    """Values with which activations keep their size."""
    if len(shape) == 1 or name.endswith(".b"):
        bias = name.endswith((".bias", ".b"))
        return torch.zeros(shape, dtype=torch.bfloat16) if bias else torch.ones(shape, dtype=torch.bfloat16)
    inputs = shape[1] if name.endswith(".W") else prod(shape[1:])
    scale = 0.02 if "embed" in name.rsplit(".", 2)[-2] else inputs**-0.5
    return torch.empty(shape, dtype=torch.bfloat16).normal_(0.0, scale, generator=generator)


def record(checkpoint: Path, artifacts: Path, dtype: str) -> None:
    """Write the artifact of one observation with two cameras."""
    opened = open_checkpoint(checkpoint)
    generator = np.random.default_rng(0)
    observation = Observation(
        images={key: generator.integers(0, 256, (1, 480, 640, 3), dtype=np.uint8) for key in ("front", "wrist")},
        state={"single_arm": np.zeros((1, 2), np.float32), "gripper": np.full((1, 1), 0.4, np.float32)},
        instruction="put the cube in the bowl",
        stamp_ns=0,
    )
    network = load_network(opened, torch.device("cpu"), dtype)
    arrays = record_artifact(Processor(opened, TAG), network, [observation], seed=42)
    artifacts.mkdir(exist_ok=True)
    np.savez(artifacts / f"ours_n1_7_{TAG}.npz", **arrays)


def timed(what: str, arguments: list[str]) -> int:
    """Run a Python process and say how long it took and what memory it needed."""
    began = time.perf_counter()
    status = subprocess.run([sys.executable, *arguments], check=False).returncode
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6
    print(f"{what}: {time.perf_counter() - began:.0f} s, at most {peak:.1f} GB so far, status {status}")
    return status


if __name__ == "__main__":
    sys.exit(main())
