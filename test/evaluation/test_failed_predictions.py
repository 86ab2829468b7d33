"""A prediction that fails is told with its reason: it neither ends the evaluation nor goes by in silence."""

from __future__ import annotations

import json

import pytest
import yaml
from support.arm_bags import write_arm_bag
from support.evaluation import arm_dict

from groot_ros.checkpoint import write_tiny_checkpoint
from groot_ros.cli.evaluate import main
from groot_ros.contract import load_contract
from groot_ros.errors import ObservationError
from groot_ros.evaluation.loading import load_policy

FAULT = "the arm cannot be seen"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A contract, a checkpoint with random weights, and a short bag."""
    folder = tmp_path_factory.mktemp("failed")
    (folder / "contract.yaml").write_text(yaml.safe_dump(arm_dict(), sort_keys=False))
    write_tiny_checkpoint(folder / "checkpoint", embodiment_tag="new_embodiment", fps=20.0)
    write_arm_bag(folder / "bag", 1.5)
    return folder


@pytest.fixture
def report(folder, tmp_path, monkeypatch):
    """Evaluates a policy that refuses some observations: the report and the page."""
    policy = load_policy(str(folder / "checkpoint"), load_contract(folder / "contract.yaml"), device="cpu")
    predict = policy.predict

    def evaluated(refuses, probes):
        def refusing(observation, *arguments, **keywords):
            if refuses(observation):
                raise ObservationError(FAULT)
            return predict(observation, *arguments, **keywords)

        monkeypatch.setattr(policy, "predict", refusing)
        monkeypatch.setattr("groot_ros.evaluation.loading.load_policy", lambda *_, **__: policy)
        output = tmp_path / f"probes_{probes}"
        how = ["--checkpoint", str(folder / "checkpoint"), "--contract", str(folder / "contract.yaml")]
        assert main([str(folder / "bag"), *how, "--probes", str(probes), "--output", str(output)]) == 0
        return json.loads((output / "metrics.json").read_text()), (output / "report.html").read_text()

    return evaluated


@pytest.mark.parametrize("probes", [0, 4])
def test_a_policy_that_refuses_every_observation_is_stopped_with_its_own_sentence(report, probes):
    found, page = report(lambda _: True, probes)
    assert found["verdict"]["reasons"][0] == {
        "level": "stop",
        "sentence": f"every prediction failed: {FAULT}",
        "moments": "chunk",
    }
    assert "never asked" not in json.dumps(found["verdict"])
    refusals = found["metrics"]["refusals"]
    assert found["metrics"]["chunks"] == 0
    assert refusals["prediction"] == refusals["total"] > 10
    assert found["episodes"][0]["prediction_fault"] == FAULT
    assert page.count(f'"text": "{FAULT}"') == refusals["total"], "each stands on the timeline"


def test_one_observation_that_is_refused_costs_its_chunk_alone_also_where_a_probe_falls_on_it(report):
    asked = []

    def is_first(observation):
        asked.append(observation.stamp_ns)
        return observation.stamp_ns == asked[0]

    without, _ = report(is_first, 0)
    asked.clear()
    probed, page = report(is_first, 4)
    assert probed["metrics"]["refusals"]["prediction"] == 1
    assert json.dumps(probed["metrics"]) == json.dumps(without["metrics"]), "probes do not change what is measured"
    assert page.count(f'"text": "{FAULT}"') == 1
    assert probed["sensitivity"]["other_seed"]["probes"] >= 3
    assert probed["sensitivity"]["other_seed"]["failed"] == 0


def test_the_share_of_failed_predictions_is_one_of_all_predictions(report):
    asked = []

    def is_later(observation):
        asked.append(observation.stamp_ns)
        return len(asked) > 1

    found, _ = report(is_later, 0)
    metrics = found["metrics"]
    failed = metrics["refusals"]["prediction"]
    assert metrics["chunks"] == 1
    share = metrics["refusals"]["total"] / (1 + failed)
    (reason,) = (reason for reason in found["verdict"]["reasons"] if "would not be executed" in reason["sentence"])
    assert reason["sentence"].startswith(f"{share:.0%} of the predictions gave no chunk, or one that was refused (")
    assert f"failed {failed}" in reason["sentence"]
    assert (reason["level"], reason["moments"]) == ("stop", "chunk")


def test_a_probe_that_the_policy_refuses_is_counted_and_told_and_the_others_are_measured(report):
    found, page = report(lambda observation: not observation.images["front"].any(), 2)
    black = found["sensitivity"]["black_front"]
    assert (black["probes"], black["fault"], black["change_normalised"]) == (0, FAULT, None)
    assert set(black["change"].values()) == {None}
    assert found["sensitivity"]["black_wrist"]["probes"] == black["failed"] >= 2
    said = f"sensitivity to black front: {black['failed']} of {black['failed']} probes failed: {FAULT}"
    assert said in [reason["sentence"] for reason in found["verdict"]["reasons"]]
    assert said in page
    assert found["metrics"]["refusals"].get("prediction", 0) == 0
