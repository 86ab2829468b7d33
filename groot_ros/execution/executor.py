"""The executor: takes action chunks as they arrive, says what to send now, when to infer next, and when to hold."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from groot_ros.contract import Contract
from groot_ros.execution.commands import Command
from groot_ros.execution.outputs import CommandMap
from groot_ros.observation import ActionChunk


class Refusal(Enum):
    """Why a chunk is not executed."""

    RESET = "reset"
    EXPIRED = "expired"
    INVALID = "invalid"
    BEYOND_LIMIT = "beyond_limit"
    START_JUMP = "start_jump"
    NOT_MEASURED = "not_measured"


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
    """A prediction that is about to start: hand it back with its chunk.

    Attributes:
        epoch: The executor's epoch at the start; a reset makes it worthless.
        started_ns: When it started.
        observation_stamp_ns: Stamp of its observation.
        prefix: For real-time chunking: the rows still to come, in the policy's units on the grid of the observation
            (row j for ``stamp + j * period``), to be given to the policy as ``previous_chunk``; else None.
        frozen_rows: Rows of the prefix that will have been executed when the chunk arrives, by measured latency.

    """

    epoch: int
    started_ns: int
    observation_stamp_ns: int
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
        holding: Why the robot is held; None while a plan is executed.
        chunk_age_s: Time since the observation of the newest chunk; None without a plan.
        rows_ahead: Rows of the plan after now.
        latency_s: The latency that is reckoned with; 0 while unknown.
        seam_jump: Largest step of any column at the last switch between chunks, in the robot's units.
        chunks: Chunks accepted.
        holds: Holds by reason.
        clips: Commands that a position or workspace limit changed, by the robot's name.
        slowed: Commands that a rate limit changed, by the robot's name.
        refusals: Chunks refused by reason.
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


class Executor:
    """Everything between action chunks and commands. It has no clock and no thread: every call is told what time it is.

    One thread at a time: the node guards it with a lock. The order of calls::

        executor = Executor(contract)
        executor.observe(observation.state, stamp_ns=..., now_ns=now)      # each fresh observation or joint state
        if executor.inference_due(now):
            inference = executor.begin_inference(observation.stamp_ns, now)
            chunk = policy.predict(observation, inference.prefix, frozen_rows=inference.frozen_rows)   # elsewhere
            acceptance = executor.accept(policy.rollout(chunk), inference, now)
        for command in executor.commands(now):                              # a timer
            publish(command)
        for command in executor.hold(now):                                  # enable off, deactivate, SIGTERM
            publish(command)

    A call whose time is before that of the last one clears the plan (simulation restarted) and holds.
    """

    def __init__(self, contract: Contract, *, horizon: int, urdf: str | None = None) -> None:
        """Prepare for one contract.

        Args:
            contract: Outputs, limits and the key ``motion``.
            horizon: Rows of the policy's chunks.
            urdf: The robot's description as XML, where the contract takes limits from a topic or file.

        Raises:
            ContractError: The limits cannot be read, or the settings cannot go together.

        """
        self.map = CommandMap.from_contract(contract)

    @property
    def epoch(self) -> int:
        """Rises with each reset; an inference of an older epoch is refused."""
        raise NotImplementedError

    def observe(
        self, state: Mapping[str, NDArray[np.floating]], stamp_ns: int, now_ns: int, *, fresh: bool = True
    ) -> None:
        """Note where the robot is.

        Args:
            state: State groups in the policy's units ``(T, D)``, newest last, as in an Observation.
            stamp_ns: Their time.
            now_ns: The node's clock.
            fresh: Whether this is a whole observation (cameras too), which keeps the hold away; False for joint states
                alone, which serve the start gate and the twist's feedback.

        """
        raise NotImplementedError

    def inference_due(self, now_ns: int) -> bool:
        """Whether the next inference must start now so that its chunk arrives in time; False while one is running."""
        raise NotImplementedError

    def begin_inference(self, observation_stamp_ns: int, now_ns: int) -> Inference:
        """Note that an inference starts, and cut its prefix from what is still to be executed."""
        raise NotImplementedError

    def cancel_inference(self, inference: Inference, now_ns: int) -> None:
        """Note that an inference ended without a chunk."""
        raise NotImplementedError

    def accept(self, chunk: ActionChunk, inference: Inference, now_ns: int) -> Acceptance:
        """Take a chunk (with the rollout transform of the tag applied) into the plan, or refuse it with a sentence."""
        raise NotImplementedError

    def commands(self, now_ns: int, outputs: Collection[str] | None = None) -> list[Command]:
        """What must be sent now.

        Trajectories come when the plan has changed or the one that was sent runs short; array, pose and twist outputs
        on every call (call at their ``rate_hz``); gripper goals on a change. When the plan or the observations have
        been missing for ``hold_s``, the commands of a hold come once.

        Args:
            now_ns: The node's clock.
            outputs: Names of the outputs whose timer this is; all by default.

        """
        raise NotImplementedError

    def hold(self, now_ns: int) -> list[Command]:
        """Stop: drop the plan, refuse the inference in flight, and return the commands that stop every output."""
        raise NotImplementedError

    def reset(self, now_ns: int) -> None:
        """Forget the plan; an inference in flight is refused. Sends nothing: call :meth:`hold` to stop."""
        raise NotImplementedError

    def status(self, now_ns: int) -> ExecutorStatus:
        """What is going on."""
        raise NotImplementedError
