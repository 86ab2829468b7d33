"""Speed beside LeRobot on the same frames in one run: medians, 95th percentiles, ratios, JSON and a chart.

    python -m benchmarks.speed                                             # preprocessing
    python -m benchmarks.speed --checkpoint build/real_size/checkpoint     # and the whole prediction

The two sides run in processes of their own and take turns, run by run, so that both meet the same weather of the
machine. The peer is LeRobot in the environment whose Python ``GROOT_LEROBOT_PYTHON`` names; without it our side is
measured alone. A checkpoint of the released dimensions is written by ``real_size_parity.py``. Nobody else should use
the machine: one busy process beside makes two-thread timings ten times slower; the load is recorded with the figures.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

from benchmarks.speed_worker import camera_frames
from groot_ros.checkpoint import open_checkpoint, write_tiny_checkpoint

mpl.use("agg")
import matplotlib.pyplot as plt

HERE = Path(__file__).parent
TAG = "new_embodiment"
CAMERAS = ["front", "wrist"]
THREADS = 2
BATCHES = {1: 30, 32: 3}
"""Batch to runs of each side."""
WARM_UP_RUNS = 2
PEER_NUMBERS = ("bfloat16", "default")
ANSWER_S = 1800


@dataclass
class Measured:
    """Seconds of one side in one comparison."""

    name: str
    seconds: list[float] = field(default_factory=list)

    def row(self) -> dict[str, float]:
        """Milliseconds."""
        values = np.array(self.seconds) * 1e3
        return {
            "minimum_ms": float(values.min()),
            "median_ms": float(np.median(values)),
            "p95_ms": float(np.percentile(values, 95)),
            "runs": len(values),
        }


class Worker:
    """A side in a process of its own."""

    def __init__(self, python: str, script: str, threads: int) -> None:
        environment = os.environ | {
            "OMP_NUM_THREADS": str(threads),
            "HF_HUB_OFFLINE": "1",
            "TRANSFORMERS_VERBOSITY": "error",
        }
        if python == sys.executable:
            environment["PYTHONPATH"] = f"{HERE.parent}{os.pathsep}{environment.get('PYTHONPATH', '')}"
        self._process = subprocess.Popen(
            [python, str(HERE / script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )

    def ask(self, do: str, **request: object) -> dict[str, Any]:
        """Send a request and wait for the answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": do, **request}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        answer: dict[str, Any] = json.loads(line) if line else {"fault": f"{do}: the process ended"}
        if "fault" in answer:
            msg = f"{do}: {answer['fault']}"
            raise SystemExit(msg)
        return answer

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(ANSWER_S)


@contextmanager
def sides(checkpoint: Path, peer_python: str | None, threads: int) -> Iterator[dict[str, Worker]]:
    """Our worker, and the peer's where there is one, with a checkpoint open."""
    workers = {"ours": Worker(sys.executable, "speed_ours.py", threads)}
    if peer_python:
        workers["peer"] = Worker(peer_python, "speed_peer.py", threads)
    backbone = str(open_checkpoint(checkpoint).backbone.directory)
    try:
        for name, worker in workers.items():
            own = {"backbone": backbone, "cameras": CAMERAS} if name == "peer" else {}
            worker.ask("open", checkpoint=str(checkpoint), tag=TAG, threads=threads, **own)
        yield workers
    finally:
        for worker in workers.values():
            worker.close()


def preprocessing(out: Path, peer_python: str | None, threads: int) -> dict[str, Any]:
    """Both geometries, one observation and a batch of 32: interleaved run by run."""
    results: dict[str, Any] = {}
    for geometry in ("cv2", "torch"):
        checkpoint = geometry_checkpoint(out / f"checkpoint_{geometry}", geometry)
        with sides(checkpoint, peer_python, threads) as workers:
            for batch, runs in BATCHES.items():
                files = {name: str(out / f"inputs_{geometry}_{batch}_{name}.npz") for name in workers}
                for name, worker in workers.items():
                    worker.ask("preprocess", batch=batch, runs=WARM_UP_RUNS, out=files[name])
                measured = {name: Measured(name) for name in workers}
                for _ in range(runs):
                    for name, worker in workers.items():
                        measured[name].seconds += worker.ask("preprocess", batch=batch, runs=1)["seconds"]
                key = f"preprocessing, {geometry} geometry, batch {batch}"
                results[key] = compared(measured) | {"equal_outputs": equal_inputs(files)}
    return results


