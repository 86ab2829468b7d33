"""What the rows of an episode tell: stamps, motion, actions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groot_ros.dataset.modality import ACTION_COLUMN, STATE_COLUMN, ModalitySlice
from groot_ros.dataset.quality.finding import Finding, Severity
from groot_ros.dataset.reader import Dataset
from groot_ros.observation import NANOSECONDS_PER_SECOND

TIME_TOLERANCE_S = 1e-4  # LeRobot's own tolerance between a row and its frame
# A value that stays within this share of its range in the whole dataset does not move.
STILL_SHARE = 0.005
LONGEST_IDLE_S = 1.0

Rows = dict[str, NDArray[Any]]
Ranges = dict[str, NDArray[np.float64]]


def check_rows(dataset: Dataset, episode: int, rows: Rows, ranges: Ranges, horizon: int) -> Iterator[Finding]:
    """Yield what is wrong with the rows of one episode.

    Args:
        dataset: The dataset.
        episode: Episode index.
        rows: Its columns.
        ranges: Column to largest minus smallest value in the whole dataset, per dimension.
        horizon: Rows of an action chunk.

    """
    length = dataset.episodes[episode].length
    if length < horizon:
        yield Finding(
            Severity.WARNING,
            "short episode",
            "length",
            f"shorter than the {horizon} rows of an action chunk: gives no training sample at all",
            (episode,),
        )
    yield from _check_times(dataset, episode, rows)
    yield from _check_stamps(dataset, episode)
    yield from _check_motion(dataset, episode, rows, ranges)


def idle_rows(values: NDArray[Any], ranges: NDArray[np.float64]) -> tuple[int, int]:
    """Return how many rows at the head and at the tail stay where the first and the last row are."""
    moving = ranges > 0
    if not moving.any() or not len(values):
        return len(values), 0

    def leading(rows: NDArray[Any]) -> int:
        away = (np.abs(rows - rows[0])[:, moving] > STILL_SHARE * ranges[moving]).any(axis=1)
        return int(np.argmax(away)) if away.any() else len(rows)

    return leading(values), leading(values[::-1])


def _check_times(dataset: Dataset, episode: int, rows: Rows) -> Iterator[Finding]:
    times = rows.get("timestamp")
    if times is None:
        yield Finding(Severity.ERROR, "time stamps", "timestamp", "no column timestamp", (episode,))
        return
    times = times.astype(np.float64).reshape(-1)
    steps = np.diff(times)
    if (steps <= 0).any():
        row = int(np.argmax(steps <= 0)) + 1
        kind = "twice the same stamp" if steps[row - 1] == 0 else "a stamp that goes back"
        yield Finding(
            Severity.ERROR, "time stamps", "timestamp", f"{kind}: row {row} is at {times[row]:.6f} s", (episode,)
        )
    elif (np.abs(times - np.arange(len(times)) / dataset.info.fps) > TIME_TOLERANCE_S).any():
        yield Finding(
            Severity.WARNING,
            "time stamps",
            "timestamp",
            f"not row / fps: the first row is at {times[0]:.6f} s and the last at {times[-1]:.6f} s, "
            f"with {len(times)} rows at {dataset.info.fps:g} rows a second; LeRobot refuses frames that are "
            f"further off than {TIME_TOLERANCE_S} s",
            (episode,),
        )
    frames = rows.get("frame_index")
    if frames is not None and (frames != np.arange(len(frames))).any():
        yield Finding(Severity.ERROR, "time stamps", "frame_index", "does not count 0, 1, 2, ...", (episode,))


def _check_stamps(dataset: Dataset, episode: int) -> Iterator[Finding]:
    stamps = dataset.stamps(episode)
    if stamps is None:
        return
    for name, values in stamps.stamps_ns.items():
        steps = np.diff(values)
        if (steps < 0).any():
            row = int(np.argmax(steps < 0)) + 1
            yield Finding(Severity.ERROR, "source stamps", name, f"goes back in time at row {row}", (episode,))
        repeated = float((steps == 0).mean()) if len(steps) else 0.0
        if repeated > 0.1:
            yield Finding(
                Severity.WARNING,
                "source stamps",
                name,
                f"{repeated:.0%} of the rows repeat the sample before them: the source is slower than the dataset",
                (episode,),
            )
        longest = int(steps.max(initial=0))
        if longest > 3 * NANOSECONDS_PER_SECOND / dataset.info.fps:
            yield Finding(
                Severity.WARNING,
                "gap",
                name,
                f"{longest / NANOSECONDS_PER_SECOND:.3f} s without a new sample",
                (episode,),
            )
    if stamps.labels.get("gaps"):
        yield Finding(
            Severity.WARNING, "gap", "recording", f"marked when it was recorded: {stamps.labels['gaps']}", (episode,)
        )


def _check_motion(dataset: Dataset, episode: int, rows: Rows, ranges: Ranges) -> Iterator[Finding]:
    spans = {
        name: np.ptp(rows[name].reshape(len(rows[name]), -1).astype(np.float64), axis=0)
        for name in (STATE_COLUMN, ACTION_COLUMN)
        if name in rows and len(rows[name])
    }
    for name, span in spans.items():
        if (span == 0).all():
            yield Finding(
                Severity.ERROR,
                "frozen",
                name,
                "not one value changes: the robot did not move, or its joint states did not arrive",
                (episode,),
            )
    if STATE_COLUMN in spans and ACTION_COLUMN in spans and (spans[STATE_COLUMN] > 0).any():
        for key, part in dataset.modality.state.items():
            command = dataset.modality.action.get(key)
            if command and _comparable(part, command):
                yield from _check_group(dataset, episode, key, spans=spans, ranges=ranges)
    if ACTION_COLUMN in spans and (spans[ACTION_COLUMN] > 0).any():
        actions = rows[ACTION_COLUMN].reshape(len(rows[ACTION_COLUMN]), -1).astype(np.float64)
        for where, count in zip(("head", "tail"), idle_rows(actions, ranges[ACTION_COLUMN]), strict=True):
            if count / dataset.info.fps > LONGEST_IDLE_S:
                yield Finding(
                    Severity.WARNING,
                    "idle",
                    where,
                    f"nothing is commanded for {count / dataset.info.fps:.1f} s: a policy learns to wait there; "
                    f"trim it when converting",
                    (episode,),
                )


def _check_group(
    dataset: Dataset,
    episode: int,
    key: str,
    *,
    spans: Ranges,
    ranges: Ranges,
) -> Iterator[Finding]:
    """Look for dimensions of a state group that stand still, though they are commanded."""
    state, action = dataset.modality.state[key], dataset.modality.action[key]
    stands = spans[STATE_COLUMN][state.start : state.end] == 0
    commanded = (spans[ACTION_COLUMN] > STILL_SHARE * ranges[ACTION_COLUMN])[action.start : action.end]
    if (stands & commanded).any():
        names = dimension_names(dataset, state)
        found = [name for name, bad in zip(names, stands & commanded, strict=True) if bad]
        yield Finding(
            Severity.ERROR,
            "frozen",
            f"state.{key}",
            f"{', '.join(found)} does not change at all, though commanded",
            (episode,),
        )


def _comparable(state: ModalitySlice, action: ModalitySlice) -> bool:
    return state.column == STATE_COLUMN and action.column == ACTION_COLUMN and state.dimension == action.dimension


def dimension_names(dataset: Dataset, part: ModalitySlice) -> list[str]:
    """Return the names of the dimensions of a slice, or their numbers where the dataset has none."""
    names = dataset.info.features[part.column].get("names")
    if isinstance(names, dict):
        names = next(iter(names.values()), None)
    if not isinstance(names, list) or len(names) < part.end:
        return [str(number) for number in range(part.start, part.end)]
    return [str(name) for name in names[part.start : part.end]]
