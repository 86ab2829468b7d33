"""What the report shows of an episode: some chunks with their pictures, and the recorded and executed curves."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from groot_ros.evaluation.columns import ActionColumns
from groot_ros.evaluation.logbook import Logbook
from groot_ros.evaluation.pilot import Prediction
from groot_ros.evaluation.replay import Played
from groot_ros.evaluation.thinned import Thinned
from groot_ros.observation import NANOSECONDS_PER_SECOND, Observation

Array = NDArray[np.float64]
PICTURE_WIDTH = 240
JPEG_QUALITY = 70
MOST_POINTS = 1500
DIGITS = 6


@dataclass
class Shown:
    """One inference that is shown."""

    stamp_ns: int
    pictures: dict[str, str]
    rows: Array | None = None
    refusal: str = ""


@dataclass
class EpisodeView:
    """Gathers what is shown of one episode.

    Attributes:
        most: Most inferences shown.

    """

    most: int
    _shown: Thinned[Shown] = field(init=False)
    _pending: dict[int, Shown] = field(default_factory=dict)
    """Those whose chunk is still to come, by the stamp of their observation."""

    def __post_init__(self) -> None:
        """Begin with nothing."""
        self._shown = Thinned(self.most)

    def wants_pictures(self) -> bool:
        """Whether the next inference is shown."""
        return self._shown.wants_next

    def note_observation(self, observation: Observation) -> None:
        """An inference begins."""
        if self._shown.wants_next:
            pictures = {camera: _jpeg(frames[-1]) for camera, frames in observation.images.items()}
            self._pending[observation.stamp_ns] = Shown(observation.stamp_ns, pictures)

    def note_failure(self, observation: Observation) -> None:
        """It gives no chunk."""
        self._pending.pop(observation.stamp_ns, None)

    def note_prediction(self, prediction: Prediction, columns: ActionColumns) -> None:
        """Its chunk has arrived."""
        shown = self._pending.pop(prediction.observation.stamp_ns, None)
        if shown is None:
            self._shown.skip()
            return
        shown.rows = columns.join(prediction.chunk.groups, prediction.chunk.horizon)
        shown.refusal = prediction.refusal
        self._shown.add(shown)

    def content(self, played: Played, log: Logbook) -> dict[str, Any]:
        """Everything as plain values for the page; times in seconds from the start of the episode."""

        def seconds(stamp_ns: int) -> float:
            return round((stamp_ns - played.start_ns) / NANOSECONDS_PER_SECOND, 4)

        every = max(1, -(-len(log.executed) // MOST_POINTS))
        return {
            "duration": round(played.duration_s, 3),
            "times": [seconds(int(stamp)) for stamp in log.executed.stamps_ns[::every]],
            "executed": _columns(log.executed.rows[::every]),
            "recorded": _columns(log.demonstration.rows[::every]),
            "chunks": [
                {
                    "time": seconds(shown.stamp_ns),
                    "rows": _columns(shown.rows) if shown.rows is not None else [],
                    "refusal": shown.refusal,
                    "pictures": shown.pictures,
                }
                for shown in self._shown.items
            ],
            "moments": [
                {"time": seconds(moment.time_ns), "kind": moment.kind, "reason": moment.reason, "text": moment.sentence}
                for moment in played.moments
            ],
        }


def _columns(rows: Array) -> list[list[float | None]]:
    """One list a column, NaN as null."""
    return [
        [float(f"{value:.{DIGITS}g}") if np.isfinite(value) else None for value in column] for column in rows.T.tolist()
    ]


def _jpeg(picture: NDArray[np.uint8]) -> str:
    height, width = picture.shape[:2]
    scale = PICTURE_WIDTH / width
    size = (PICTURE_WIDTH, max(1, round(height * scale)))
    small = cv2.resize(picture, size, interpolation=cv2.INTER_AREA if scale < 1 else cv2.INTER_NEAREST)
    _, data = cv2.imencode(".jpg", cv2.cvtColor(small, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])
    return base64.b64encode(data.tobytes()).decode()