def geometry_checkpoint(folder: Path, geometry: str) -> Path:
    """A tiny checkpoint whose frames are shaped as the released ones are, on either path."""
    if not (folder / "config.json").is_file():
        write_tiny_checkpoint(folder, embodiment_tag=TAG, cameras=CAMERAS, image_edge=256, crop_fraction=0.95)
        path = folder / "processor_config.json"
        content = json.loads(path.read_text())
        kwargs = content["processor_kwargs"]
        # Both sizes are written out: without them LeRobot crops another fraction than the file says.
        sizes = {"image_target_size": [256, 256], "image_crop_size": [230, 230]}
        kwargs |= {"max_state_dim": 132, "max_action_dim": 132, **sizes}
        if geometry == "torch":
            kwargs |= {"use_albumentations": False, "shortest_image_edge": None, "crop_fraction": None}
        path.write_text(json.dumps(content))
    return folder


def equal_inputs(files: dict[str, str]) -> str:
    """Whether both sides made the same tensors."""
    if len(files) < 2:
        return "alone"
    ours, peer = (np.load(files[name]) for name in ("ours", "peer"))
    different = [
        name
        for name in ("input_ids", "attention_mask", "image_grid_thw", "pixel_values")
        if ours[name].shape != peer[name].shape or not np.array_equal(ours[name], peer[name])
    ]
    return "yes" if not different else f"no: {', '.join(different)}"


def whole_prediction(
    out: Path, checkpoint: Path, peer_python: str | None, runs: int, threads: int, *, float32: bool
) -> dict[str, Any]:
    """Load and predict: ours in bfloat16 beside the peer in bfloat16, then what needs float32 after we have gone."""
    config = open_checkpoint(checkpoint).config
    for file in checkpoint.glob("*.safetensors"):
        with file.open("rb") as stream:  # a warm load is measured: the files are in the page cache for both
            while stream.read(1 << 24):
                pass
    noise = out / "noise.npy"
    shape = (8, config.action_horizon, config.max_action_dim)
    np.save(noise, np.random.default_rng(0).standard_normal(shape, np.float32))
    results: dict[str, Any] = {}
    actions = {name: str(out / f"actions_{name}.npy") for name in ("ours", *PEER_NUMBERS)}
    with sides(checkpoint, peer_python, threads) as workers:
        loads = {name: worker.ask("load", dtype="bfloat16") for name, worker in workers.items()}
        results["load"] = {name: load["seconds"][0] for name, load in loads.items()}
        files = {"ours": actions["ours"], "peer": actions["bfloat16"]}
        measured = {name: Measured(name) for name in workers}
        stages: dict[str, list[float]] = {}
        for run in range(runs + 1):  # the first one is not counted
            for name, worker in workers.items():
                answer = worker.ask("predict", runs=1, noise=str(noise), out=files[name])
                results.setdefault("peak_memory_gb", {})[name] = answer["peak_memory_gb"]
                if not run:
                    results.setdefault("first_prediction", {})[name] = answer["seconds"][0]
                else:
                    measured[name].seconds += answer["seconds"]
                    for stage, seconds in answer.get("stages", {}).items():
                        stages.setdefault(stage, []).extend(seconds)
        results["peer in bfloat16"] = compared(measured)
        results["stages_ms"] = {stage: float(np.median(seconds)) * 1e3 for stage, seconds in stages.items()}
    if peer_python and float32:
        with sides(checkpoint, peer_python, threads) as workers:
            workers.pop("ours").close()
            peer = workers["peer"]
            results["load"]["peer_default"] = peer.ask("load", dtype="default")["seconds"][0]
            default = Measured("peer")
            for run in range(runs + 1):
                answer = peer.ask("predict", runs=1, noise=str(noise), out=actions["default"])
                if not run:
                    results["first_prediction"]["peer_default"] = answer["seconds"][0]
                else:
                    default.seconds += answer["seconds"]
            results["peak_memory_gb"]["peer_default"] = answer["peak_memory_gb"]
        results["peer's default"] = compared({"ours": measured["ours"], "peer": default})
    if float32:
        results["errors against float32"] = errors(checkpoint, noise, actions, out, threads)
    return results


