"""What the policy looks at: a policy that ignores its state is found out, however its actions are decoded."""

from __future__ import annotations

import numpy as np
import pytest
from support.arm_bags import write_arm_bag
from support.evaluation import arm_contract, bag_episode

from groot_ros.checkpoint import write_tiny_checkpoint
from groot_ros.evaluation.evaluation import Settings, evaluate
from groot_ros.evaluation.loading import load_policy
from groot_ros.evaluation.report import build_report


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A bag in which the arm moves, and a checkpoint whose arm is relative to the state."""
    folder = tmp_path_factory.mktemp("sensitivity")
    write_tiny_checkpoint(folder / "checkpoint", embodiment_tag="new_embodiment", fps=20.0, relative=("single_arm",))
    write_arm_bag(folder / "bag", 1.5)
    return folder


@pytest.fixture
def policy(folder):
    return load_policy(str(folder / "checkpoint"), arm_contract(), device="cpu")


def report_of(policy, folder, output):
    contract = arm_contract()
    evaluation = evaluate(
        [bag_episode(folder / "bag", contract, policy.horizon)],
        contract,
        policy,
        Settings(probes=4),
        actions_path=output / "actions.parquet",
        embodiment=policy.embodiment,
    )
    return build_report(evaluation, {"rate_hz": contract.rate_hz, "horizon": policy.horizon}, [])


def test_a_policy_that_ignores_its_state_is_told_though_its_actions_are_relative(policy, folder, tmp_path, monkeypatch):
    encode = policy.processor.state.encode
    monkeypatch.setattr(policy.processor.state, "encode", lambda states: np.zeros_like(encode(states)))
    report = report_of(policy, folder, tmp_path)
    frozen = report["sensitivity"]["frozen_state"]
    assert frozen["probes"] >= 3
    assert frozen["change"] == pytest.approx({"single_arm": 0.0, "gripper": 0.0}, abs=1e-9)
    assert frozen["change_normalised"] == pytest.approx(0.0, abs=1e-9)
    said = [reason["sentence"] for reason in report["verdict"]["reasons"]]
    assert any("the state frozen" in one and "does not feel where the robot is" in one for one in said)


def test_a_policy_that_looks_at_its_state_changes_what_it_says(policy, folder, tmp_path, monkeypatch):
    encode = policy.processor.state.encode
    # Random weights hardly notice the small steps of this arm, so the network is shown larger ones.
    monkeypatch.setattr(policy.processor.state, "encode", lambda states: 1000 * encode(states))
    report = report_of(policy, folder, tmp_path)
    assert min(report["sensitivity"]["frozen_state"]["change"].values()) > 1e-4
