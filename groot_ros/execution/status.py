"""What the executor says about itself and about each chunk: plain values for diagnostics and for the node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from groot_ros.execution.outputs import Measurement
from groot_ros.observation import ActionChunk


class Refusal(Enum):
    """Why a chunk is not executed."""

    RESET = "reset"
    EXPIRED = "expired"
    INVALID = "invalid"
    BEYOND_LIMIT = "beyond_limit"
    START_JUMP = "start_jump"
    NOT_MEASURED = "not_measured"
    NO_OBSERVATION = "no_observation"


class HoldReason(Enum):
    """Why the robot is held."""

    NO_PLAN = "no_plan"
    NO_OBSERVATION = "no_observation"
    INFERENCE_OVERDUE = "inference_overdue"
    CLIPPED = "clipped"
    CLOCK_JUMPED_BACK = "clock_jumped_back"
    REQUESTED = "requested"


@dataclass(frozen=True)
class Inference:
    """A prediction that starts: hand it back with its chunk.

    Attributes:
        epoch: The executor's epoch at the start; a reset makes it worthless.
        started_ns: When it started.
        observation_stamp_ns: Stamp of its observation.
        measurement: Where the robot was then, None where unknown.
        prefix: For real-time chunking: the rows still to come, in the policy's units on the grid of the observation
            (row j for ``stamp + j * period``), to be given to the policy as ``previous_chunk``; else None.
        frozen_rows: Rows of the prefix that will be behind when the chunk arrives, by measured latency.

    """

    epoch: int
    started_ns: int
    observation_stamp_ns: int
    measurement: Measurement | None = None
    prefix: ActionChunk | None = None
    frozen_rows: int = 0


@dataclass(frozen=True)
class Acceptance:
    """What became of a chunk: ``refusal`` is None when it is executed; ``sentence`` says why it is not."""

    refusal: Refusal | None = None
    sentence: str = ""

    @property
    def accepted(self) -> bool:
        """Whether the chunk is executed."""
        return self.refusal is None


@dataclass(frozen=True)
class ExecutorStatus:
    """For ``/diagnostics`` and ``~/status``.

    Attributes:
        holding: Why the robot is held or has not begun to move; None while a plan is executed.
        chunk_age_s: Time since the observation of the newest chunk; None without a plan.
        rows_ahead: Rows of the plan after now.
        latency_s: The latency that is reckoned with; 0 while unknown.
        seam_jump: Largest step between the old and the new plan at the last switch, in the robot's units.
        chunks: Chunks accepted.
        holds: How often the robot was held, by reason.
        clips: Commands that a position or workspace limit changed, by the robot's name.
        slowed: Commands that a rate limit changed, by the robot's name.
        refusals: Chunks refused, by reason.
        last_refusal: The sentence of the last refusal.

    """

    holding: HoldReason | None
    chunk_age_s: float | None
    rows_ahead: int
    latency_s: float
    seam_jump: float
    chunks: int
    holds: Mapping[HoldReason, int] = field(default_factory=dict)
    clips: Mapping[str, int] = field(default_factory=dict)
    slowed: Mapping[str, int] = field(default_factory=dict)
    refusals: Mapping[Refusal, int] = field(default_factory=dict)
    last_refusal: str = ""
