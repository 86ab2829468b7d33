"""Several robots in one run of the network: each gets what it would get alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from support.golden import TINY_SINGLE, load_case
from support.networks import encode, golden_inputs, tiny_network

from groot_ros.errors import ModelError, ObservationError
from groot_ros.model.sampler import RealTimeChunking
from groot_ros.observation import ActionChunk, Observation
from groot_ros.policy import GrootPolicy, PredictionRequest
from groot_ros.prediction import DirectRoad, GraphRoad

PERIOD_NS = 50_000_000
CASE = load_case("model", "new_embodiment_b2")
ROUNDING = 1e-5
"""Of an action's range: a product over a batch may sum in another order than over one sample."""


@pytest.fixture(scope="module")
def policy() -> GrootPolicy:
    return GrootPolicy.from_checkpoint(TINY_SINGLE, "new_embodiment", device="cpu", rate_hz=20.0)


@pytest.fixture(name="captured")
def in_stages(policy: GrootPolicy, monkeypatch: pytest.MonkeyPatch) -> GraphRoad:
    road = GraphRoad(policy.processor, policy.network)
    monkeypatch.setattr(policy, "_road", road)
    return road


def observation(brightness: int = 0, *, stamp_ns: int = 0, instruction: str | None = None) -> Observation:
    return Observation(
        images={key: frames[0] + np.uint8(brightness) for key, frames in CASE.raw("video").items()},
        state={key: values[0] + np.float32(0.001 * brightness) for key, values in CASE.raw("state").items()},
        instruction=str(CASE["raw.language"][0]) if instruction is None else instruction,
        stamp_ns=stamp_ns,
    )


def alone(policy: GrootPolicy, request: PredictionRequest) -> ActionChunk:
    return policy.predict_batch([request])[0].chunk


