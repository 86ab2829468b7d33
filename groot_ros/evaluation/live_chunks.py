"""Chunks that a live node sent while a bag was played to it: written by the player, and judged like any others."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from groot_ros.errors import EvaluationError
from groot_ros.evaluation.pilot import InFlight, Pilot
from groot_ros.evaluation.policies import without_images
from groot_ros.observation import NANOSECONDS_PER_SECOND, ActionChunk, Observation

_COLUMNS = ("stamp_ns", "received_ns", "period_ns", "names", "rows")


@dataclass(frozen=True)
class LiveChunk:
    """A chunk as it was sent.

    Attributes:
        chunk: What the node published, its rollout transform applied.
        received_ns: When it was there, by the recording's clock.

    """

    chunk: ActionChunk
    received_ns: int


def save_chunks(chunks: Sequence[LiveChunk], path: Path) -> None:
    """Write chunks as a parquet file, one a row; the numbers stay exact."""
    rows = [
        {
            "stamp_ns": live.chunk.stamp_ns,
            "received_ns": live.received_ns,
            "period_ns": round(live.chunk.period_s * NANOSECONDS_PER_SECOND),
            "names": [f"{group}/{name}" for group, names in live.chunk.names.items() for name in names],
            "rows": np.concatenate(list(live.chunk.groups.values()), axis=1).tolist(),
        }
        for live in chunks
    ]
    schema = pa.schema(
        [
            ("stamp_ns", pa.int64()),
            ("received_ns", pa.int64()),
            ("period_ns", pa.int64()),
            ("names", pa.list_(pa.string())),
            ("rows", pa.list_(pa.list_(pa.float64()))),
        ]
    )
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), path)


def load_chunks(path: Path) -> list[LiveChunk]:
    """Read what `save_chunks` wrote.

    Raises:
        EvaluationError: The file is missing, damaged, or holds no chunk.

    """
    try:
        rows = pq.read_table(path, columns=list(_COLUMNS)).to_pylist()
    except (OSError, pa.ArrowException) as error:
        msg = f"{path} holds no chunks: {error}; wanted the file that `play --record` wrote"
        raise EvaluationError(msg) from error
    if not rows:
        msg = f"{path} holds no chunk: the node sent none while the bag was played; see its diagnostics"
        raise EvaluationError(msg)
    return [
        LiveChunk(
            chunk_of(row["names"], np.array(row["rows"]), row["stamp_ns"], row["period_ns"] / NANOSECONDS_PER_SECOND),
            row["received_ns"],
        )
        for row in rows
    ]


def chunk_of(
    names: Sequence[str], rows: np.ndarray[Any, np.dtype[np.float64]], stamp_ns: int, period_s: float
) -> ActionChunk:
    """A chunk from columns named ``<group>/<dimension>``."""
    columns: dict[str, list[int]] = {}
    for column, name in enumerate(names):
        columns.setdefault(name.split("/", 1)[0], []).append(column)
    return ActionChunk(
        stamp_ns=stamp_ns,
        period_s=period_s,
        groups={group: rows[:, chosen] for group, chosen in columns.items()},
        names={group: [names[column].split("/", 1)[1] for column in chosen] for group, chosen in columns.items()},
    )


@dataclass(frozen=True)
class _Matched:
    """A live chunk whose observation has been found."""

    live: LiveChunk
    observation: Observation


class LivePilot(Pilot):
    """Takes recorded chunks when they came, in place of predicting.

    Args:
        arguments: Those of `Pilot`.
        chunks: The recorded chunks by the stamp of their observation.
        found: Takes the stamps whose observation has been found.
        keywords: Those of `Pilot`.

    """

    def __init__(
        self,
        *arguments: Any,  # noqa: ANN401
        chunks: Mapping[int, Sequence[LiveChunk]],
        found: set[int],
        **keywords: Any,  # noqa: ANN401
    ) -> None:
        super().__init__(*arguments, **keywords)
        self._live = dict(chunks)
        self._found = found
        self._stamps = np.array(sorted(chunks), np.int64)
        self._next: deque[_Matched] = deque()

    def inference_due(self, reference_ns: int, now_ns: int) -> bool:  # noqa: ARG002
        """Whether a recorded chunk may belong to this observation.

        Also while another is under way: the node had begun with this observation before the player had that chunk.
        """
        if reference_ns == self._last_inferred_ns or not self._stamps.size:
            return False
        nearest = np.abs(self._stamps - reference_ns).min()
        return bool(nearest <= self._contract.period_ns)

    def infer(self, observation: Observation, reference_ns: int, now_ns: int) -> None:
        """Take the chunks of this observation, if there are any."""
        self._last_inferred_ns = reference_ns
        chunks = self._live.pop(observation.stamp_ns, ())
        if not chunks:
            return
        self._found.add(observation.stamp_ns)
        self._on_observation(observation)
        self._next += [_Matched(live, without_images(observation)) for live in chunks]
        self._begin_next(now_ns)

    def _arrive(self) -> None:
        assert self._in_flight is not None  # asked before
        now_ns = self._in_flight.arrives_ns
        super()._arrive()
        self._begin_next(now_ns)

    def _begin_next(self, now_ns: int) -> None:
        """One at a time, as in the node: the next chunk is under way when the one before has come."""
        if self.is_waiting or not self._next:
            return
        matched = self._next.popleft()
        inference = self.executor.begin_inference(matched.observation.stamp_ns, now_ns)
        arrives_ns = max(matched.live.received_ns, now_ns)
        self.hand_over(InFlight(inference, matched.observation, matched.live.chunk, now_ns, arrives_ns))


class LivePilots:
    """Makes the pilots that take recorded chunks, one an episode, and knows which chunks none of them could take.

    Args:
        chunks: The recorded chunks.

    """

    def __init__(self, chunks: Sequence[LiveChunk]) -> None:
        self._chunks: dict[int, list[LiveChunk]] = {}
        for live in chunks:
            self._chunks.setdefault(live.chunk.stamp_ns, []).append(live)
        self._found: set[int] = set()

    def __call__(self, *arguments: Any, **keywords: Any) -> LivePilot:  # noqa: ANN401
        """A pilot for the next episode."""
        return LivePilot(*arguments, chunks=self._chunks, found=self._found, **keywords)

    def counts(self) -> dict[str, int]:
        """How many chunks there are, and for how many no observation has been found in the episodes so far."""
        stray = [len(chunks) for stamp_ns, chunks in self._chunks.items() if stamp_ns not in self._found]
        return {"total": sum(len(chunks) for chunks in self._chunks.values()), "without_observation": sum(stray)}
