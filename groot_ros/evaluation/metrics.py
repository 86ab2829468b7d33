"""The numbers of a replay: from the logbooks of the episodes to one nested dictionary, whose keys are documented.

Whatever could not be measured is None, never zero.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groot_ros.evaluation.chunk_block import STAGES
from groot_ros.evaluation.columns import ActionColumns
from groot_ros.evaluation.errors_by_row import ErrorsByRow, mean
from groot_ros.evaluation.gripper import gripper_timing
from groot_ros.evaluation.logbook import Logbook
from groot_ros.execution.metrics import high_frequency_share, motion_report

Array = NDArray[np.float64]
FEWEST_ROWS = 8
"""Fewer rows tell nothing of how smooth a motion is."""
LEAST_MOTION = 0.01
"""Share of its range by which a dimension moves at least where its motion is compared with the demonstration."""


def demonstrated_ranges(logs: Sequence[Logbook]) -> Array:
    """By how much each column moves in the demonstrations ``(width,)``; NaN where nothing was demonstrated."""
    lows, highs = [], []
    for log in logs:
        rows = log.demonstration.rows
        known = rows[np.isfinite(rows).any(axis=1)]
        if known.size:
            lows.append(np.nanmin(known, axis=0))
            highs.append(np.nanmax(known, axis=0))
    if not lows:
        return np.full(logs[0].columns.width if logs else 0, np.nan)
    ranges: Array = np.max(highs, axis=0) - np.min(lows, axis=0)
    return ranges


def motion_metrics(
    logs: Sequence[Logbook], scale: Array, period_s: float, ranges: Array | None = None
) -> dict[str, Any]:
    """Everything that the same recording and policy give again, byte for byte.

    Args:
        logs: One policy's logbooks, one an episode.
        scale: Half the trained range of each column ``(width,)``; NaN where it is not known.
        period_s: Time between two rows.
        ranges: By how much each column moves in all recordings ``(width,)``; those of these logbooks by default.

    """
    columns = logs[0].columns
    errors = ErrorsByRow(columns, len(logs[0].errors.count))
    for log in logs:
        errors.merge(log.errors)
    seams = np.concatenate([log.seams.rows for log in logs])
    smoothness = _smoothness(logs, period_s, demonstrated_ranges(logs) if ranges is None else ranges)
    return {
        "mse": _by_dimension(columns, errors.squared, errors.count),
        "mae": _by_dimension(columns, errors.absolute, errors.count),
        "mse_normalised": _by_dimension(columns, errors.squared / scale**2, errors.count * np.isfinite(scale)),
        "mae_normalised": _by_dimension(columns, errors.absolute / scale, errors.count * np.isfinite(scale)),
        "first_step_mae": _by_dimension(columns, errors.absolute[:1], errors.count[:1]),
        "mae_by_row": {
            group: [mean(errors.absolute[row, part], errors.count[row, part]) for row in range(len(errors.count))]
            for group, part in columns.slices.items()
        },
        "seam_jump": {
            group: {"p95": _percentile(seams[:, part], 95), "max": _percentile(seams[:, part], 100)}
            for group, part in columns.slices.items()
        },
        **smoothness,
        "gripper": _grippers(logs, errors),
        "holds": _total(_status_counts(logs, "holds")),
        "clips": _total(_status_counts(logs, "clips")),
        "slowed": _total(_status_counts(logs, "slowed")),
        "refusals": _total(sum((Counter(log.refusals) for log in logs), Counter())),
        "chunks": sum(log.predictions for log in logs),
        "rows": {
            "executed": sum(log.rows_executed for log in logs),
            "expired": sum(log.rows_expired for log in logs),
        },
    }


def latency_metrics(logs: Sequence[Logbook]) -> dict[str, dict[str, float | None]]:
    """Percentiles of each stage in milliseconds: ``{stage: {p50_ms, p95_ms, p99_ms}}``."""
    latencies = np.concatenate([log.latencies_s.rows for log in logs])
    return {
        stage: {f"p{share}_ms": _percentile(latencies[:, column : column + 1] * 1e3, share) for share in (50, 95, 99)}
        for column, stage in enumerate(STAGES)
    }


def _by_dimension(columns: ActionColumns, sums: Array, counts: NDArray[np.int64]) -> dict[str, dict[str, float | None]]:
    sums = np.where(counts > 0, sums, 0.0)
    result = {}
    for group, part in columns.slices.items():
        names = columns.groups[group]
        values = {name: mean(sums[:, part][:, row], counts[:, part][:, row]) for row, name in enumerate(names)}
        result[group] = {"all": mean(sums[:, part], counts[:, part]), **values}
    return result


def _smoothness(logs: Sequence[Logbook], period_s: float, ranges: Array) -> dict[str, Any]:
    """Jerk ratio, power above 3 Hz and tracking error by group; the mean over episodes by their length."""
    found: dict[str, dict[str, list[tuple[float, int]]]] = {
        name: {group: [] for group in logs[0].columns.groups}
        for name in ("jerk_ratio", "power_above_3hz", "demonstrated_power_above_3hz", "tracking_error")
    }
    for log in logs:
        for group, part in log.columns.slices.items():
            executed, wanted = log.executed.rows[log.start_rows :, part], log.demonstration.rows[log.start_rows :, part]
            alone = _longest_run(executed)
            if alone.stop - alone.start >= FEWEST_ROWS:
                share = high_frequency_share(executed[alone], period_s)
                found["power_above_3hz"][group].append((share, alone.stop - alone.start))
            both = _longest_run(np.hstack([executed, wanted]))
            length = both.stop - both.start
            if length < FEWEST_ROWS:
                continue
            # Beside a demonstration that stands still all motion is endlessly rough, so only what moves is compared.
            moving = np.ptp(wanted[both], axis=0) > LEAST_MOTION * ranges[part]
            if moving.any():
                done, shown = (np.compress(moving, rows[both], axis=1) for rows in (executed, wanted))
                report = motion_report(done, shown, np.empty(0, np.intp), period_s)
                found["jerk_ratio"][group].append((report.jerk_ratio, length))
                found["tracking_error"][group].append((report.tracking, length))
            found["demonstrated_power_above_3hz"][group].append((high_frequency_share(wanted[both], period_s), length))
    return {name: {group: _weighted_mean(values) for group, values in groups.items()} for name, groups in found.items()}


def _grippers(logs: Sequence[Logbook], errors: ErrorsByRow) -> dict[str, dict[str, float | int | None]]:
    result: dict[str, dict[str, float | int | None]] = {}
    columns = logs[0].columns
    for column in columns.levels:
        level = float(logs[0].levels[column])
        if np.isnan(level):
            continue
        timings = [
            gripper_timing(
                log.executed.stamps_ns, log.executed.rows[:, column], log.demonstration.rows[:, column], level
            )
            for log in logs
        ]
        delays = np.array([delay for timing in timings for delay in timing.delays_s])
        result[columns.names[column]] = {
            "agreement": mean(errors.agreeing[:, column].astype(np.float64), errors.count[:, column]),
            "delay_s": float(delays.mean()) if delays.size else None,
            "absolute_delay_s": float(np.abs(delays).mean()) if delays.size else None,
            "missed_changes": sum(timing.missed for timing in timings),
            "extra_changes": sum(timing.extra for timing in timings),
        }
    return result


def _status_counts(logs: Sequence[Logbook], field: str) -> Counter[str]:
    counts: Counter[str] = Counter()
    for log in logs:
        for key, count in (getattr(log.status, field) if log.status is not None else {}).items():
            counts[getattr(key, "value", key)] += count
    return counts


def _total(counts: Mapping[str, int]) -> dict[str, int]:
    return {"total": sum(counts.values()), **dict(sorted(counts.items()))}


def _percentile(values: Array, share: float) -> float | None:
    """A percentile of the rows' largest entries; None where there are none."""
    known = values[np.isfinite(values).all(axis=1)] if values.size else values
    return float(np.percentile(known.max(axis=1), share)) if known.size else None


def _longest_run(rows: Array) -> slice:
    """The longest run of rows without NaN."""
    known = np.isfinite(rows).all(axis=1).astype(np.int8)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], known, [0]])))
    starts, ends = edges[::2], edges[1::2]
    if not starts.size:
        return slice(0, 0)
    longest = int(np.argmax(ends - starts))
    return slice(int(starts[longest]), int(ends[longest]))


def _weighted_mean(values: Sequence[tuple[float, int]]) -> float | None:
    weight = sum(length for _, length in values)
    return sum(value * length for value, length in values) / weight if weight else None
