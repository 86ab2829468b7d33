"""The model's thread and the robots that share it: who is predicted with whom, and whose fault is whose."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("rclpy")

from support.golden import TINY_SINGLE

from groot_ros.alignment import TurningBuffers
from groot_ros.errors import ContractError
from groot_ros.nodes import policy_predictions
from groot_ros.nodes.policy_host import PolicyHost, PolicySettings
from groot_ros.nodes.policy_loading import plain_observation, warm_up
from groot_ros.nodes.policy_worker import InferenceWorker, Job, Outcome, Seat
from groot_ros.policy import GrootPolicy, PredictionRequest

DEADLINE_S = 30.0
SETTINGS = PolicySettings(
    checkpoint=str(TINY_SINGLE),
    embodiment_tag="new_embodiment",
    rate_hz=10.0,
    device="cpu",
    dtype=None,
    backbone=None,
    allow_download=False,
    action_decode_transform="auto",
)


@pytest.fixture(scope="module")
def loaded() -> GrootPolicy:
    return GrootPolicy.from_checkpoint(TINY_SINGLE, "new_embodiment", device="cpu", rate_hz=10.0)


@pytest.fixture
def policy(loaded: GrootPolicy, monkeypatch: pytest.MonkeyPatch) -> GrootPolicy:
    """A real policy that keeps how many robots each run of the network had."""
    road = loaded._road

    def noted(observations, noise, make_prefixes):
        loaded.runs.append(len(observations))
        return road(observations, noise, make_prefixes)

    loaded.runs = []
    monkeypatch.setattr(loaded, "_road", noted)
    return loaded


@pytest.fixture
def worker(policy: GrootPolicy):
    worker = InferenceWorker(policy)
    yield worker
    assert worker.stop()


@dataclass
class Robot:
    """A seat, and what came to it."""

    seat: Seat = field(init=False)
    outcomes: list[Outcome] = field(default_factory=list)

    @classmethod
    def at(cls, worker: InferenceWorker) -> Robot:
        robot = cls()
        robot.seat = worker.seat(robot.outcomes.append)
        return robot

    def ask(self, policy: GrootPolicy, seed: int = 0, instruction: str = "pick up the cup", **changes) -> None:
        observation = replace(plain_observation(policy, instruction), **changes)
        self.seat.submit(Job(PredictionRequest(observation, seed=seed), generation=seed))


def wait_for(condition: Callable[[], object]) -> None:
    end = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.002)


def occupied(worker: InferenceWorker) -> threading.Event:
    """Keep the thread busy until the event is set."""
    busy, free = threading.Event(), threading.Event()
    threading.Thread(target=lambda: worker.call(lambda: busy.set() or free.wait(DEADLINE_S)), daemon=True).start()
    assert busy.wait(DEADLINE_S)
    return free


def test_robots_that_wait_when_the_model_becomes_free_are_predicted_together(policy, worker):
    robots = [Robot.at(worker) for _ in range(3)]
    free = occupied(worker)
    for seed, robot in enumerate(robots):
        robot.ask(policy, seed)
    free.set()
    wait_for(lambda: all(robot.outcomes for robot in robots))
    assert policy.runs == [3]
    for seed, robot in enumerate(robots):
        (outcome,) = robot.outcomes
        assert outcome.job.generation == seed
        alone = policy.predict(outcome.job.request.observation, seed=seed)
        np.testing.assert_allclose(outcome.prediction.chunk.groups["single_arm"], alone.groups["single_arm"], atol=1e-4)
        assert robot.seat.busy_s == 0.0


def test_a_robot_that_is_alone_waits_for_nobody(policy, worker):
    first, _second = Robot.at(worker), Robot.at(worker)
    first.ask(policy)
    wait_for(lambda: first.outcomes)
    assert policy.runs == [1]


def test_robots_whose_prompts_differ_in_length_run_one_after_the_other(policy, worker):
    robots = [Robot.at(worker) for _ in range(2)]
    free = occupied(worker)
    for robot, words in zip(robots, ("go", "put the big red cube into the left bowl"), strict=True):
        robot.ask(policy, instruction=words)
    free.set()
    wait_for(lambda: all(robot.outcomes for robot in robots))
    assert policy.runs == [1, 1]


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [({"images": {}}, "cameras of 'new_embodiment'"), ({"state": {}}, "state of 'new_embodiment'")],
    ids=["no cameras", "no state"],
)
def test_an_observation_that_does_not_fit_is_the_fault_of_its_robot_alone(policy, worker, fault, sentence):
    well, ill = Robot.at(worker), Robot.at(worker)
    free = occupied(worker)
    well.ask(policy)
    ill.ask(policy, **fault)
    free.set()
    wait_for(lambda: well.outcomes and ill.outcomes)
    assert well.outcomes[0].prediction is not None
    assert ill.outcomes[0].prediction is None
    assert sentence in ill.outcomes[0].fault
    assert well.seat.is_alive
    assert ill.seat.is_alive


def test_what_nobody_foresaw_ends_the_seat_of_one_robot_and_not_those_of_others(policy, worker, monkeypatch):
    well, ill = Robot.at(worker), Robot.at(worker)
    encode = policy.processor.state.encode

    def broken(states):
        if any(state.get("cursed") for state in states):
            msg = "out of memory"
            raise MemoryError(msg)
        return encode(states)

    monkeypatch.setattr(policy.processor.state, "encode", broken)
    free = occupied(worker)
    well.ask(policy)
    ill.ask(policy, state={"cursed": True})
    free.set()
    wait_for(lambda: well.outcomes and ill.seat.death)
    assert ill.seat.death == "MemoryError: out of memory"
    assert not ill.seat.is_alive
    assert ill.outcomes == []
    well.ask(policy)
    wait_for(lambda: len(well.outcomes) == 2)


def test_whoever_has_left_hears_nothing_more(policy, worker):
    stays, leaves = Robot.at(worker), Robot.at(worker)
    free = occupied(worker)
    stays.ask(policy)
    leaves.ask(policy)
    leaves.seat.leave()
    free.set()
    wait_for(lambda: stays.outcomes)
    assert policy.runs == [1]
    assert leaves.outcomes == []


def test_what_is_called_in_the_model_s_thread_raises_where_it_was_called(worker):
    assert worker.call(lambda: threading.current_thread().name) == "groot_policy_model"
    with pytest.raises(ZeroDivisionError):
        worker.call(lambda: 1 / 0)
    assert worker.is_alive


def test_the_warm_up_runs_every_number_of_robots_and_times_all_together(policy, worker):
    assert warm_up(worker, "pick up the cup", robots=3) > 0
    assert policy.runs == [1, 2, 3, 3, 3, 3]


def test_robots_share_one_policy_and_the_last_one_lets_it_go():
    host = PolicyHost(2)
    left = host.enter("/left/groot_policy", SETTINGS)
    assert host.enter("/right/groot_policy", SETTINGS) is left
    assert host.leave("/left/groot_policy")
    assert left.is_alive
    assert host.leave("/right/groot_policy")
    assert not left.is_alive
    again = host.enter("/left/groot_policy", replace(SETTINGS, embodiment_tag="libero_sim"))
    assert again is not left
    assert again.policy.embodiment.tag == "libero_sim"
    assert host.leave("/left/groot_policy")


@pytest.mark.parametrize(
    ("other", "difference"),
    [
        ({"embodiment_tag": "libero_sim"}, "embodiment_tag libero_sim instead of new_embodiment"),
        ({"rate_hz": 20.0}, "rate_hz 20.0 instead of 10.0"),
        ({"checkpoint": "/models/other"}, f"checkpoint /models/other instead of {TINY_SINGLE}"),
        ({"backbone": Path("/b")}, "backbone /b instead of None"),
    ],
    ids=["tag", "rate", "checkpoint", "backbone"],
)
def test_a_robot_that_wants_another_policy_is_refused_with_what_differs(loaded, monkeypatch, other, difference):
    monkeypatch.setattr(GrootPolicy, "from_checkpoint", lambda *_arguments, **_options: loaded)
    host = PolicyHost(2)
    worker = host.enter("/left/groot_policy", SETTINGS)
    try:
        with pytest.raises(ContractError) as refusal:
            host.enter("/right/groot_policy", replace(SETTINGS, **other))
        assert str(refusal.value) == (
            f"/right/groot_policy: wants {difference}, as /left/groot_policy in this process has it; robots of one "
            "process share one policy, so start a process of its own for this robot"
        )
        assert worker.is_alive
    finally:
        assert host.leave("/left/groot_policy")


def test_a_gpu_gets_its_frames_in_pinned_buffers_and_a_cpu_in_plain_ones(monkeypatch):
    asked = []

    def pinned_frames(shape):
        asked.append(shape)
        return np.zeros(shape, np.uint8)

    monkeypatch.setattr(policy_predictions, "pinned_frames", pinned_frames)
    shape = (2, 48, 64, 3)
    for device, wanted in (("cpu", []), ("cuda", [shape])):
        buffers = policy_predictions.frame_buffers(torch.device(device))
        assert isinstance(buffers, TurningBuffers)
        assert buffers("front", shape) is buffers("front", shape), "one buffer, used again"
        assert asked == wanted