def errors(checkpoint: Path, noise: Path, actions: dict[str, str], out: Path, threads: int) -> dict[str, float]:
    """Root mean square of the differences from our plain network in float32, the reference of all (13 GB)."""
    exact_file = str(out / "actions_float32.npy")
    with sides(checkpoint, None, threads) as workers:
        workers["ours"].ask("load", dtype="float32", plain=True)
        workers["ours"].ask("predict", runs=1, noise=str(noise), out=exact_file)
    exact = np.load(exact_file)
    present = {name: np.load(path) for name, path in actions.items() if Path(path).is_file()}
    return {name: float(np.sqrt(np.mean((found - exact) ** 2))) for name, found in present.items()}


def compared(measured: dict[str, Measured]) -> dict[str, Any]:
    """Both sides, and how many times as long the peer takes."""
    rows: dict[str, Any] = {name: side.row() for name, side in measured.items()}
    if "peer" in rows:
        rows["ratio"] = {key: rows["peer"][key] / rows["ours"][key] for key in ("minimum_ms", "median_ms")}
    return rows


def table(results: dict[str, Any]) -> str:
    """The comparisons in Markdown."""
    lines = [
        "| comparison | ours median (p95) | peer median (p95) | ratio of medians | of minima | equal outputs |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name, rows in results.items():
        if "ours" not in rows or not isinstance(rows["ours"], dict):
            continue
        cells = [
            f"{rows[side]['median_ms']:.1f} ({rows[side]['p95_ms']:.1f}) ms" if side in rows else "not measured"
            for side in ("ours", "peer")
        ]
        ratio = rows.get("ratio")
        cells += [f"{ratio[key]:.2f}" if ratio else "" for key in ("median_ms", "minimum_ms")]
        lines.append(f"| {name} | {' | '.join(cells)} | {rows.get('equal_outputs', '')} |")
    return "\n".join(lines)


def chart(results: dict[str, Any], path: Path) -> None:
    """The ratios as bars."""
    ratios = {name: rows["ratio"]["median_ms"] for name, rows in results.items() if "ratio" in rows}
    if not ratios:
        return
    figure, axes = plt.subplots(figsize=(8, 0.6 * len(ratios) + 1.5), layout="constrained")
    axes.barh(list(ratios), list(ratios.values()), color="tab:green")
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.set_xlabel("times as fast as LeRobot (medians)")
    axes.invert_yaxis()
    figure.savefig(path)


def main() -> int:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("build/bench"))
    parser.add_argument("--checkpoint", type=Path, help="of the released dimensions, for the whole prediction")
    parser.add_argument("--without-float32", action="store_true", help="leave out what needs 17 GB of memory")
    parser.add_argument("--runs", type=int, default=5, help="whole predictions of each side")
    parser.add_argument("--threads", type=int, default=THREADS)
    arguments = parser.parse_args()
    out: Path = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    peer_python = os.environ.get("GROOT_LEROBOT_PYTHON")
    if not peer_python:
        print("GROOT_LEROBOT_PYTHON names no Python with lerobot: our side is measured alone")
    load = os.getloadavg()
    results = preprocessing(out, peer_python, arguments.threads)
    if arguments.checkpoint:
        results |= whole_prediction(
            out,
            arguments.checkpoint,
            peer_python,
            arguments.runs,
            arguments.threads,
            float32=not arguments.without_float32,
        )
    machine = {"threads": arguments.threads, "load_before": load, "load_after": os.getloadavg()}
    frames = {camera: list(values.shape) for camera, values in camera_frames(CAMERAS, 0).items()}
    (out / "speed.json").write_text(json.dumps({"machine": machine, "frames": frames, "results": results}, indent=2))
    chart(results, out / "speed.png")
    print(table(results))
    for name in ("load", "first_prediction", "stages_ms", "peak_memory_gb", "errors against float32"):
        if name in results:
            print(f"{name}: " + ", ".join(f"{key} {value:.4g}" for key, value in results[name].items()))
    print(f"load of the machine: {load[0]:.1f} before, {machine['load_after'][0]:.1f} after; {out / 'speed.json'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
