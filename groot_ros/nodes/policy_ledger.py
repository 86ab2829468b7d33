"""What the policy node counts: observations, chunks, rows, refusals, and where the time from capture to chunk goes."""

from __future__ import annotations

from collections import Counter, deque

import numpy as np

from groot_ros.observation import NANOSECONDS_PER_SECOND, ActionChunk
from groot_ros.policy import StageTimings

WINDOW = 300
PERCENTILES = (50, 95)


class Ledger:
    """Counters since the node was configured, and the latest latencies by stage.

    Attributes:
        observations: Complete observations.
        chunks: Chunks predicted.
        rows_executed: Rows whose time came while their chunk was the newest in the plan.
        rows_expired: Rows that were past when their chunk arrived.
        refusals: Observations and predictions that gave nothing, by reason.

    """

    def __init__(self) -> None:
        self.observations = 0
        self.chunks = 0
        self.rows_executed = 0
        self.rows_expired = 0
        self.prefix_rows = 0
        self.prefix_clipped = 0
        self.prefixes_dropped = 0
        self.refusals: Counter[str] = Counter()
        self._stages: dict[str, deque[float]] = {}
        self._running: ActionChunk | None = None
        self._running_since_ns = 0

    def predicted(self, timings: StageTimings, waited_s: float, total_s: float) -> None:
        """Note a chunk.

        Args:
            timings: The policy's own times.
            waited_s: From the capture of its observation to the start of the inference.
            total_s: From the capture to the chunk in the node's hands.

        """
        self.chunks += 1
        for stage, seconds in (
            ("capture_to_inference", waited_s),
            ("data_processing", timings.data_processing_s),
            ("backbone", timings.backbone_s),
            ("action_head", timings.action_head_s),
            ("decode", timings.decode_s),
            ("capture_to_chunk", total_s),
        ):
            self._stages.setdefault(stage, deque(maxlen=WINDOW)).append(seconds)

    def accepted(self, chunk: ActionChunk, now_ns: int) -> None:
        """Note that a chunk is executed from now on."""
        self.stopped(now_ns)
        self.rows_expired += _rows_before(chunk, now_ns)
        self._running, self._running_since_ns = chunk, now_ns

    def stopped(self, now_ns: int) -> None:
        """Note that the chunk which was executed is so no more."""
        if self._running is not None:
            done = _rows_before(self._running, now_ns) - _rows_before(self._running, self._running_since_ns)
            self.rows_executed += max(done, 0)
        self._running = None

    def values(self) -> dict[str, float]:
        """All counts and latencies by name."""
        return {
            "observations": self.observations,
            "chunks": self.chunks,
            "rows_executed": self.rows_executed,
            "rows_expired": self.rows_expired,
            "prefix.rows": self.prefix_rows,
            "prefix.clipped_entries": self.prefix_clipped,
            "prefix.dropped": self.prefixes_dropped,
            **{f"refused.{reason}": count for reason, count in sorted(self.refusals.items())},
            **{f"latency.{stage}": value for stage, value in self.latencies_ms().items()},
        }

    def latencies_ms(self) -> dict[str, float]:
        """Percentiles by ``<stage>.p50_ms`` and so on."""
        return {
            f"{stage}.p{percentile}_ms": 1e3 * float(np.percentile(np.array(values), percentile))
            for stage, values in self._stages.items()
            for percentile in PERCENTILES
        }


def _rows_before(chunk: ActionChunk, time_ns: int) -> int:
    rows = int((time_ns - chunk.stamp_ns) / (chunk.period_s * NANOSECONDS_PER_SECOND)) + 1
    return min(max(rows, 0), chunk.horizon) if time_ns >= chunk.stamp_ns else 0
