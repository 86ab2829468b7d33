"""The executor: takes action chunks as they arrive, says what to send now, when to infer next, and when to hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from groot_ros.contract import Contract
from groot_ros.contract.timing import nanoseconds
from groot_ros.errors import MotionError
from groot_ros.execution.commands import Command
from groot_ros.execution.deltas import integrate_deltas
from groot_ros.execution.latency import LatencyWindow, expired_sentence
from groot_ros.execution.limits import far_beyond_sentence, route_limits
from groot_ros.execution.outputs import CommandMap
from groot_ros.execution.plan import Plan
from groot_ros.execution.prefix import add_prefix
from groot_ros.execution.reference import Reference, StartRamp, running
from groot_ros.execution.schedule import Schedule
from groot_ros.execution.senders import make_sender
from groot_ros.execution.settings import check_settings
from groot_ros.execution.sight import Sight
from groot_ros.execution.start_gate import Start, gate, stands_as_told
from groot_ros.execution.status import Acceptance, ExecutorStatus, HoldReason, Inference, Refusal
from groot_ros.execution.strategies import make_strategy
from groot_ros.execution.urdf import UrdfLimits
from groot_ros.observation import NANOSECONDS_PER_SECOND, ActionChunk

CLOCK_DISORDER_NS = 50_000_000
"""Two threads may read the clock in one order and call in the other; a clock that was set back jumps further."""


class Executor:
    """Everything between action chunks and commands. It has no clock and no thread: every call is told what time it is.

    One thread at a time: the node guards it with a lock. The order of calls::

        executor = Executor(contract, horizon=policy.horizon)
        executor.observe(observation.state, observation.stamp_ns, now)      # each fresh observation
        if executor.inference_due(now):
            inference = executor.begin_inference(observation.stamp_ns, now)
            chunk = policy.predict(observation, inference.prefix, frozen_rows=inference.frozen_rows)   # elsewhere
            acceptance = executor.accept(policy.rollout(chunk), inference, now)
        for command in executor.commands(now):                              # a timer
            publish(command)
        for command in executor.hold(now):                                  # enable off, deactivate, SIGTERM
            publish(command)

    A clock that jumps back (a simulation that starts again) drops the plan and the inference in flight, and holds.
    """

    def __init__(self, contract: Contract, *, horizon: int, urdf: UrdfLimits | None = None) -> None:
        """Prepare for one contract.

        Args:
            contract: Outputs, limits and the key ``motion``.
            horizon: Rows of the policy's chunks.
            urdf: The robot's description, where the contract takes limits from it.

        Raises:
            ContractError: The description is missing or lacks a joint, or the settings cannot go together.

        """
        self.map = CommandMap.from_contract(contract)
        self._contract = contract
        self._motion = contract.motion
        self._hold_ns, self._clip_hold_ns = nanoseconds(self._motion.hold_s), nanoseconds(self._motion.clip_hold_s)
        self._stopping_ns = self._hold_ns + nanoseconds(self._motion.hold_ramp_s)
        check_settings(contract, self.map, urdf)
        self._synchronous = contract.motion.mode == "synchronous"
        self._strategy = make_strategy(contract.motion)
        self._limits = {route.name: route_limits(contract, route, urdf) for route in self.map.routes}
        self._senders = {
            route.name: make_sender(route, self._limits[route.name], self._motion) for route in self.map.routes
        }
        self.latency = LatencyWindow(size=contract.motion.latency_window, percentile=contract.motion.latency_percentile)
        self._schedule = Schedule(contract.motion, contract.period_ns, horizon, self.latency)
        self._epoch = 0
        self._now_ns: int | None = None
        self._stands_ns: int | None = None
        self._plan: Plan | None = None
        self._chunk_stamp_ns = 0
        self._references: dict[str, Reference] = {}
        self._sight = Sight(self._hold_ns)
        self._continues = False
        self._holding: HoldReason | None = HoldReason.NO_PLAN
        self._pending_hold = False
        self._seam_jump = 0.0
        self._chunks = 0
        self._holds: Counter[HoldReason] = Counter()
        self._refusals: Counter[Refusal] = Counter()
        self._last_refusal = ""

    @property
    def epoch(self) -> int:
        """Rises with each reset, hold and change of task; an inference of an older epoch is refused."""
        return self._epoch

    @property
    def holding(self) -> HoldReason | None:
        """Why the robot is held or has not begun to move; None while a plan is executed."""
        return self._holding

    def observe(
        self, state: Mapping[str, NDArray[np.floating]], stamp_ns: int, now_ns: int, *, complete: bool = True
    ) -> None:
        """Note where the robot is.

        Args:
            state: State groups in the policy's units ``(T, D)``, newest last, as in an Observation.
            stamp_ns: Their time.
            now_ns: The node's clock.
            complete: Whether cameras and all were there, so that the robot may go on moving; False for states alone,
                which serve the start gate and the feedback of twists. An observation that was seen before is not fresh.

        """
        now_ns = self._tick(now_ns)
        self._sight.note(self.map.measure(state, stamp_ns), now_ns, complete=complete)

    def inference_due(self, now_ns: int) -> bool:
        """Whether the next inference must start now so that its chunk arrives in time; False while one is running."""
        now_ns = self._tick(now_ns)
        return self._schedule.due(now_ns)

    def begin_inference(self, observation_stamp_ns: int, now_ns: int) -> Inference:
        """Note that an inference starts, and cut its prefix from what is still to be executed."""
        now_ns = self._tick(now_ns)
        inference = Inference(self._epoch, now_ns, observation_stamp_ns, self._sight.measurement)
        if self._strategy.uses_prefix and self._continues and self._plan is not None and self.latency.known:
            inference = add_prefix(
                inference,
                self._plan,
                self.map.layout,
                self._motion,
                self.latency,
                horizon=self._schedule.horizon,
                period_s=self._contract.period_s,
            )
        self._schedule.began(now_ns)
        return inference

    def cancel_inference(self, inference: Inference, now_ns: int) -> None:
        """Note that an inference ended without a chunk."""
        self._tick(now_ns)
        if inference.epoch == self._epoch:
            self._schedule.ended()

    def accept(self, chunk: ActionChunk, inference: Inference, now_ns: int) -> Acceptance:
        """Take a chunk (with the rollout transform of the tag applied) into the plan, or refuse it with a sentence."""
        now_ns = self._tick(now_ns)
        try:
            refusal = self._take(chunk, inference, now_ns)
        except MotionError as error:
            refusal = Acceptance(Refusal.INVALID, str(error))
        if refusal is None:
            self._chunks += 1
            return Acceptance()
        if refusal.refusal is not None:
            self._refusals[refusal.refusal] += 1
            self._last_refusal = refusal.sentence
        if refusal.refusal in {Refusal.BEYOND_LIMIT, Refusal.INVALID} and self._holding is None:
            self._drop(HoldReason.CLIPPED)
        return refusal

    def commands(self, now_ns: int, outputs: Collection[str] | None = None) -> list[Command]:
        """What must be sent now.

        Trajectories come when the plan has changed or the one that was sent runs short; array, float, pose and twist
        outputs on every call (call at their ``rate_hz``); gripper goals on a change. When the plan or the observations
        have been missing for ``hold_s``, the commands of a hold come once, for all outputs.

        Args:
            now_ns: The node's clock.
            outputs: Names of the outputs whose timer this is; all by default.

        """
        now_ns = self._tick(now_ns)
        if self._holding is None:
            reason = self._reason_to_hold(now_ns)
            if reason is not None:
                self._drop(reason)
        if self._pending_hold:
            self._pending_hold = False
            return self._hold_commands(now_ns, ramp=True, stands=False)
        commands: list[Command] = []
        for name, sender in self._senders.items():
            if outputs is None or name in outputs:
                commands += sender.commands(self._references.get(name), now_ns, self._sight.measurement)
        return commands

    def hold(self, now_ns: int) -> list[Command]:
        """Stop: drop the plan, make the inference in flight worthless, and return what stops every output.

        It may be the last that is ever sent, so nothing is left to later calls. A robot that stands under a hold since
        long is told again only where it stands as it was told: see :func:`stands_as_told`.
        """
        now_ns = self._tick(now_ns)
        self._epoch += 1
        stands = self._stands_ns is not None and self._is_at_rest(now_ns)
        self._drop(HoldReason.REQUESTED)
        self._pending_hold = False
        return self._hold_commands(now_ns, ramp=False, stands=stands)

    def overhear(self, command: Command, heard_ns: int) -> None:
        """Note a command that another process sent: a hold starts from it as from one of our own.

        When all commands have been heard long ago, the robot has come to rest since.
        """
        self._senders[command.output].overhear(command)
        rest_ns = heard_ns + nanoseconds(self._motion.max_ahead_s) + self._stopping_ns
        self._stands_ns = max(self._stands_ns or rest_ns, rest_ns)

    def reset(self, now_ns: int) -> None:
        """Forget the plan and where the robot was, and refuse the inference in flight; the next commands are a hold."""
        self._tick(now_ns)
        self._epoch += 1
        self._sight.forget()
        if self._holding is None:
            self._drop(HoldReason.NO_PLAN)
        self._schedule.reset()

    def change_task(self, now_ns: int) -> None:
        """A new instruction: refuse the inference in flight, and let the next one begin at once and without a prefix.

        The rows that are still planned go on, so that the robot does not stop for a change of words.
        """
        self._tick(now_ns)
        self._epoch += 1
        self._continues = False
        self._schedule.reset()

    def start_up_fault(self, latency_ns: int) -> str | None:
        """Whether a latency measured before any motion leaves rows to execute: the sentence of a refusal, or None."""
        if self._synchronous:
            return None
        return expired_sentence(latency_ns, self._schedule.horizon, self._contract.period_s)

    def status(self, now_ns: int) -> ExecutorStatus:
        """What is going on."""
        now_ns = self._tick(now_ns)
        plan = self._plan
        return ExecutorStatus(
            holding=self._holding,
            chunk_age_s=None if plan is None else (now_ns - self._chunk_stamp_ns) / NANOSECONDS_PER_SECOND,
            rows_ahead=0 if plan is None else plan.rows_ahead(now_ns),
            latency_s=self.latency.latency_ns / NANOSECONDS_PER_SECOND,
            seam_jump=self._seam_jump,
            chunks=self._chunks,
            holds=dict(self._holds),
            clips=sum((sender.clips for sender in self._senders.values()), Counter()),
            slowed=sum((sender.slowed for sender in self._senders.values()), Counter()),
            refusals=dict(self._refusals),
            last_refusal=self._last_refusal,
        )

    def commanded(self, output: str, now_ns: int) -> NDArray[np.float64] | None:
        """What an output was told to be doing at this time ``(J,)``.

        None before its first command, and for a twist that leads towards a pose.
        """
        return self._senders[output].commanded(now_ns)

    def _take(self, chunk: ActionChunk, inference: Inference, now_ns: int) -> Acceptance | None:
        """Put a chunk into the plan; what speaks against it, or None."""
        if inference.epoch != self._epoch:
            return Acceptance(Refusal.RESET, "the chunk was begun before a reset, a hold or a new instruction")
        self._schedule.ended()
        latency_ns = now_ns - inference.observation_stamp_ns
        self.latency.add(latency_ns)
        if self._synchronous:
            # The robot has waited: row 0 begins now, however long the inference took.
            new = self._new_plan(replace(chunk, stamp_ns=now_ns + self._contract.period_ns), inference)
            new = new.first(self._schedule.rows)
            self._sight.renew(now_ns)
        else:
            sentence = expired_sentence(now_ns - chunk.stamp_ns, chunk.horizon, chunk.period_s)
            if sentence is not None:
                return Acceptance(Refusal.EXPIRED, sentence)
            if not self._sight.is_fresh(now_ns):
                return Acceptance(
                    Refusal.NO_OBSERVATION, f"no fresh observation for {self._motion.hold_s} s: the chunk is too old"
                )
            new = self._new_plan(chunk, inference)
        refusal = self._beyond_limit(new, now_ns)
        if refusal is not None:
            return refusal
        ramps = {name: reference.ramp for name, reference in self._references.items()}
        if self._holding is not None:
            starts = self._starts(new, now_ns)
            if isinstance(starts, Acceptance):
                return starts
            for name, start in starts.items():
                if start.moved_to is not None:
                    self._senders[name].restart(start.moved_to, now_ns)
            ramps = {name: start.ramp for name, start in starts.items()}
        self._join(new, ramps, now_ns)
        self._chunk_stamp_ns = chunk.stamp_ns
        self._schedule.accepted(chunk.stamp_ns, now_ns)
        return None

    def _starts(self, new: Plan, now_ns: int) -> dict[str, Start] | Acceptance:
        return gate(
            {route.name: route.values(new.at(now_ns))[0] for route in self.map.routes},
            now_ns,
            self._motion,
            routes=self.map.routes,
            measurement=self._sight.measurement,
            commanded={name: sender.commanded(now_ns) for name, sender in self._senders.items()},
            at_rest=self._is_at_rest(now_ns),
        )

    def _new_plan(self, chunk: ActionChunk, inference: Inference) -> Plan:
        plan = Plan.from_chunk(self.map.layout, chunk)
        return replace(plan, rows=integrate_deltas(self.map, plan.rows, inference.measurement))

    def _join(self, new: Plan, ramps: Mapping[str, StartRamp | None], now_ns: int) -> None:
        if self._plan is None or self._synchronous:
            self._plan = new
        else:
            plan = self._strategy.merge(self._plan, new, now_ns)
            step = np.abs(plan.columns.difference(self._plan.at(now_ns), plan.at(now_ns)))[0]
            self._seam_jump = float(step[self.map.continuous].max(initial=0.0))
            # As far back as an observation may lie whose prefix is cut from this plan.
            self._plan = plan.since(now_ns - self._schedule.horizon * self._contract.period_ns)
        self._references = {
            route.name: Reference(self._plan.select(route.columns, route.indices), running(ramps[route.name], now_ns))
            for route in self.map.routes
        }
        self._holding = self._stands_ns = None
        self._pending_hold = False
        self._continues = True

    def _beyond_limit(self, new: Plan, now_ns: int) -> Acceptance | None:
        """Refuse a chunk that wants what no clamping makes sensible; after a hold for clipping, any clipping at all."""
        allowed = 0.0 if self._holding is HoldReason.CLIPPED else self._motion.far_beyond
        _, rows = new.ahead(now_ns)
        for route in self.map.routes:
            sentence = far_beyond_sentence(route, self._limits[route.name], rows, allowed)
            if sentence is not None:
                return Acceptance(Refusal.BEYOND_LIMIT, sentence)
        return None

    def _reason_to_hold(self, now_ns: int) -> HoldReason | None:
        if not self._sight.is_fresh(now_ns):
            return HoldReason.NO_OBSERVATION
        if self._plan is None or now_ns > self._plan.end_ns + self._hold_ns:
            return HoldReason.NO_PLAN
        if self._schedule.overdue(now_ns):
            return HoldReason.INFERENCE_OVERDUE
        for sender in self._senders.values():
            if sender.clipped_since_ns is not None and now_ns - sender.clipped_since_ns > self._clip_hold_ns:
                return HoldReason.CLIPPED
        return None

    def _drop(self, reason: HoldReason) -> None:
        """Give up the plan; the commands of a hold are due."""
        if self._holding is None:
            self._holds[reason] += 1
            self._pending_hold = True
            self._stands_ns = (self._now_ns or 0) + self._stopping_ns
        self._holding = reason
        self._plan, self._references, self._continues = None, {}, False
        self._schedule.plan_lost()
        if reason in {HoldReason.REQUESTED, HoldReason.CLOCK_JUMPED_BACK}:
            self._schedule.reset()

    def _is_at_rest(self, now_ns: int) -> bool:
        """Whether a robot that is held has come to rest, and what is measured has followed."""
        return self._stands_ns is None or now_ns >= self._stands_ns

    def _hold_commands(self, now_ns: int, *, ramp: bool, stands: bool) -> list[Command]:
        measurement = self._sight.measured_lately(now_ns)
        commands: list[Command] = []
        for route in self.map.routes:
            sender = self._senders[route.name]
            told = sender.commanded(now_ns)
            if not stands or stands_as_told(route, self._motion, measurement=measurement, commanded=told):
                commands += sender.hold(now_ns, measurement, ramp=ramp)
        return commands

    def _tick(self, now_ns: int) -> int:
        """Note the time; a clock that jumped back makes all that was planned meaningless."""
        if self._now_ns is None or now_ns >= self._now_ns:
            self._now_ns = now_ns
        elif self._now_ns - now_ns > CLOCK_DISORDER_NS:
            self._now_ns = now_ns
            self._epoch += 1
            self._sight.forget()
            for sender in self._senders.values():
                sender.forget(now_ns)
            self._stands_ns = now_ns + self._stopping_ns
            self._drop(HoldReason.CLOCK_JUMPED_BACK)
        return self._now_ns
