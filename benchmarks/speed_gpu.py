"""Everything about speed that needs a GPU, in one run of a few minutes.

    python -m benchmarks.speed_gpu --out build/bench_gpu

At the released dimensions with random weights, made on the device: whether the images made there are those of OpenCV,
whether the captured graphs give what the same operations give one by one, NVIDIA's columns, what crosses between host
and device, and the floor: every weight read once and every operation done at the device's best. ``--device cpu --tiny``
runs the same script with a small network, to see that it works before a GPU is lent.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.real_size_parity import TAG, random_parameter, write_metadata
from benchmarks.robots import measure, observation
from groot_ros.checkpoint import open_checkpoint, write_tiny_checkpoint
from groot_ros.checkpoint.parameters import parameter_shapes
from groot_ros.evaluation.speed import measure_speed
from groot_ros.model.fast import load_fast
from groot_ros.policy import GrootPolicy, select_device
from groot_ros.prediction import DirectRoad, GraphRoad
from groot_ros.processing.device_geometry import DeviceGeometry
from groot_ros.processing.images_cv2 import Cv2Geometry
from groot_ros.processing.images_torch import TorchGeometry
from groot_ros.processing.processor import Processor
from groot_ros.processing.rollout import rollout_transform

SIZES = [(480, 640), (360, 640), (720, 1280), (1080, 1920), (600, 800), (240, 320), (224, 224), (101, 173), (512, 512)]
GEOMETRIES = {
    "cv2": Cv2Geometry(256, 0.95),
    "cv2 with bars": Cv2Geometry(224, 230 / 256, letter_box=True),
    "torch bilinear": TorchGeometry((256, 256), (230, 230), (256, 256), "bilinear", rounded_offset=True),
    "torch bicubic": TorchGeometry((256, 256), (243, 243), (224, 224), "bicubic", rounded_offset=False),
}
PEAKS = {"H200": (4.8e12, 989e12), "H100": (3.35e12, 989e12)}
"""Bytes and bfloat16 operations a second that the maker names."""


def main() -> int:
    """Run every part; a part that fails is reported and does not stop the others."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("build/bench_gpu"))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--tiny", action="store_true", help="a small network instead of the released dimensions")
    parser.add_argument("--runs", type=int, default=50)
    arguments = parser.parse_args()
    device = select_device(arguments.device)
    arguments.out.mkdir(parents=True, exist_ok=True)
    policy = random_policy(arguments.out / "checkpoint", device, tiny=arguments.tiny)
    parts: dict[str, Callable[[], dict[str, Any]]] = {
        "geometry": lambda: geometry_identity(device),
        "graphs": lambda: graphs_equal_operations(policy),
        "columns": lambda: columns(policy, arguments.runs),
        "robots": lambda: {str(count): asdict(measure(policy, count, arguments.runs)) for count in (1, 2, 4)},
        "transfers": lambda: transfers(policy),
        "floor": lambda: floor(policy),
    }
    results: dict[str, Any] = {"device": str(device), "torch": torch.__version__}
    for name, part in parts.items():
        start = time.perf_counter()
        try:
            results[name] = part()
        except Exception as error:  # noqa: BLE001 - the other parts must still run on a lent machine
            results[name] = {"fault": f"{type(error).__name__}: {error}"}
        results[name]["took_s"] = time.perf_counter() - start
        print(f"{name}: {json.dumps(results[name])}", flush=True)
        (arguments.out / "speed_gpu.json").write_text(json.dumps(results, indent=2))
    return 1 if any("fault" in result for result in results.values() if isinstance(result, dict)) else 0


def random_policy(folder: Path, device: torch.device, *, tiny: bool) -> GrootPolicy:
    """A policy with random weights that are made on the device."""
    if tiny:
        shutil.rmtree(folder, ignore_errors=True)
        write_tiny_checkpoint(folder, embodiment_tag=TAG)
    else:
        write_metadata(folder)
    checkpoint = open_checkpoint(folder)
    generator = torch.Generator(device).manual_seed(0)

    def tensors(rows: Mapping[str, int]) -> Iterator[tuple[str, Tensor]]:
        with torch.device(device):
            for name, shape in parameter_shapes(checkpoint.config, checkpoint.backbone.config).items():
                own = (1, *shape[1:]) if name in rows else shape
                yield name, random_parameter(name, own, generator)

    processor = Processor(checkpoint, TAG)
    network = load_fast(
        checkpoint.config,
        checkpoint.backbone.config,
        tensors,
        processor.embodiment.id,
        device=device,
        dtype=torch.bfloat16,
    )
    return GrootPolicy(checkpoint, processor, network, rate_hz=30.0, rollout=rollout_transform("none", TAG))


