"""Captured stages give what the step-by-step road gives. Without a GPU the stages are called instead of replayed."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from support.golden import TINY_SINGLE, load_case
from support.golden_road import observation
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from groot_ros.errors import ObservationError
from groot_ros.model.fast.graph import CapturedStage
from groot_ros.policy import GrootPolicy
from groot_ros.prediction import DirectRoad, GraphRoad

CASE = load_case("model", "oxe_droid_b1")
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"))]


@pytest.fixture(name="policy", scope="module", params=DEVICES)
def make_policy(request: pytest.FixtureRequest) -> GrootPolicy:
    """Two frames of two cameras, relative actions."""
    return GrootPolicy.from_checkpoint(
        TINY_SINGLE, CASE.meta["tag"], device=request.param, dtype="float32", rate_hz=15.0
    )


@pytest.fixture(name="direct")
def step_by_step(policy: GrootPolicy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy, "_road", DirectRoad(policy.processor, policy.network))


@pytest.fixture(name="captured")
def in_stages(policy: GrootPolicy, monkeypatch: pytest.MonkeyPatch) -> GraphRoad:
    road = GraphRoad(policy.processor, policy.network)
    monkeypatch.setattr(policy, "_road", road)
    return road


def both(policy: GrootPolicy, monkeypatch: pytest.MonkeyPatch, *arguments, **options) -> tuple[dict, dict]:
    found = []
    for road in (DirectRoad, GraphRoad):
        monkeypatch.setattr(policy, "_road", road(policy.processor, policy.network))
        found.append(policy.predict(*arguments, **options).groups)
    return found[0], found[1]


def assert_same(found: dict[str, np.ndarray], wanted: dict[str, np.ndarray], policy: GrootPolicy) -> None:
    """To the last bit on a CPU, where the same kernels run; to the golden tolerance on a GPU."""
    for key, values in wanted.items():
        atol = 0.0 if policy.device.type == "cpu" else 1e-3
        np.testing.assert_allclose(found[key], values, rtol=0, atol=atol, err_msg=key)


def test_both_roads_give_the_same_chunk(policy: GrootPolicy, monkeypatch: pytest.MonkeyPatch) -> None:
    direct, captured = both(policy, monkeypatch, observation(CASE), seed=3)
    assert_same(captured, direct, policy)


def test_both_roads_take_the_prefix_of_real_time_chunking(policy: GrootPolicy, monkeypatch: pytest.MonkeyPatch) -> None:
    before = policy.predict(observation(CASE), seed=1)
    later = observation(CASE, stamp_ns=3 * round(1e9 / 15))
    direct, captured = both(policy, monkeypatch, later, before, seed=2, frozen_rows=2)
    assert policy.last_prefix.rows > 0 or policy.last_prefix.dropped
    assert_same(captured, direct, policy)


def test_new_frames_state_and_noise_reach_the_captured_stages(policy: GrootPolicy, captured: GraphRoad) -> None:
    seen = observation(CASE)
    first = policy.predict(seen, seed=1).groups
    brighter = replace(seen, images={key: 255 - frames for key, frames in seen.images.items()})
    moved = replace(seen, state={key: values + np.float32(0.01) for key, values in seen.state.items()})
    for other in (policy.predict(brighter, seed=1), policy.predict(moved, seed=1), policy.predict(seen, seed=2)):
        assert any(not np.array_equal(other.groups[key], values) for key, values in first.items())
    assert_same(policy.predict(seen, seed=1).groups, first, policy)
    assert len(captured._networks) == len(captured._images) == 1


def test_a_new_instruction_or_image_size_is_captured_anew_and_the_old_one_comes_back(
    policy: GrootPolicy, captured: GraphRoad, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = observation(CASE)
    first = policy.predict(seen, seed=1).groups
    told = replace(seen, instruction="open the drawer")
    halved = replace(seen, images={key: frames[:, ::2, ::2] for key, frames in seen.images.items()})
    for changed in (told, halved):
        direct, stages = both(policy, monkeypatch, changed, seed=1)
        assert_same(stages, direct, policy)
        monkeypatch.setattr(policy, "_road", captured)
        assert_same(policy.predict(changed, seed=1).groups, stages, policy)
    assert_same(policy.predict(seen, seed=1).groups, first, policy)


def test_stages_are_timed(policy: GrootPolicy, captured: GraphRoad) -> None:
    policy.predict(observation(CASE), seed=0)
    timings = policy.last_timings
    assert min(timings.data_processing_s, timings.backbone_s, timings.action_head_s, timings.decode_s) > 0


def test_what_does_not_fit_is_refused_before_anything_is_captured(policy: GrootPolicy, captured: GraphRoad) -> None:
    seen = observation(CASE)
    with pytest.raises(ObservationError, match="must be uint8"):
        policy.predict(replace(seen, images={key: frames.astype(np.int16) for key, frames in seen.images.items()}))
    assert not captured._images


class NetworkOn:
    """Stands where a network does, on any device: what it gives lies where its inputs lie."""

    def __init__(self, device: str, dtype: torch.dtype) -> None:
        self.device, self.dtype = torch.device(device), dtype
        self.read: dict[str, Tensor] = {}

    def encode(self, **inputs: Tensor) -> Tensor:
        self.read.update(inputs)
        return inputs["pixel_values"].mean()

    def sample(self, features: Tensor, *, state: Tensor, noise: Tensor, rtc: object) -> Tensor:
        self.read["state"] = state
        return noise + features.reshape(1, 1, 1) + state.mean().reshape(1, 1, 1)


def test_step_by_step_the_inputs_go_to_a_gpu_and_the_actions_come_back(policy: GrootPolicy) -> None:
    inputs = policy.processor.prepare([observation(CASE)])
    network = NetworkOn("cuda:0", torch.bfloat16)
    road = DirectRoad(SimpleNamespace(prepare=lambda _: inputs), network)
    # Torch's fake tensors have a device without the device, and refuse to be mixed as those of a GPU do.
    with FakeTensorMode(allow_non_fake_inputs=True):
        noise = torch.zeros((1, 8, 4), dtype=torch.bfloat16, device="cuda:0")
        actions = road([observation(CASE)], noise, lambda: [None]).actions
    assert (actions.device.type, actions.dtype, actions.shape) == ("cpu", torch.float32, (1, 8, 4))
    for name in ("pixel_values", "state"):
        assert (network.read[name].device.type, network.read[name].dtype) == ("cuda", torch.bfloat16), name
    for name in ("input_ids", "attention_mask", "image_grid_thw"):
        assert network.read[name].device.type == "cpu", f"{name}: a prompt is recognised on the CPU"


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_step_by_step_on_a_cpu_nothing_is_copied(policy: GrootPolicy, dtype: torch.dtype) -> None:
    inputs = policy.processor.prepare([observation(CASE)])
    network = NetworkOn("cpu", dtype)
    road = DirectRoad(SimpleNamespace(prepare=lambda _: inputs), network)
    road([observation(CASE)], torch.zeros(1, 8, 4), lambda: [None])
    for name, tensor in network.read.items():
        assert tensor is getattr(inputs, name), name


def test_a_captured_stage_writes_to_the_same_place() -> None:
    source = torch.arange(3.0)
    stage = CapturedStage(lambda: source * 2, torch.device("cpu"))
    address = stage.output.data_ptr()
    source += 1
    assert stage().tolist() == [2, 4, 6]
    assert stage().data_ptr() == stage.output.data_ptr() == address