def runs_of(policy: GrootPolicy, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of robots in each run of the network from now on."""
    runs: list[int] = []
    road = policy._road

    def counted(observations, noise, make_prefixes):
        runs.append(len(observations))
        return road(observations, noise, make_prefixes)

    monkeypatch.setattr(policy, "_road", counted)
    return runs


def assert_same(found: ActionChunk, wanted: ActionChunk, policy: GrootPolicy) -> None:
    assert found.stamp_ns == wanted.stamp_ns
    for key, values in wanted.groups.items():
        statistics = policy.embodiment.statistics.action[key]
        reach = float(np.abs(statistics.max - statistics.min).max())
        np.testing.assert_allclose(found.groups[key], values, rtol=0, atol=ROUNDING * reach, err_msg=key)


def test_robots_that_are_predicted_together_get_what_they_would_get_alone(policy, monkeypatch):
    requests = [
        PredictionRequest(observation(40 * robot, stamp_ns=robot), seed=robot, names={"gripper": [f"finger_{robot}"]})
        for robot in range(4)
    ]
    wanted = [alone(policy, request) for request in requests]
    runs = runs_of(policy, monkeypatch)
    answers = policy.predict_batch(requests)
    assert runs == [4]
    for robot, (answer, chunk) in enumerate(zip(answers, wanted, strict=True)):
        assert_same(answer.chunk, chunk, policy)
        assert answer.chunk.names["gripper"] == [f"finger_{robot}"]
        assert answer.chunk.names["single_arm"] == ["0", "1", "2", "3", "4"]
    assert not np.allclose(wanted[0].groups["single_arm"], wanted[1].groups["single_arm"], atol=1e-3)


def test_prompts_of_other_lengths_or_image_sizes_run_apart_since_padding_would_change_them(policy, monkeypatch):
    small = observation(1)
    small = replace(small, images={key: frames[:, ::2, ::2] for key, frames in small.images.items()})
    seen = [
        observation(instruction="pick up the cup"),
        observation(instruction="put the big red cube into the left bowl"),
        observation(instruction="open up the box"),
        small,
    ]
    requests = [PredictionRequest(each, seed=3) for each in seen]
    wanted = [alone(policy, request) for request in requests]
    lengths = [policy.processor.prompt_size(each) for each in seen]
    assert lengths[0] == lengths[2] != lengths[1]
    runs = runs_of(policy, monkeypatch)
    answers = policy.predict_batch(requests)
    assert runs == [lengths.count(length) for length in dict.fromkeys(lengths)]
    assert max(runs) < len(seen)
    for answer, chunk in zip(answers, wanted, strict=True):
        assert_same(answer.chunk, chunk, policy)


@pytest.mark.parametrize("road", [DirectRoad, GraphRoad])
def test_each_robot_of_a_batch_has_a_prefix_of_its_own_or_none(policy, monkeypatch, road):
    monkeypatch.setattr(policy, "_road", road(policy.processor, policy.network))
    before = gentle(policy)
    requests = [
        PredictionRequest(observation(stamp_ns=4 * PERIOD_NS), before, 1, frozen_rows=5),
        PredictionRequest(observation(20, stamp_ns=4 * PERIOD_NS), None, 2),
        PredictionRequest(observation(stamp_ns=9 * PERIOD_NS), before, 3, frozen_rows=2, ramp_rate=1.0),
    ]
    wanted = [alone(policy, request) for request in requests]
    answers = policy.predict_batch(requests)
    assert [answer.prefix.rows for answer in answers] == [before.horizon - 4, 0, before.horizon - 9]
    for answer, chunk in zip(answers, wanted, strict=True):
        assert_same(answer.chunk, chunk, policy)
    for key, values in answers[0].chunk.groups.items():
        np.testing.assert_allclose(values[:5], before.groups[key][4:9], atol=1e-5, err_msg=key)
    for key, values in answers[2].chunk.groups.items():
        np.testing.assert_allclose(values[:2], before.groups[key][9:11], atol=1e-5, err_msg=key)


def gentle(policy: GrootPolicy) -> ActionChunk:
    """A previous chunk near enough to the state that any row can be said by any other."""
    predicted = policy.predict(observation(), seed=1)
    arm = policy.embodiment.statistics.relative_action["single_arm"]
    reach = 0.5 * np.minimum(-arm.min, arm.max).min(axis=0)
    wave = np.sin(np.arange(predicted.horizon) + 1.0)[:, None]
    start = CASE.raw("state")["single_arm"][0].astype(np.float64)
    return replace(predicted, groups={**predicted.groups, "single_arm": start + reach * wave})


def test_prefixes_of_a_batch_start_and_weigh_each_sample_exactly_as_alone():
    network, inputs = tiny_network(), golden_inputs(CASE)
    features, noise = encode(network, inputs), torch.from_numpy(CASE["initial_noise"])
    previous = torch.randn(1, 10, noise.shape[2], generator=torch.Generator().manual_seed(1))
    chunkings = [RealTimeChunking(previous, 10, 8, 3, 6.0), None]
    assert len(noise) == 2
    sample = {"state": inputs["state"], "embodiment_id": inputs["embodiment_id"], "noise": noise}
    mixed = network.sample(features, **sample, rtc=chunkings)
    both = network.sample(features, **sample, rtc=replace(chunkings[0], previous=previous.expand(2, -1, -1)))
    plain = network.sample(features, **sample)
    torch.testing.assert_close(mixed[0], both[0], rtol=0, atol=0)
    torch.testing.assert_close(mixed[1], plain[1], rtol=0, atol=0)
    with pytest.raises(ModelError, match="3 entries for a batch of 2"):
        network.sample(features, **sample, rtc=[*chunkings, None])


def test_captured_stages_take_batches_and_other_instructions_of_the_same_length(policy, captured, monkeypatch):
    told = ["pick up the cup", "open up the box"]
    requests = [PredictionRequest(observation(60 * robot, instruction=told[robot]), seed=robot) for robot in range(2)]
    stages = [answer.chunk for answer in policy.predict_batch(requests)]
    swapped = [answer.chunk for answer in policy.predict_batch(requests[::-1])]
    assert len(captured._networks) == len(captured._images) == 1, "one capture serves every prompt of its size"
    monkeypatch.setattr(policy, "_road", DirectRoad(policy.processor, policy.network))
    for found, again, request in zip(stages, reversed(swapped), requests, strict=True):
        assert_same(found, alone(policy, request), policy)
        assert_same(again, found, policy)


def test_one_robot_that_does_not_fit_is_refused_in_a_batch_too(policy):
    wrong = replace(observation(), images={})
    with pytest.raises(ObservationError, match="cameras of 'new_embodiment'"):
        policy.predict_batch([PredictionRequest(observation()), PredictionRequest(wrong)])


def test_cameras_of_another_size_run_through_the_same_captured_network(policy, captured):
    seen = observation()
    large = replace(seen, images={key: frames.repeat(2, 1).repeat(2, 2) for key, frames in seen.images.items()})
    assert policy.processor.prompt_size(large) == policy.processor.prompt_size(seen)
    for each in (seen, large, seen):
        found = alone(policy, PredictionRequest(each, seed=1))
        policy._road, road = DirectRoad(policy.processor, policy.network), policy._road
        assert_same(found, alone(policy, PredictionRequest(each, seed=1)), policy)
        policy._road = road
    assert (len(captured._images), len(captured._networks)) == (2, 1)
