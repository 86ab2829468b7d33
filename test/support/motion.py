"""Contracts, chunks and trajectories for the tests of motion."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import settings

from groot_ros.contract import Contract
from groot_ros.execution.executor import Executor
from groot_ros.execution.status import Acceptance
from groot_ros.observation import ActionChunk

PERIOD_S = 1.0 / 30.0
PERIOD_NS = round(PERIOD_S * 1e9)
SECOND = 1_000_000_000
JOINTS = ("shoulder", "elbow")
FEW = settings(max_examples=10, deadline=None)
"""For properties that hold a whole simulated run each; no deadline, since test machines are busy."""


def arm_contract(**changes: Any) -> Contract:
    """Two joints in rad, sent as a trajectory unless ``outputs`` says otherwise."""
    data: dict[str, Any] = {
        "contract_version": 1,
        "robot": "arm",
        "embodiment_tag": "new_embodiment",
        "rate_hz": 30,
        "cameras": {"front": {"topic": "image"}},
        "state": {"arm": {"topic": "joint_states", "joints": list(JOINTS)}},
        "actions": {"arm": {"meaning": "position"}},
        "outputs": {"arm": trajectory()},
        "limits": "none",
    }
    return Contract.model_validate({**data, **changes})


def trajectory(**changes: Any) -> dict[str, Any]:
    return {"type": "joint_trajectory", "topic": "trajectory", "from": {"arm": "all"}, **changes}


def array(**changes: Any) -> dict[str, Any]:
    return {"type": "position_command", "topic": "commands", "from": {"arm": "all"}, "names": list(JOINTS), **changes}


def chunk(rows: np.ndarray, stamp_ns: int = 0, key: str = "arm", period_s: float = PERIOD_S) -> ActionChunk:
    rows = np.asarray(rows, dtype=np.float64)
    names = {key: [str(index) for index in range(rows.shape[1])]}
    return ActionChunk(stamp_ns=stamp_ns, period_s=period_s, groups={key: rows}, names=names)


def observe(executor: Executor, values: Any, now_ns: int, key: str = "arm") -> None:
    executor.observe({key: np.atleast_2d(np.asarray(values, dtype=np.float32))}, now_ns, now_ns)


def deliver(executor: Executor, rows: np.ndarray, *, stamp_ns: int, now_ns: int, key: str = "arm") -> Acceptance:
    """Let an inference on the observation at ``stamp_ns`` end now with these rows."""
    inference = executor.begin_inference(stamp_ns, now_ns)
    return executor.accept(chunk(rows, stamp_ns, key), inference, now_ns)
