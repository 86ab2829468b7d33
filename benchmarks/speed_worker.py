"""What both sides of the speed comparison share: the same observations, and the loop that answers the driver.

Runs in the environments of both sides, so it needs numpy alone. The driver writes one JSON object a line, a worker
answers with one; everything else that a library prints goes to the error stream.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

HEIGHT, WIDTH = 480, 640
INSTRUCTION = "put the cube in the bowl"
STATE_WIDTHS = {"single_arm": 2, "gripper": 1}


def camera_frames(cameras: list[str], sample: int) -> dict[str, np.ndarray]:
    """Smooth frames with some noise, uint8 ``(1, H, W, 3)`` by camera."""
    frames = {}
    for number, camera in enumerate(cameras):
        generator = np.random.default_rng(100 * sample + number)
        rows, columns = np.mgrid[0:HEIGHT, 0:WIDTH]
        waves = np.stack([np.sin(rows / (20 + 9 * c)) + np.cos(columns / (33 - 5 * c) + number) for c in range(3)], -1)
        noisy = 127 + 50 * waves + generator.normal(0, 6, waves.shape)
        frames[camera] = np.clip(noisy, 0, 255).astype(np.uint8)[None]
    return frames


def robot_state(sample: int) -> dict[str, np.ndarray]:
    """Values inside every range, float32 ``(1, D)`` by group."""
    generator = np.random.default_rng(sample)
    return {key: generator.uniform(0.1, 0.7, (1, width)).astype(np.float32) for key, width in STATE_WIDTHS.items()}


def timed(work: Callable[[], Any], runs: int) -> tuple[list[float], Any]:
    """Seconds of each run, and the last result."""
    seconds, result = [], None
    for _ in range(runs):
        start = time.perf_counter()
        result = work()
        seconds.append(time.perf_counter() - start)
    return seconds, result


def peak_memory_gb() -> float:
    """The most memory that this process has had so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def serve(actions: dict[str, Callable[..., dict[str, Any]]]) -> None:
    """Answer requests ``{"do": action, ...}`` until the driver closes the stream."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = actions[request.pop("do")](**request)
        except Exception as error:  # noqa: BLE001 - the driver prints it
            answer = {"fault": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer | {"peak_memory_gb": peak_memory_gb()}), file=answers, flush=True)
