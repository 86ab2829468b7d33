"""Predictions a second for several robots: together in one run of the network, and one robot after the other.

    python -m benchmarks.robots --checkpoint DIR --threads 1

From the observation to the chunk, frames of 640x480. Both ways take turns, so that the ratio means something also where
the machine does other work.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch

from groot_ros.observation import Observation
from groot_ros.policy import GrootPolicy, PredictionRequest

ROBOTS = (1, 2, 4, 8)
WARM_UP_RUNS = 2


@dataclass(frozen=True)
class Row:
    """Medians for a number of robots, predictions a second."""

    robots: int
    together_hz: float
    in_turn_hz: float

    @property
    def ratio(self) -> float:
        """How many times more predictions come together."""
        return self.together_hz / self.in_turn_hz


def observation(policy: GrootPolicy, seed: int) -> Observation:
    """Noise as frames, and the mean state."""
    random, statistics = np.random.default_rng(seed), policy.embodiment.statistics
    modalities = policy.embodiment.modalities
    frames, rows = len(modalities.video.delta_indices), len(modalities.state.delta_indices)
    return Observation(
        images={
            key: random.integers(0, 256, (frames, 480, 640, 3), dtype=np.uint8)
            for key in modalities.video.modality_keys
        },
        state={
            key: np.tile(statistics.state[key].mean.astype(np.float32), (rows, 1))
            for key in modalities.state.modality_keys
        },
        instruction="pick up the cube",
        stamp_ns=0,
    )


def seconds(work: Callable[[], object]) -> float:
    """How long something takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def measure(policy: GrootPolicy, robots: int, runs: int) -> Row:
    """Both ways in turn."""
    requests = [PredictionRequest(observation(policy, seed), seed=seed) for seed in range(robots)]
    together_s, in_turn_s = [], []
    for _ in range(WARM_UP_RUNS + runs):
        together_s.append(seconds(lambda: policy.predict_batch(requests)))
        in_turn_s.append(seconds(lambda: [policy.predict_batch([request]) for request in requests]))
    first, second = (robots / statistics.median(times[WARM_UP_RUNS:]) for times in (together_s, in_turn_s))
    return Row(robots, first, second)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoint", type=Path, required=True, help="a GR00T N1.7 checkpoint")
    parser.add_argument("--embodiment-tag", default="new_embodiment")
    parser.add_argument("--rate", type=float, help="rows a second, where the checkpoint does not say")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N")
    parser.add_argument("--threads", type=int, default=2, help="threads of torch (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=30, help="runs of each (default: %(default)s)")
    parser.add_argument("--out", type=Path, help="folder for robots.json")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    policy = GrootPolicy.from_checkpoint(
        options.checkpoint, options.embodiment_tag, device=options.device, rate_hz=options.rate
    )
    rows = [measure(policy, robots, options.runs) for robots in ROBOTS]
    print("robots  together, 1/s  in turn, 1/s  ratio")
    for row in rows:
        print(f"{row.robots:6d}  {row.together_hz:13.1f}  {row.in_turn_hz:12.1f}  {row.ratio:5.2f}")
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "robots.json").write_text(json.dumps([asdict(row) for row in rows], indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
