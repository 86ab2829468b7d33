"""Denoising and real-time chunking: what the numbers mean, and which are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.golden import load_case
from support.networks import encode, golden_inputs, sample

from groot_ros.errors import ModelError
from groot_ros.model import GrootN17, RealTimeChunking
from groot_ros.model.sampler import integrate


def chunking(**changes: Any) -> RealTimeChunking:
    previous = torch.arange(16.0)[None, :, None].expand(1, 16, 3)
    options = {"action_horizon": 16, "overlap_steps": 8, "frozen_steps": 3, "ramp_rate": 6.0}
    return RealTimeChunking(previous=previous, **(options | changes))


def test_the_last_rows_before_the_action_horizon_are_taken_over() -> None:
    start = chunking(action_horizon=12, overlap_steps=4).start(torch.full((1, 20, 3), -1.0))
    assert start[0, :, 0].tolist() == [8.0, 9.0, 10.0, 11.0] + [-1.0] * 16


@given(
    overlap=st.integers(0, 16),
    frozen=st.integers(0, 16),
    ramp_rate=st.floats(0, 50),
)
def test_freedom_is_zero_while_frozen_then_grows_to_one(overlap: int, frozen: int, ramp_rate: float) -> None:
    frozen = min(frozen, overlap)
    strength = chunking(overlap_steps=overlap, frozen_steps=frozen, ramp_rate=ramp_rate).velocity_strength(20)
    assert len(strength) == 20
    assert strength[:frozen] == [0.0] * frozen
    assert strength[overlap:] == [1.0] * (20 - overlap)
    assert strength == sorted(strength)


def test_a_ramp_rate_of_zero_freezes_the_whole_overlap() -> None:
    assert chunking(ramp_rate=0.0).velocity_strength(20) == [0.0] * 8 + [1.0] * 12


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"frozen_steps": 9}, r"frozen_steps 9 and overlap_steps 8: frozen_steps must lie between 0 and overlap_steps"),
        ({"frozen_steps": -1}, r"must lie between 0"),
        ({"overlap_steps": 13, "action_horizon": 12}, r"overlap_steps must not exceed action_horizon"),
        ({"action_horizon": 17}, r"action_horizon 17 on a previous chunk of 16 rows"),
        ({"ramp_rate": -1.0}, r"ramp_rate -1.0: it must be a finite number, 0 or above"),
        ({"ramp_rate": float("nan")}, r"ramp_rate nan"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        chunking(**changes)


@pytest.mark.parametrize("shape", [(2, 20, 3), (1, 20, 4), (1, 7, 3)])
def test_a_previous_chunk_of_another_shape_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ModelError, match=r"previous chunk \(1, 16, 3\) with an overlap of 8 rows does not fit"):
        chunking().start(torch.zeros(shape))


@pytest.mark.parametrize(("steps", "buckets"), [(4, [0, 250, 500, 750]), (3, [0, 333, 666]), (1, [0])])
def test_the_buckets_are_those_of_the_original(steps: int, buckets: list[int]) -> None:
    seen: list[int] = []

    def velocity(actions: torch.Tensor, bucket: torch.Tensor) -> torch.Tensor:
        assert bucket.dtype == torch.int64
        seen.append(int(bucket[0]))
        return torch.ones_like(actions)

    actions = integrate(velocity, torch.zeros(1, 2, 2), steps=steps, num_timestep_buckets=1000)
    assert seen == buckets
    torch.testing.assert_close(actions, torch.ones(1, 2, 2))


def test_no_denoising_step_is_refused() -> None:
    with pytest.raises(ModelError, match="number of denoising steps is 0"):
        integrate(lambda actions, _: actions, torch.zeros(1, 2, 2), steps=0, num_timestep_buckets=1000)


def test_an_overlap_of_zero_changes_nothing(network: GrootN17) -> None:
    case = load_case("model", "libero_sim_b1")
    inputs, noise = golden_inputs(case), case["initial_noise"]
    nothing = RealTimeChunking(
        previous=torch.from_numpy(case["rtc.prev_action"]),
        action_horizon=16,
        overlap_steps=0,
        frozen_steps=0,
        ramp_rate=6.0,
    )
    assert np.array_equal(sample(network, inputs, noise), sample(network, inputs, noise, rtc=nothing))


@pytest.mark.parametrize(
    ("argument", "shape", "message"),
    [
        ("noise", (1, 16, 18), r"noise has shape \(1, 16, 18\); this network needs \(1, 20, 18\)"),
        ("state", (1, 1, 7), r"state has shape \(1, 1, 7\); this network needs \(1, 1, 20\)"),
        ("state", (1, 2, 20), r"state has shape \(1, 2, 20\); this network needs \(1, 1, 20\)"),
    ],
)
def test_inputs_of_another_shape_are_refused(
    network: GrootN17, argument: str, shape: tuple[int, ...], message: str
) -> None:
    case = load_case("model", "model_only_b1")
    inputs = golden_inputs(case)
    arguments = {
        "state": inputs["state"],
        "embodiment_id": inputs["embodiment_id"],
        "noise": torch.from_numpy(case["initial_noise"]),
        argument: torch.zeros(shape),
    }
    with pytest.raises(ModelError, match=message):
        network.sample(encode(network, inputs), **arguments)
