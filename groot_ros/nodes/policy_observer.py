"""The session's eyes: the newest observation or the reason why there is none, and whether the state can be one."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from groot_ros.alignment import Aligner, NotReady, Reason
from groot_ros.checkpoint.statistics import TagStatistics
from groot_ros.contract import Contract
from groot_ros.execution.state_check import StateFit, check_state
from groot_ros.nodes.policy_state import SessionState

STATES_AWAITED = 10
"""So many messages of state after a frame may be the first one that is newer than it; supervision finds later ones."""


class Observer:
    """Looks at the alignment for a session; whoever calls holds the session's lock.

    Args:
        contract: The robot.
        statistics: What the policy was trained on.
        aligner: Where the messages go.
        state: What the session's parts share.

    Attributes:
        publishers_fault: Why the messages of a stream cannot be trusted, whatever they say.
        state_warnings: What of the newest state lies outside the trained range.

    """

    def __init__(self, contract: Contract, statistics: TagStatistics, aligner: Aligner, state: SessionState) -> None:
        self._aligner = aligner
        self._state = state
        self._trained = statistics.state
        self._names = {group: contract.state_dimensions(group) for group in contract.state}
        self.publishers_fault: NotReady | None = None
        self.state_warnings: list[str] = []
        self._not_ready: NotReady | None = None
        self._clock_jump: NotReady | None = None  # lasts a moment, so it is kept until it has been told
        self._states_awaited = 0
        self._last_reference_ns: int | None = None

    @property
    def not_ready(self) -> NotReady | None:
        """Why there is no observation, as far as it lasts or has not been told yet."""
        return self._clock_jump or self._not_ready

    @property
    def sees(self) -> bool:
        """Whether there was an observation at the last supervision."""
        return self._not_ready is None

    def frame_came(self, *, is_reference: bool) -> None:
        """Note a frame: one of the reference camera waits for the state after it."""
        if is_reference:
            self._states_awaited = STATES_AWAITED

    def state_may_matter(self) -> bool:
        """Whether a state that has come may complete an observation; else states alone bring nothing new."""
        if self._states_awaited > 0 and self._state.is_active:
            self._states_awaited -= 1
            return True
        return False

    def reference(self) -> int | NotReady:
        """The stamp of the newest observation, or why there is none."""
        found = self.publishers_fault or self._aligner.reference(self._state.now_ns())
        # This reason is given once; the others last, and are noted when they have lasted until the next supervision.
        if isinstance(found, NotReady) and found.reason is Reason.CLOCK_JUMPED_BACK:
            self._note(found)
            self._clock_jump = found
        return found

    def is_new(self, reference_ns: int) -> bool:
        """Whether the observation at a stamp has not been taken yet."""
        return reference_ns != self._last_reference_ns

    def take(self, reference_ns: int) -> dict[str, NDArray[np.float32]] | NotReady:
        """The state at a new observation's stamp, which is counted and checked against the trained range."""
        state = self._aligner.state_at(reference_ns)
        if not isinstance(state, NotReady):
            self._last_reference_ns = reference_ns
            self._states_awaited = 0
            self._state.ledger.observations += 1
        return state

    def check(self, state: Mapping[str, NDArray[np.floating]]) -> StateFit:
        """How a state fits the trained range; said when that changes."""
        fit, self.state_warnings = check_state(state, self._trained, self._names)
        if fit is StateFit.INSIDE:
            self._state.log.end("state", "the state is within the trained range")
        else:
            self._state.log.begin("state", fit.value, "; ".join(self.state_warnings))
        return fit

    def supervise(self, pictures_fault: NotReady | None) -> None:
        """Note whether there is an observation now, and why not: also where only its pictures are missing."""
        found = self.reference()
        self._note(found if isinstance(found, NotReady) else pictures_fault)

    def told(self, reason: NotReady | None) -> None:
        """Note that a reason was published."""
        if reason is self._clock_jump:
            self._clock_jump = None

    def reset(self) -> None:
        """Forget what was seen."""
        self._aligner.reset()
        self._last_reference_ns = None

    def _note(self, reason: NotReady | None) -> None:
        """Keep the reason why there is no observation, and say it when it changes."""
        known, self._not_ready = self._not_ready, reason
        if reason is None:
            if known is not None:
                self._state.has_news = True
                self._state.log.end("observation", "observations are complete")
        elif known is None or (known.reason, known.stream) != (reason.reason, reason.stream):
            self._state.has_news = True
            self._state.ledger.refusals[reason.reason.value] += 1
            kind = f"{reason.reason.value} {reason.stream}"
            self._state.log.begin("observation", kind, f"no observation: {reason.sentence}")
