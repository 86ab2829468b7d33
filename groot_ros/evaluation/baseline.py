"""The baselines: what holding still, or repeating the last action, would have given at the policy's own inferences."""

from __future__ import annotations

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
        self._rows = 0
        self._sent: list[tuple[int, NDArray[np.float64]]] = [(0, np.full(log.columns.width, np.nan))]
        """What was sent, each with the number of the first row that it was sent at."""

    def note_prediction(self, prediction: Prediction, times_ns: Times, recorded: NDArray[np.float64]) -> None:
        """The policy's chunk has arrived; see `Logbook.note_prediction`."""
        chunk = self._policy.predict(prediction.observation)
        answer = Prediction(
            observation=prediction.observation,
            chunk=chunk,
            began_ns=prediction.began_ns,
            arrived_ns=prediction.arrived_ns,
            rows_expired=prediction.rows_expired,
        )
        self._log.note_prediction(answer, times_ns, recorded)
        sent = self._log.columns.join({group: rows[:1] for group, rows in chunk.groups.items()}, 1)[0]
        self._sent.append((prediction.rows_before, sent))

    def note_rows(self, stamps_ns: Times) -> None:
        """The times of some rows have come."""
        rows = np.empty((len(stamps_ns), self._log.columns.width))
        for first, sent in self._sent:
            rows[max(first - self._rows, 0) :] = sent
        self._log.note_rows(stamps_ns, rows)
        self._rows += len(stamps_ns)
        self._sent = self._sent[-1:]
