"""The previous chunk as the prefix of real-time chunking: cut in time, and expressed anew."""

from __future__ import annotations

import math

import numpy as np
import torch

from groot_ros.errors import ObservationError
from groot_ros.model.sampler import RealTimeChunking
from groot_ros.observation import NANOSECONDS_PER_SECOND, ActionChunk
from groot_ros.processing.processor import Processor
from groot_ros.requests import PredictionRequest, PrefixReport


def chunking_prefix(
    request: PredictionRequest, processor: Processor, *, rate_hz: float, horizon: int, dtype: torch.dtype
) -> tuple[RealTimeChunking | None, PrefixReport]:
    """The rows of a request's previous chunk that are still to come, normalised against its observation.

    Args:
        request: The request.
        processor: The processing of its embodiment.
        rate_hz: Rows a second of the policy.
        horizon: Rows of its chunks.
        dtype: Number type of the network's weights.

    Returns:
        The prefix on the CPU, and what became of the previous chunk.

    Raises:
        ObservationError: The previous chunk has another rate, or is from the future.

    """
    previous, observation = request.previous_chunk, request.observation
    if previous is None:
        return None, PrefixReport()
    first = _first_row(previous, observation.stamp_ns, rate_hz)
    rows = min(previous.horizon - first, horizon)
    if rows <= 0:
        return None, PrefixReport()
    remaining = {key: values[first : first + rows] for key, values in previous.groups.items()}
    encoded = processor.encode_actions(remaining, observation)
    frozen = min(request.frozen_rows, rows)
    clipped = encoded.clipped[:rows]
    if clipped[:frozen].any():
        return None, PrefixReport(clipped_entries=int(clipped.sum()), dropped=True)
    chunking = RealTimeChunking(
        previous=torch.from_numpy(np.ascontiguousarray(encoded.values[:rows])).to(dtype)[None],
        action_horizon=rows,
        overlap_steps=rows,
        frozen_steps=frozen,
        ramp_rate=request.ramp_rate,
    )
    return chunking, PrefixReport(rows=rows, clipped_entries=int(clipped.sum()))


def _first_row(previous: ActionChunk, stamp_ns: int, rate_hz: float) -> int:
    """The row of a previous chunk whose time is nearest to a stamp."""
    if not math.isclose(previous.period_s * rate_hz, 1.0, rel_tol=1e-6):
        msg = (
            f"previous chunk: its rows are {previous.period_s:.4g} s apart, but those of this policy "
            f"{1.0 / rate_hz:.4g} s; a prefix must have the policy's own rate ({rate_hz:g} Hz)"
        )
        raise ObservationError(msg)
    elapsed_s = (stamp_ns - previous.stamp_ns) / NANOSECONDS_PER_SECOND
    first = round(elapsed_s / previous.period_s)
    if first < 0:
        msg = (
            f"previous chunk: its stamp is {-elapsed_s:.3f} s after the observation's; a prefix must come from an "
            "earlier observation, so reset the plan when the clock jumps back"
        )
        raise ObservationError(msg)
    return first