def geometry_identity(device: torch.device) -> dict[str, Any]:
    """Values that differ between the device and OpenCV or torch on the CPU: none is allowed."""
    different = {}
    for name, geometry in GEOMETRIES.items():
        shape = DeviceGeometry(geometry)
        count = 0
        for size in SIZES:
            frames = np.random.default_rng(sum(size)).integers(0, 256, (2, *size, 3), dtype=np.uint8)
            found = shape(torch.from_numpy(frames).to(device)).cpu().numpy()
            count += int(np.count_nonzero(found != geometry(frames)))
        different[name] = count
    return {"differing_values": different, "identical": not any(different.values())}


def graphs_equal_operations(policy: GrootPolicy) -> dict[str, Any]:
    """The largest difference of normalised actions between captured stages and the same operations one by one."""
    with torch.inference_mode():
        noise = policy.noise(1, seed=0)
        roads = (GraphRoad(policy.processor, policy.network), DirectRoad(policy.processor, policy.network))
        captured, direct = (road([observation(policy, 0)], noise, lambda: [None]).actions for road in roads)
        again = roads[0]([observation(policy, 0)], noise, lambda: [None]).actions
    return {
        "largest_difference": float((captured - direct).abs().max()),
        "equal": bool(torch.equal(captured, direct)),
        "repeatable": bool(torch.equal(captured, again)),
    }


def columns(policy: GrootPolicy, runs: int) -> dict[str, Any]:
    """NVIDIA's columns, milliseconds."""
    report = measure_speed(policy, runs=runs, frame_size=(480, 640))
    return {
        "device": report.device,
        "dtype": report.dtype,
        "cameras": len(policy.embodiment.modalities.video.modality_keys),
        "summary": report.summary(),
        "warm_up_s": report.warm_up_s,
        "peak_memory_gb": report.peak_memory_bytes / 1e9,
    }


def transfers(policy: GrootPolicy) -> dict[str, Any]:
    """The copies between host and device of one warm prediction, by direction; and every wait of the host."""
    seen = observation(policy, 1)
    policy.predict(seen, seed=1)
    activities = [torch.profiler.ProfilerActivity.CPU]
    if policy.device.type == "cuda":
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    with torch.profiler.profile(activities=activities) as profile:
        policy.predict(seen, seed=1)
    counts = {event.key: event.count for event in profile.key_averages()}
    wanted = ("Memcpy", "Synchronize", "cudaGraphLaunch", "cudaLaunchKernel")
    return {
        "events": {name: count for name, count in counts.items() if any(word in name for word in wanted)},
        "frame_bytes": sum(frames.nbytes for frames in seen.images.values()),
    }


def floor(policy: GrootPolicy) -> dict[str, Any]:
    """Time in which the device could read every weight once (the action head once a step), by the maker's figures."""
    shapes = parameter_shapes(policy.checkpoint.config, policy.checkpoint.backbone.config)
    once = steps = 0
    for name, shape in shapes.items():
        count = int(np.prod(shape))
        if "embed_tokens" in name or "norm1.linear" in name or ".proj_out_1." in name:
            continue  # looked up, or a table
        if name.endswith((".W", ".b")):
            count //= shape[0]
        in_steps = name.startswith("action_head.model.") or ".action_" in name
        if ".to_k." in name or ".to_v." in name:
            block = int(name.split(".")[3]) if in_steps else 0
            in_steps = in_steps and block % 2 == 1
        steps, once = steps + count * in_steps, once + count * (not in_steps)
    read = 2 * (once + policy.network.steps * steps)
    name = torch.cuda.get_device_name() if policy.device.type == "cuda" else "cpu"
    peak = next((figures for key, figures in PEAKS.items() if key in name), None)
    return {"device": name, "bytes_read": read, "milliseconds": None if peak is None else read / peak[0] * 1e3}


if __name__ == "__main__":
    sys.exit(main())
