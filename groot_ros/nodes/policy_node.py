"""Node ``groot_policy``: cameras and joint states in, action chunks and commands out, as a lifecycle node."""

from __future__ import annotations

import json
import time
import traceback
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.clock import Clock, ClockType
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from std_msgs.msg import Header

from groot_ros.errors import GrootError
from groot_ros.nodes.latched_text import receive_text
from groot_ros.nodes.policy_diagnostics import Snapshot, statuses, summary
from groot_ros.nodes.policy_host import PolicyHost
from groot_ros.nodes.policy_loading import load
from groot_ros.nodes.policy_parameters import PolicyParameters
from groot_ros.nodes.policy_services import PolicyServices
from groot_ros.nodes.policy_session import PolicySession
from groot_ros.nodes.quiet import QUIET

SUPERVISION_PERIOD_S = 0.1
"""Also the period of the heartbeat and of ``~/status``."""
DIAGNOSTICS_PERIOD_S = 0.5


class PolicyNode(LifecycleNode):
    """Configure loads and warms up, activate runs, deactivate holds the robot at once.

    Args:
        name: The node's name.
        host: Where the policy is, if robots of this process share one.
        options: See `rclpy.lifecycle.LifecycleNode`.

    """

    def __init__(
        self,
        name: str = "groot_policy",
        *,
        host: PolicyHost | None = None,
        **options: Any,  # noqa: ANN401 - rclpy's own
    ) -> None:
        super().__init__(name, **options)
        self._host = host or PolicyHost()
        self.session: PolicySession | None = None
        self._state_name = "unconfigured"
        self._fault = ""
        self._instruction: str | None = None
        self._last_diagnostics_s = -float("inf")
        self.parameters = PolicyParameters(self, lambda: self.session is not None)
        self._starts_itself = self.parameters.autostart
        self._diagnostics = self.create_publisher(DiagnosticArray, "/diagnostics", 10, event_callbacks=QUIET)
        self._status = self.create_publisher(DiagnosticStatus, "~/status", 10, event_callbacks=QUIET)
        self._heartbeat = self.create_publisher(Header, "~/heartbeat", 10, event_callbacks=QUIET)
        PolicyServices(self, self)
        # By a steady clock: what hangs must be said also when simulated time stands still.
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self.create_timer(SUPERVISION_PERIOD_S, self._supervise, clock=steady)

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Load contract and checkpoint, warm up, subscribe."""
        return self._guarded("configure", self._configure, lambda: super(PolicyNode, self).on_configure(state))

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Begin to infer."""
        return self._guarded("activate", self._activate, lambda: super(PolicyNode, self).on_activate(state))

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Hold the robot, then fall silent."""
        return self._guarded("deactivate", self._deactivate, lambda: super(PolicyNode, self).on_deactivate(state))

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Give the policy's memory back."""
        return self._guarded("clean up", self._clean_up, lambda: super(PolicyNode, self).on_cleanup(state))

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Hold the robot and end everything."""
        return self._guarded("shut down", self._clean_up, lambda: super(PolicyNode, self).on_shutdown(state))

    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Hold the robot and end everything: the node can be configured again."""
        return self._guarded("recover", self._clean_up, lambda: super(PolicyNode, self).on_error(state))

    def enable(self, *, on: bool) -> tuple[bool, str]:
        """See `PolicySession.enable`."""
        if self.session is None:
            sentence = self._fault or "the node is not configured; configure and activate it first"
            return (False, sentence) if on else (True, "motion was disabled already")
        return self.session.enable(on=on)

    def reset(self) -> tuple[bool, str]:
        """See `PolicySession.reset`."""
        if self.session is None:
            return False, "the node is not configured, so there is nothing to forget"
        return self.session.reset()

    def progress(self) -> tuple[bool, str]:
        """See `PolicySession.progress`."""
        if self.session is None:
            return False, "the node is not configured, so it takes no messages"
        return True, json.dumps(self.session.progress())

    def instruct(self, text: str) -> None:
        """See `PolicySession.instruct`; one that comes before configuring counts then."""
        self._instruction = text
        if self.session is not None:
            self.session.instruct(text)

    def stop(self) -> None:
        """The last thing before the process ends: hold the robot."""
        self._clean_up()

    def _configure(self) -> None:
        if self.session is not None:
            self._clean_up()
        robot = self.get_fully_qualified_name()
        loaded = load(self.parameters.configure_settings(), self._host, robot, lambda topic: receive_text(self, topic))
        policy = loaded.policy
        try:
            self.session = PolicySession(self, loaded, self.parameters)
        except BaseException:
            self._host.leave(robot)
            raise
        if self._instruction is not None:
            self.session.instruct(self._instruction)
        self.get_logger().info(
            f"{policy.checkpoint.path} as {policy.embodiment.tag} on {policy.device} ({policy.dtype}); a prediction "
            f"takes {loaded.warm_latency_s:.3f} s, a chunk covers {policy.horizon / policy.rate_hz:.2f} s"
        )
        self._state_name = "inactive"

    def _activate(self) -> None:
        if self.session is not None:
            self.session.activate()
        self._state_name = "active"
        mode = "dry run: nothing is sent to the robot" if self.parameters.dry_run else "motion is off until ~/enable"
        self.get_logger().info(f"active; {mode}")

    def _deactivate(self) -> None:
        if self.session is not None:
            self.session.deactivate()
        self._state_name = "inactive"

    def _clean_up(self) -> None:
        session, self.session = self.session, None
        self._state_name = "unconfigured"
        if session is None:
            return
        session.deactivate()
        session.destroy()
        if not self._host.leave(self.get_fully_qualified_name()):
            self.get_logger().error("the model's thread hangs and was left behind; restart the process")

    def _guarded(self, name: str, work: Any, publishers: Any) -> TransitionCallbackReturn:  # noqa: ANN401
        """Do the work of a transition; rclpy itself would swallow what is raised."""
        silent_after = name in {"deactivate", "clean up", "shut down", "recover"}
        try:
            if not silent_after:
                result = publishers()
            work()
            if silent_after:
                result = publishers()
        except GrootError as error:
            self._fault = str(error)
            self.get_logger().error(f"cannot {name}: {error}")
            return TransitionCallbackReturn.FAILURE
        except Exception as error:  # noqa: BLE001 - rclpy would hide it
            self._fault = f"cannot {name}: {type(error).__name__}: {error}"
            self.get_logger().error(f"{self._fault}\n{traceback.format_exc()}")
            return TransitionCallbackReturn.ERROR
        self._fault = ""
        return result

    def _supervise(self) -> None:
        if self._starts_itself:
            self._starts_itself = False
            if self.trigger_configure() == TransitionCallbackReturn.SUCCESS:
                self.trigger_activate()
        session = self.session
        healthy = session is not None and session.supervise()
        if session is not None and healthy and session.is_enabled:
            heartbeat = Header()
            heartbeat.stamp = self.get_clock().now().to_msg()
            self._heartbeat.publish(heartbeat)
        has_news = session is not None and session.has_news
        is_due = time.monotonic() - self._last_diagnostics_s >= DIAGNOSTICS_PERIOD_S
        is_watched = self._status.get_subscription_count() > 0
        if not (has_news or is_due or is_watched):
            return
        snapshot = self._snapshot()
        name = self.get_fully_qualified_name().lstrip("/")
        if is_watched:
            self._status.publish(summary(snapshot, name))
        if has_news or is_due:
            self._last_diagnostics_s = time.monotonic()
            if session is not None:
                session.told(snapshot)
            message = DiagnosticArray(status=statuses(snapshot, name))
            message.header.stamp = self.get_clock().now().to_msg()
            self._diagnostics.publish(message)

    def _snapshot(self) -> Snapshot:
        if self.session is not None:
            return self.session.snapshot(self._state_name)
        return Snapshot(self._state_name, fault=self._fault, is_dry_run=self.parameters.dry_run)
