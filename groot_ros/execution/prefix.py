"""The prefix of real-time chunking: what is still to be executed, as the policy wants it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from groot_ros.contract.timing import Motion
from groot_ros.execution.latency import LatencyWindow
from groot_ros.execution.layout import PlanLayout
from groot_ros.execution.plan import Plan
from groot_ros.execution.status import Inference
from groot_ros.observation import NANOSECONDS_PER_SECOND


def add_prefix(
    inference: Inference,
    plan: Plan,
    layout: PlanLayout,
    motion: Motion,
    latency: LatencyWindow,
    *,
    horizon: int,
    period_s: float,
) -> Inference:
    """Add the rows that are still to come, on the grid of the inference's observation.

    Args:
        inference: What is about to start.
        plan: What is being executed.
        layout: From plan columns back to the policy's units.
        motion: The contract's ``rtc_overlap_rows``.
        latency: How long the inference will take.
        horizon: Rows of a chunk: the longest prefix.
        period_s: Time between two rows, seconds.

    Returns:
        The inference with its prefix; as it was where no planned row is left or the observation is older than the plan.

    """
    offsets = np.round(np.arange(horizon) * period_s * NANOSECONDS_PER_SECOND).astype(np.int64)
    stamps = inference.observation_stamp_ns + offsets
    # The first row that is ahead when the chunk arrives is frozen too: the robot is already on its way there.
    frozen = latency.whole_rows(period_s) + 2
    overlap = max(motion.rtc_overlap_rows or horizon, frozen)
    stamps = stamps[stamps <= plan.end_ns][:overlap]
    if stamps.size == 0 or stamps[0] < plan.start_ns:
        return inference
    prefix = layout.chunk(plan.at(stamps), inference.observation_stamp_ns, period_s)
    return replace(inference, prefix=prefix, frozen_rows=min(frozen, len(stamps)))
