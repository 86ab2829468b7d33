"""Every way in which a running robot loses its policy, injected for real: its measured velocity must be zero in time.

Demo robot, cameras, policy and watchdog are processes of their own. The arm swings evenly when the fault comes.
"""

from __future__ import annotations

import signal
import time

import numpy as np
import pytest

pytest.importorskip("rclpy")
# Slow: they measure how soon an arm is at rest, which a machine that has other things to do cannot promise.
pytestmark = [pytest.mark.dds, pytest.mark.slow, pytest.mark.timeout(240)]

from lifecycle_msgs.msg import Transition  # noqa: E402
from support.demo_stage import DemoStage, demo_stage  # noqa: E402
from support.ros import isolate, own_domain  # noqa: E402

TOLERANCE_S = 0.1


@pytest.fixture(scope="module")
def stage(tmp_path_factory):
    isolate(own_domain(), tmp_path_factory.mktemp("ros_log"))
    with demo_stage(tmp_path_factory.mktemp("stage")) as stage:
        yield stage


def assert_rest_within(stage: DemoStage, fault_ns: int, bound_s: float) -> None:
    """At rest within the bound and 100 ms, and what this machine itself kept everybody waiting meanwhile."""
    rest_ns = stage.came_to_rest_ns(fault_ns)
    waited_s = stage.delays.worst_s(fault_ns, rest_ns)
    taken_s = (rest_ns - fault_ns) / 1e9
    print(f"at rest after {taken_s:.3f} s, allowed {bound_s:.1f} + {TOLERANCE_S}, machine's own delay {waited_s:.3f} s")
    assert taken_s <= bound_s + TOLERANCE_S + waited_s, stage.last_words()
    assert stage.rejected() == ""


def lost_after_s(stage: DemoStage) -> float:
    return stage.motion["hold_s"] + stage.motion["hold_ramp_s"]


def assert_held_for(stage: DemoStage, reason: str) -> None:
    stage.wait_for(lambda: stage.part("groot_policy: motion").startswith(reason), reason, 5.0)


def test_a_camera_process_that_is_killed(stage):
    stage.move()
    fault_ns = stage.send("cameras", signal.SIGKILL)
    assert_rest_within(stage, fault_ns, lost_after_s(stage))
    assert_held_for(stage, "held: no fresh observation")
    stage.processes["cameras"].wait()


@pytest.mark.parametrize("silent", [True, False], ids=["silent", "the same message again and again"])
def test_joint_states_that_freeze(stage, silent):
    stage.move()
    stage.freeze(silent=silent)
    assert_rest_within(stage, time.time_ns(), lost_after_s(stage))
    assert_held_for(stage, "held: no fresh observation")


def test_a_model_thread_that_hangs(stage):
    """What is missing is the plan, from when the next chunk should have come: one latency after its inference began."""
    stage.move()
    latency_s = float(stage.values("groot_policy: motion")["latency_s"])
    since = stage.folder / "hanging_since_ns"
    since.unlink(missing_ok=True)
    (stage.folder / "hang").touch()
    stage.wait_for(lambda: since.exists() and since.read_text(), "hanging model")
    try:
        assert_rest_within(stage, int(since.read_text()) + round(latency_s * 1e9), lost_after_s(stage))
        assert_held_for(stage, "held: the policy has not answered in time")
    finally:
        (stage.folder / "hang").unlink()


def test_a_policy_process_that_is_killed_outright(stage):
    stage.move()
    fault_ns = stage.send("policy", signal.SIGKILL)
    stage.processes["policy"].wait()
    assert_rest_within(stage, fault_ns, lost_after_s(stage))
    assert "a hold was sent on arm_controller/joint_trajectory" in stage.part("groot_watchdog: heartbeat")
    hold = sent_after(stage, fault_ns)[-1]
    assert is_hold(hold)


def test_a_policy_process_that_stops_without_ending(stage):
    stage.move()
    fault_ns = stage.send("policy", signal.SIGSTOP)
    try:
        assert_rest_within(stage, fault_ns, lost_after_s(stage))
        assert "a hold was sent" in stage.part("groot_watchdog: heartbeat")
    finally:
        woken_ns = stage.send("policy", signal.SIGCONT)
    stage.wait_for(
        lambda: [message for message in sent_after(stage, woken_ns) if not is_hold(message)], "motion after waking"
    )
    assert stage.rejected() == ""


@pytest.mark.parametrize("way", ["~/enable off", "deactivate", "SIGTERM"])
def test_stopping_sends_a_hold_that_replaces_the_trajectory(stage, way):
    stage.move()
    asked_ns = time.time_ns()
    if way == "~/enable off":
        assert "a hold was sent" in stage.enable(on=False).message
    elif way == "deactivate":
        stage.transition(Transition.TRANSITION_DEACTIVATE)
    else:
        stage.send("policy", signal.SIGTERM)
        assert stage.processes["policy"].wait(20) == 0
    # The trajectory that was running would go on for up to max_ahead_s; the hold ends it within hold_ramp_s.
    assert_rest_within(stage, asked_ns, stage.motion["hold_ramp_s"])
    after = sent_after(stage, asked_ns)
    first = next(index for index, message in enumerate(after) if is_hold(message))
    assert all(is_hold(message) for message in after[first:]), "nothing but holds after the first one"
    if way == "deactivate":
        stage.transition(Transition.TRANSITION_ACTIVATE)


def is_hold(message) -> bool:
    return len(message.points) == 1 and not np.any(message.points[0].velocities)


def sent_after(stage: DemoStage, time_ns: int) -> list:
    """What was heard on the controller's topic since a moment."""
    return [message for received_ns, message in list(stage.commands) if received_ns >= time_ns]
