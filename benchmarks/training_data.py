"""What preparing training data costs the training process itself, and how fast it is in all.

A dataset of 2 cameras, 640x480, is written to a temporary folder. Workers make batches of 32 in the released models'
geometry (cv2, shortest edge 256, crop 0.95). First this process pretends to compute, and what it waits for data is its
own cost; then it takes batches as fast as they come. LeRobot 0.6.1's preprocessor takes 16.2 ms an observation of such
a batch on its main thread (cv2 geometry, 2 threads, uint8 frames that are decoded already). Run it on a calm machine:
``python benchmarks/training_data.py``.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

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
LEROBOT_MS_PER_OBSERVATION = 16.2
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, default=12)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--compute-s", type=float, default=2.0, help="pretended work of the device a batch")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        write_frames(Path(folder) / "dataset", episodes=4, rows=60)
        base = open_checkpoint(write_tiny_checkpoint(Path(folder) / "base", image_edge=256, crop_fraction=0.95))
        processor = Processor(base, "new_embodiment")
        windows = TrainingWindows(
            open_dataset(Path(folder) / "dataset"), window_spec(processor.embodiment.modalities, None)
        )
        draws = DrawOptions.of(base.processor, base.config, seed=0, frames=2)
        maker = BatchMaker(windows, processor, draws, state_dropout=0.2, input_format=ImageInputFormat.UINT8_0_255)
        waits, _ = take_batches(maker, options, options.compute_s)
        _, marks = take_batches(maker, options, 0.0)
    skipped = 3  # the first batches wait for the workers to start
    own_ms = 1000 * statistics.median(waits[skipped:-1]) / BATCH
    rate = BATCH / statistics.median(np.diff(marks)[skipped:])
    print(f"{options.workers} workers, batches of {BATCH}, 2 cameras 640x480, video decoded and augmented:")
    print(f"  the training process spends {own_ms:.3f} ms an observation ({own_ms / LEROBOT_MS_PER_OBSERVATION:.1%} of")
    print(f"  LeRobot's {LEROBOT_MS_PER_OBSERVATION} ms, without its decoding)")
    print(f"  {rate:.1f} samples/s in all; LeRobot's preprocessor alone {1000 / LEROBOT_MS_PER_OBSERVATION:.1f}")


if __name__ == "__main__":
    main()
