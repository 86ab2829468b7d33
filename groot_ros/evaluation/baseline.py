"""The baselines: what holding still, or repeating the last action, would have given at the policy's own inferences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from groot_ros.evaluation.episode import Times
from groot_ros.evaluation.logbook import Logbook
from groot_ros.evaluation.pilot import Prediction
from groot_ros.evaluation.policies import DebugPolicy


class Baseline:
    """Answers whenever the policy answers, from the same observation and with the same latency.

    Its rows are all alike, so what it sends is the newest of them: no executor is needed, and no limit is applied.

    Args:
        policy: One whose rows are all alike.
        log: Where it is noted.

    """

    def __init__(self, policy: DebugPolicy, log: Logbook) -> None:
        self._policy = policy
        self._log = log
        self._sent: NDArray[np.float64] = np.full(log.columns.width, np.nan)

    def note_prediction(self, prediction: Prediction, times_ns: Times, recorded: NDArray[np.float64]) -> None:
        """The policy's chunk has arrived; see `Logbook.note_prediction`."""
        chunk = self._policy.predict(prediction.observation)
        self._log.note_prediction(replace(prediction, chunk=chunk, refusal="", stages_s={}), times_ns, recorded)
        self._log.columns.join_into(self._sent, {group: rows[0] for group, rows in chunk.groups.items()})

    def note_rows(self, stamps_ns: Times) -> None:
        """The times of some rows have come."""
        self._log.note_rows(stamps_ns, np.broadcast_to(self._sent, (len(stamps_ns), len(self._sent))))
