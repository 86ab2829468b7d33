"""``evaluate`` as a user runs it: files, exit status, gate, comparison, and one sentence for everything wrong."""

from __future__ import annotations

import json

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import yaml
from support.arm_bags import smooth, write_arm_bag
from support.evaluation import arm_dict

from groot_ros.cli.evaluate import main
from groot_ros.errors import EvaluationError
from groot_ros.evaluation.compare import compare
from groot_ros.evaluation.gate import Condition


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A contract and two short bags."""
    folder = tmp_path_factory.mktemp("evaluate")
    (folder / "contract.yaml").write_text(yaml.safe_dump(arm_dict(), sort_keys=False))
    for number in range(2):
        write_arm_bag(folder / f"bag_{number}", 1.5, command=lambda time_s, shift=number: smooth(time_s + shift))
    return folder


@pytest.fixture(scope="module")
def output(folder):
    """The report of the recording itself."""
    status = main([*arguments(folder), "--recorded", "--output", str(folder / "report")])
    assert status == 0
    return folder / "report"


def arguments(folder, *bags):
    return [*(str(folder / bag) for bag in bags or ("bag_0", "bag_1")), "--contract", str(folder / "contract.yaml")]


def test_a_report_has_its_three_files_and_the_documented_keys(output):
    report = json.loads((output / "metrics.json").read_text())
    assert report["schema"] == "groot_ros.evaluation/1"
    assert report["verdict"]["level"] == "good"
    assert [episode["name"] for episode in report["episodes"]] == ["bag_0", "bag_1"]
    assert report["metrics"]["mae"]["single_arm"]["all"] == 0.0
    assert report["metrics"]["observations"]["rate_hz"] == pytest.approx(20, rel=0.05)
    assert report["baselines"]["hold_still"]["mae"]["single_arm"]["all"] > 0.01
    page = (output / "report.html").read_text()
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "https://" not in page


def columns(path, source):
    """The rows of a source, by column."""
    table = pq.read_table(path)
    chosen = table.filter(pc.equal(table["source"], source))
    return {name: np.array(chosen[name].to_pylist(), None) for name in chosen.column_names}


def test_actions_hold_what_was_predicted_sent_and_recorded(output):
    predicted, executed = (columns(output / "actions.parquet", source) for source in ("predicted", "executed"))
    assert set(predicted["episode"]) == {"bag_0", "bag_1"}
    action, recorded = predicted["action.single_arm/shoulder"], predicted["recorded.single_arm/shoulder"]
    known = np.array([value is not None for value in recorded])
    assert 0.5 < known.mean() < 1.0
    assert action[known].tolist() == recorded[known].tolist()
    np.testing.assert_array_equal(
        predicted["stamp_ns"] - predicted["observation_stamp_ns"], 50_000_000 * predicted["row"]
    )
    assert set(executed["observation_stamp_ns"]) == {None}
    assert set(np.diff(executed["stamp_ns"][executed["episode"] == "bag_0"])) == {50_000_000}


def test_a_gate_that_holds_fails_with_status_1_and_says_the_figure(folder, capsys):
    command = [*arguments(folder, "bag_0"), "--recorded", "--output", str(folder / "gated")]
    assert main([*command, "--fail-if", "mae.single_arm > 0.5", "--fail-if", "holds > 0"]) == 0
    assert main([*command, "--fail-if", "mae.single_arm >= 0"]) == 1
    assert "fail-if mae.single_arm >= 0: mae.single_arm is 0" in capsys.readouterr().err


def test_a_figure_that_was_not_measured_fails_the_gate(output):
    report = json.loads((output / "metrics.json").read_text())
    assert Condition.parse("mae_normalised.single_arm > 1").holds(report) == (True, None)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("mae.single_arm", "is no condition"),
        ("mae.single_arm > much", "is no condition"),
        ("mae.singel_arm > 1", "similar are mae.single_arm"),
    ],
)
def test_a_wrong_condition_is_refused_with_what_is_allowed(output, text, said):
    report = json.loads((output / "metrics.json").read_text())
    with pytest.raises(EvaluationError, match="--fail-if") as caught:
        Condition.parse(text).holds(report)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"recordings": ["nowhere"]}, "nowhere is not there"),
        ({"recordings": ["contract.yaml"]}, "is neither a bag"),
        ({"more": ["--latency", "soon"]}, "latency: found 'soon'"),
        ({"more": ["--episodes", "a"]}, "wanted numbers with commas"),
        ({"how": []}, "give one of --checkpoint"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence_with_status_2(folder, capsys, changes, said):
    recordings = changes.get("recordings", ["bag_0"])
    how = changes.get("how", ["--recorded"])
    command = [*arguments(folder, *recordings), *how, "--output", str(folder / "wrong"), *changes.get("more", [])]
    assert main(command) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_a_bag_without_a_topic_of_the_contract_is_refused_with_similar_topics(folder, tmp_path, capsys):
    cameras = {"front": {"topic": "front/image_rect"}, "wrist": {"topic": "wrist/image_raw"}}
    (tmp_path / "contract.yaml").write_text(yaml.safe_dump(arm_dict(cameras=cameras)))
    command = [str(folder / "bag_0"), "--contract", str(tmp_path / "contract.yaml"), "--recorded"]
    assert main([*command, "--output", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert "has no topic /front/image_rect, which the contract names (similar: /front/image_raw" in error


def test_a_bag_without_commands_gives_a_report_that_says_so(tmp_path):
    write_arm_bag(tmp_path / "silent", 1.0, commands=False)
    (tmp_path / "contract.yaml").write_text(yaml.safe_dump(arm_dict()))
    assert main([*arguments(tmp_path, "silent"), "--recorded", "--output", str(tmp_path / "out")]) == 0
    report = json.loads((tmp_path / "out" / "metrics.json").read_text())
    assert report["metrics"]["mae"]["single_arm"]["all"] is None
    assert any("hold no actions to compare with" in reason["sentence"] for reason in report["verdict"]["reasons"])


def test_actions_may_be_the_states_some_rows_later(tmp_path):
    write_arm_bag(tmp_path / "silent", 2.0, commands=False, lag_s=0.1)
    (tmp_path / "contract.yaml").write_text(yaml.safe_dump(arm_dict(record={"action_from_state": {"shift_rows": 2}})))
    assert main([*arguments(tmp_path, "silent"), "--recorded", "--output", str(tmp_path / "out")]) == 0
    rows = columns(tmp_path / "out" / "actions.parquet", "predicted")
    recorded = rows["recorded.single_arm/shoulder"].astype(np.float64)
    known = np.isfinite(recorded)
    time_s = (rows["stamp_ns"] - 1_700_000_000 * 10**9) / 1e9
    # Two rows of 0.05 s later the state is what was commanded 0.1 s before: the command of now.
    assert known.any()
    np.testing.assert_allclose(recorded[known], np.sin(time_s[known]), atol=1e-4)


def test_comparing_pairs_episodes_and_tells_chance_from_difference(output):
    report = json.loads((output / "metrics.json").read_text())

    def with_errors(errors):
        episodes = []
        for number, error in enumerate(errors):
            episode = json.loads(json.dumps(report["episodes"][0]))
            episode["name"] = f"bag_{number}"
            episode["metrics"]["mae"]["single_arm"]["all"] = error
            episodes.append(episode)
        return {**report, "episodes": episodes}

    def said(first, second):
        return {one.name: one for one in compare(with_errors(first), with_errors(second))}["mae.single_arm"]

    clear = said([2.0, 2.1, 2.2, 2.3, 2.4, 2.5], [1.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    assert clear.p_value == pytest.approx(2 / 64)
    assert clear.conclusion == "second is better"
    assert "may be chance" in said([1, 2, 1, 2, 1, 2.0], [2, 1, 2.5, 1, 1.5, 1.5]).conclusion
    assert "too few to exclude chance" in said([2, 2.0], [1, 1.0]).conclusion
    assert said([1, 1.0], [1, 1.0]).conclusion == "equal"
    with pytest.raises(EvaluationError, match="no episode in common"):
        compare(with_errors([1.0]), {**report, "episodes": []})


def test_two_reports_are_compared_on_the_command_line(output, capsys):
    assert main(["--compare", str(output), str(output)]) == 0
    assert "mae.single_arm" in capsys.readouterr().out
