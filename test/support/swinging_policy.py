"""Run the policy node with a known motion in place of the network's: the demo arm swings at an even speed.

Started as a program, with the arguments of the policy. Faults are put into the model's thread through the folder that
the environment variable SWING_FAULTS names: while a file ``hang`` lies there, a prediction does not return; it writes
the time since when into ``hanging_since_ns``.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from groot_ros.observation import ActionChunk, Observation
from groot_ros.policy import GrootPolicy, Prediction, PredictionRequest, PrefixReport, StageTimings

RADIUS = 0.3
TURNS_RAD_S = 1.5
SPEED = RADIUS * TURNS_RAD_S
"""rad/s of shoulder and elbow together, at all times."""
CENTRE = (1.0, 0.5)
GRIPPER = 0.4
LATENCY_S = 0.02


def swing(times_s: np.ndarray) -> dict[str, np.ndarray]:
    """The motion by the clock: shoulder and elbow in quadrature, ``(N, 2)`` and ``(N, 1)`` rad."""
    angle = TURNS_RAD_S * times_s
    arm = np.stack([CENTRE[0] + RADIUS * np.sin(angle), CENTRE[1] + RADIUS * np.cos(angle)], axis=1)
    return {"single_arm": arm, "gripper": np.full((len(times_s), 1), GRIPPER)}


def predict_batch(policy: GrootPolicy, requests: Sequence[PredictionRequest]) -> list[Prediction]:
    """In place of `GrootPolicy.predict_batch`: rows of the swing, as fast as a good GPU."""
    hang_where_told()
    time.sleep(LATENCY_S)
    timings = StageTimings(0.0, LATENCY_S, 0.0, 0.0)
    return [Prediction(chunk(policy, request.observation), timings, PrefixReport()) for request in requests]


def chunk(policy: GrootPolicy, observation: Observation) -> ActionChunk:
    times_s = observation.stamp_ns / 1e9 + np.arange(policy.horizon) / policy.rate_hz
    return ActionChunk(
        stamp_ns=observation.stamp_ns,
        period_s=1.0 / policy.rate_hz,
        groups=swing(times_s),
        names={"single_arm": ["shoulder", "elbow"], "gripper": ["gripper"]},
    )


def hang_where_told() -> None:
    folder = Path(os.environ["SWING_FAULTS"])
    if (folder / "hang").exists():
        (folder / "hanging_since_ns").write_text(str(time.time_ns()))
        while (folder / "hang").exists():
            time.sleep(0.01)


def main() -> int:
    from groot_ros.cli import policy

    GrootPolicy.predict_batch = predict_batch
    return policy.main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
