"""What preparing training data costs the training process itself, and how fast it is in all, beside LeRobot.

A dataset of 2 cameras, 640x480, is written to a temporary folder, and both sides make batches of 32 from it, with as
many workers, in the released models' geometry (cv2, shortest edge 256, crop 0.95). Each is first asked what a batch
costs the process that trains: ours while it pretends to compute, and waits for data; LeRobot's, which preprocesses
there, with frames that are decoded already. Then each takes batches as fast as they come. Both take turns. On a calm
machine::

    GROOT_LEROBOT_PYTHON=/path/to/environment/bin/python python -m benchmarks.training_data
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

from benchmarks.speed import CAMERAS, TAG, Worker, geometry_checkpoint
from groot_ros.checkpoint import open_checkpoint, write_tiny_checkpoint
from groot_ros.dataset.reader import open_dataset
from groot_ros.dataset.spec import DatasetSpec
from groot_ros.dataset.video_writer import VideoEncoding
from groot_ros.dataset.windows import TrainingWindows
from groot_ros.dataset.writer import DatasetWriter
from groot_ros.observation import ImageInputFormat
from groot_ros.processing.processor import Processor
from groot_ros.training.batches import BatchMaker
from groot_ros.training.draws import DrawOptions
from groot_ros.training.embodiment import window_spec
from groot_ros.training.loader import BatchLoader
from groot_ros.training.order import SampleOrder

BATCH = 32
SKIPPED = 3
"""The first batches wait for the workers to start."""
GROUPS = {"single_arm": ("shoulder", "elbow"), "gripper": ("gripper",)}


def write_frames(root: Path, episodes: int, rows: int) -> None:
    random = np.random.default_rng(0)
    spec = DatasetSpec(
        fps=30,
        robot_type="demo",
        state=GROUPS,
        action=GROUPS,
        cameras={"front": (480, 640), "wrist": (480, 640)},
        encoding=VideoEncoding(codec="h264"),
    )
    with DatasetWriter(root, spec) as writer:
        for episode in range(episodes):
            base = random.integers(0, 256, (2, 30, 40, 3), dtype=np.uint8).repeat(16, 1).repeat(16, 2)
            with writer.episode(f"episode_{episode}", threads=1) as stage:
                for row in range(rows):
                    values = {"single_arm": np.full(2, row / rows), "gripper": np.full(1, 0.1)}
                    images = {key: np.roll(base[i], 4 * row, 1) for i, key in enumerate(("front", "wrist"))}
                    stamp = row * 33_333_333
                    stamps = dict.fromkeys(images, stamp)
                    stage.add(
                        task="reach", state=values, action=values, images=images, stamp_ns=stamp, image_stamps_ns=stamps
                    )


def take_batches(maker: BatchMaker, options: argparse.Namespace, compute_s: float) -> tuple[list[float], list[float]]:
    """Seconds waited for each batch, and when each came."""
    waits: list[float] = []
    loader = BatchLoader(
        maker,
        SampleOrder(len(maker), 0, BATCH),
        end=options.batches,
        device=torch.device("cpu"),
        workers=options.workers,
        waited=waits.append,
    )
    marks = []
    for _ in loader:
        marks.append(time.perf_counter())
        time.sleep(compute_s)
    return waits, marks


def batch_maker(folder: Path) -> BatchMaker:
    """The data road of a training on a fresh dataset."""
    write_frames(folder / "dataset", episodes=4, rows=60)
    base = open_checkpoint(write_tiny_checkpoint(folder / "base", image_edge=256, crop_fraction=0.95))
    processor = Processor(base, "new_embodiment")
    windows = TrainingWindows(open_dataset(folder / "dataset"), window_spec(processor.embodiment.modalities, None))
    draws = DrawOptions.of(base.processor, base.config, seed=0, frames=2)
    return BatchMaker(windows, processor, draws, state_dropout=0.2, input_format=ImageInputFormat.UINT8_0_255)


def peer_worker(python: str, folder: Path, threads: int) -> Worker:
    """LeRobot with its preprocessor ready and warm."""
    checkpoint = geometry_checkpoint(folder / "peer", "cv2")
    worker = Worker(python, "speed_peer.py", threads)
    backbone = str(open_checkpoint(checkpoint).backbone.directory)
    worker.ask("open", checkpoint=str(checkpoint), tag=TAG, threads=threads, backbone=backbone, cameras=CAMERAS)
    worker.ask("preprocess", batch=BATCH, runs=1)
    return worker


def peer_road(peer: Worker, folder: Path, options: argparse.Namespace) -> list[float]:
    """Seconds between the batches of LeRobot's loader and preprocessor."""
    answer = peer.ask(
        "road", dataset=str(folder / "dataset"), batch=BATCH, batches=options.batches, workers=options.workers
    )
    seconds: list[float] = answer["seconds"][SKIPPED:]
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, default=12)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3, help="ours and LeRobot's take turns so often")
    parser.add_argument("--threads", type=int, default=2, help="of LeRobot's process")
    parser.add_argument("--compute-s", type=float, default=2.0, help="pretended work of the device a batch")
    options = parser.parse_args()
    python = os.environ.get("GROOT_LEROBOT_PYTHON")
    with tempfile.TemporaryDirectory() as folder:
        maker = batch_maker(Path(folder))
        peer = peer_worker(python, Path(folder), options.threads) if python else None
        waits: list[float] = []
        between: list[float] = []
        theirs: list[float] = []
        their_between: list[float] = []
        for _ in range(options.rounds):
            waits += take_batches(maker, options, options.compute_s)[0][SKIPPED:-1]
            between += np.diff(take_batches(maker, options, 0.0)[1])[SKIPPED:].tolist()
            if peer is not None:
                theirs += peer.ask("preprocess", batch=BATCH, runs=3)["seconds"]
                their_between += peer_road(peer, Path(folder), options)
        if peer is not None:
            peer.close()
    own_ms = 1000 * statistics.median(waits) / BATCH
    rate = BATCH / statistics.median(between)
    print(f"{options.workers} workers, batches of {BATCH}, 2 cameras 640x480, video decoded and augmented; medians:")
    print(f"  the training process spends {own_ms:.3f} ms an observation on data; {rate:.1f} samples/s in all")
    if not theirs:
        print("  LeRobot was not measured: GROOT_LEROBOT_PYTHON names no interpreter")
        return
    peer_ms = 1000 * statistics.median(theirs) / BATCH
    peer_rate = BATCH / statistics.median(their_between)
    print(f"  LeRobot's training process spends {peer_ms:.2f} ms an observation; {peer_rate:.1f} samples/s in all")
    print(f"  ours by theirs: {own_ms / peer_ms:.1%} of the time, {rate / peer_rate:.2f} times the samples/s")
    print(f"  and beside its preprocessor alone, as if its frames were decoded: {rate * peer_ms / 1000:.2f} times")


if __name__ == "__main__":
    main()
