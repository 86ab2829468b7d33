"""The switch of motion: what speaks against it, and the hold that is sent when it goes off."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from groot_ros.checkpoint.statistics import TagStatistics
from groot_ros.contract import Contract
from groot_ros.execution.status import HoldReason
from groot_ros.nodes.policy_gate import MotionGate, table
from groot_ros.nodes.policy_motion import Motion
from groot_ros.nodes.policy_outputs import Outputs
from groot_ros.nodes.policy_parameters import PolicyParameters
from groot_ros.nodes.policy_state import SessionState


class MotionSwitch:
    """Switches motion for a session; whoever calls holds the session's lock.

    Args:
        contract: The robot.
        statistics: What the policy was trained on.
        parameters: Whether it is a dry run, and whether motion goes on by itself.
        motion: What moves.
        outputs: What the controllers say.
        state: What the session's parts share.
        measured: Gives the newest values of all state groups in topic units; None while one has not come yet.
        on_start: Called when motion begins.

    """

    def __init__(
        self,
        contract: Contract,
        statistics: TagStatistics,
        *,
        parameters: PolicyParameters,
        motion: Motion,
        outputs: Outputs,
        state: SessionState,
        measured: Callable[[], Mapping[str, NDArray[np.float64]] | None],
        on_start: Callable[[], None],
    ) -> None:
        self._gate = MotionGate(contract, statistics)
        self._parameters = parameters
        self._motion = motion
        self._outputs = outputs
        self._state = state
        self._logger = state.logger
        self._measured = measured
        self._on_start = on_start
        self._turns_itself_on = parameters.auto_enable

    def activated(self) -> None:
        """Note that the node is active from now on."""
        self._turns_itself_on = self._parameters.auto_enable
        if self._parameters.dry_run:
            self._motion.start(sends=False)

    def state_came(self) -> None:
        """Say what the first complete state is, as it is and as the policy knows it."""
        if self._gate.readings is not None:
            return
        measured = self._measured()
        if measured is None:
            return
        readings = self._gate.read(measured)
        self._logger.info(f"the state as it is and as the policy knows it:\n{table(readings)}")
        refusal = self._gate.refusal()
        if refusal is not None:
            self._logger.error(f"motion must stay off: {refusal}")

    def on(self) -> tuple[bool, str]:
        """Let the robot move; whether it may, and a sentence."""
        refusal = self._refusal()
        if refusal is not None:
            return False, refusal
        if self._state.is_enabled:
            return True, "motion was enabled already"
        for warning in self._gate.warnings():
            self._logger.warning(warning)
        self._state.is_enabled = self._state.has_news = True
        self._on_start()
        self._motion.start(sends=True)
        self._logger.info("motion enabled")
        return True, "motion is enabled"

    def off(self) -> tuple[bool, str]:
        """Hold the robot as asked; whether it was done, and a sentence."""
        self._turns_itself_on = False
        if not self._state.is_enabled:
            return True, "motion was disabled already"
        self.halt()
        self._logger.info("motion disabled, a hold was sent")
        return True, "motion is disabled, a hold was sent"

    def turn_itself_on(self) -> None:
        """Do what ``auto_enable`` asks for, once; while there are observations."""
        if self._turns_itself_on and self._state.is_active and self._gate.readings is not None:
            self._turns_itself_on = False
            done, sentence = self.on()
            if not done:
                self._logger.error(f"motion stays disabled: {sentence}")

    def halt(self, because: str = "") -> None:
        """Hold the robot and switch motion off; an error where there is a reason."""
        self._motion.stop()
        self._state.ledger.stopped(self._state.now_ns())
        self._state.is_enabled = False
        self._state.has_news = True
        if because:
            self._logger.error(f"motion is disabled, a hold was sent: {because}")

    def supervise(self) -> None:
        """Say when the robot is held and when the plan is executed again."""
        if not self._state.is_enabled:
            self._state.log.end("motion", "motion is off")
            return
        holding = self._motion.status().holding
        if holding is None:
            if self._state.log.end("motion", "the plan is executed"):
                self._state.has_news = True
        elif holding is not HoldReason.REQUESTED and self._state.log.begin(
            "motion", holding.value, f"the robot is held: {holding.value.replace('_', ' ')}"
        ):
            self._state.has_news = True

    def _refusal(self) -> str | None:
        """Why motion must not go on."""
        if self._parameters.dry_run:
            return "this is a dry run, so nothing is sent to the robot; start the node with dry_run:=false"
        if not self._state.is_active:
            return "the node is not active; activate it first"
        if self._state.fault:
            return self._state.fault
        measured = self._measured()
        if measured is not None:
            self._gate.read(measured)
        return self._gate.refusal() or self._outputs.refusal()
