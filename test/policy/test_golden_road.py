"""The whole road of one call: raw observations in, the original's decoded actions out."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest
import torch
from support.golden import TINY_SHARDED, TINY_SINGLE, case_names, load_case
from support.golden_embodiment import stored
from support.golden_road import observation, tolerance, unpadded_samples

from groot_ros.policy import GrootPolicy

CASES = [name for name in case_names("model") if not name.startswith("model_")]


@lru_cache(maxsize=2)
def policy_for(tag: str, checkpoint=TINY_SINGLE) -> GrootPolicy:
    return GrootPolicy.from_checkpoint(checkpoint, tag, device="cpu", dtype="float32", rate_hz=30.0)


@pytest.mark.parametrize("name", CASES)
def test_a_golden_observation_gives_the_original_s_decoded_actions(name, monkeypatch):
    case = load_case("model", name)
    policy = policy_for(case.meta["tag"])
    wanted = stored(case, "decoded")
    samples = unpadded_samples(case)
    assert samples
    for sample in samples:
        noise = torch.from_numpy(case["initial_noise"][sample : sample + 1])
        monkeypatch.setattr(policy, "noise", lambda batch, seed=None, noise=noise: noise)
        chunk = policy.predict(observation(case, sample))
        assert set(chunk.groups) == set(wanted)
        for key, values in wanted.items():
            np.testing.assert_allclose(chunk.groups[key], values[sample], **tolerance(case, policy.embodiment, key))


def test_bfloat16_shards_give_the_same_chunk_as_the_single_file():
    case = load_case("model", "libero_sim_b1")
    single = policy_for("libero_sim").predict(observation(case), seed=5)
    sharded = policy_for("libero_sim", TINY_SHARDED).predict(observation(case), seed=5)
    for key, values in single.groups.items():
        np.testing.assert_array_equal(sharded.groups[key], values)


@pytest.mark.parametrize("name", [name for name in CASES if name.endswith("_b1")])
def test_a_seed_draws_the_original_s_noise(name):
    case = load_case("model", name)
    noise = policy_for("libero_sim").noise(1, case.meta["seed"])
    np.testing.assert_array_equal(noise.numpy(), case["initial_noise"])


def test_a_seed_draws_the_original_s_noise_for_a_batch():
    case = load_case("model", "new_embodiment_b2")
    noise = policy_for("libero_sim").noise(2, case.meta["seed"])
    np.testing.assert_array_equal(noise.numpy(), case["initial_noise"])


def test_the_same_seed_gives_the_same_chunk_and_no_seed_another():
    case = load_case("model", "libero_sim_b1")
    policy = policy_for("libero_sim")
    first, again = (policy.predict(observation(case), seed=7).groups["x"] for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(
        policy.predict(observation(case)).groups["x"], policy.predict(observation(case)).groups["x"]
    )


def test_a_chunk_carries_the_observation_s_stamp_and_the_rate():
    case = load_case("model", "libero_sim_b1")
    chunk = policy_for("libero_sim").predict(observation(case, stamp_ns=1_700_000_000_000_000_001), seed=0)
    assert chunk.stamp_ns == 1_700_000_000_000_000_001
    assert chunk.row_stamp_ns(3) - chunk.stamp_ns == 100_000_000
    assert chunk.horizon == 16


def test_where_the_time_went_is_known_for_every_stage():
    case = load_case("model", "libero_sim_b1")
    policy = policy_for("libero_sim")
    policy.predict(observation(case), seed=0)
    timings = policy.last_timings
    stages = (timings.data_processing_s, timings.backbone_s, timings.action_head_s, timings.decode_s)
    assert min(stages) > 0
    assert timings.total_s == pytest.approx(sum(stages))
