"""Chunks of a live node: each finds its observation, however long it was under way, or the report says so."""

from __future__ import annotations

import json

import numpy as np
import pytest
import yaml
from support.arm_bags import SECOND, START_NS, smooth, write_arm_bag
from support.evaluation import HORIZON, arm_dict, bag_episode

from groot_ros.cli.evaluate import main
from groot_ros.contract import load_contract
from groot_ros.evaluation.evaluation import Settings, evaluate
from groot_ros.evaluation.live_chunks import LiveChunk, LivePilots, chunk_of, save_chunks
from groot_ros.evaluation.policies import RecordedActions

MILLISECOND = 1_000_000
PERIOD_NS = SECOND // 20
NAMES = ["single_arm/shoulder", "single_arm/elbow", "gripper/gripper"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A contract and a short bag."""
    folder = tmp_path_factory.mktemp("live")
    (folder / "contract.yaml").write_text(yaml.safe_dump(arm_dict(), sort_keys=False))
    write_arm_bag(folder / "bag", 1.5)
    return folder


def live_chunk(frame, after_ns, shift_ns=0):
    """What was commanded from a frame on, received some time after the frame was taken."""
    stamp_ns = START_NS + frame * PERIOD_NS
    rows = np.array([smooth((frame + row) / 20) for row in range(HORIZON)])
    return LiveChunk(chunk_of(NAMES, rows, stamp_ns + shift_ns, 0.05), stamp_ns + after_ns)


def report_of(folder, output, chunks):
    save_chunks(chunks, output / "chunks.parquet")
    command = [str(folder / "bag"), "--contract", str(folder / "contract.yaml")]
    assert main([*command, "--chunks", str(output / "chunks.parquet"), "--output", str(output / "report")]) == 0
    return json.loads((output / "report" / "metrics.json").read_text())


def replayed(folder, output, pilots):
    contract = load_contract(folder / "contract.yaml")
    return evaluate(
        [bag_episode(folder / "bag", contract)],
        contract,
        RecordedActions(contract, HORIZON),
        Settings(),
        actions_path=output / "actions.parquet",
        make_pilot=pilots,
    )


@pytest.mark.parametrize(("shifted", "level"), [(0, None), (1, "look"), (2, "stop"), (3, "stop")])
def test_live_chunks_that_belong_to_no_observation_are_told(folder, tmp_path, shifted, level):
    shifts = [MILLISECOND] * shifted + [0] * (3 - shifted)
    chunks = [live_chunk(frame, 60 * MILLISECOND, shift) for frame, shift in zip((4, 10, 16), shifts, strict=True)]
    report = report_of(folder, tmp_path, chunks)
    assert report["run"]["live_chunks"] == {"total": 3, "without_observation": shifted}
    assert report["metrics"]["chunks"] == 3 - shifted
    reasons = [reason for reason in report["verdict"]["reasons"] if "belong to no observation" in reason["sentence"]]
    assert [reason["level"] for reason in reasons] == [level] * bool(shifted)
    assert all(reason["sentence"].startswith(f"{shifted} of 3 live chunks") for reason in reasons)
    assert "the policy was never asked" not in json.dumps(report["verdict"])


def test_chunks_count_also_where_the_next_was_begun_before_the_last_was_received(folder, tmp_path):
    chunks = [live_chunk(4, 120 * MILLISECOND), live_chunk(5, 130 * MILLISECOND), live_chunk(6, 140 * MILLISECOND)]
    pilots = LivePilots(chunks)
    evaluation = replayed(folder, tmp_path, pilots)
    log = evaluation.logs("policy")[0]
    assert log.predictions == 3
    assert pilots.counts() == {"total": 3, "without_observation": 0}
    np.testing.assert_allclose(log.latencies_s.rows[:, -1], [0.12, 0.13, 0.14], rtol=0, atol=1e-9)
    shown = evaluation.episodes[0].view["chunks"]
    assert [chunk["time"] for chunk in shown] == pytest.approx([0.2, 0.25, 0.3])
    for frame, chunk in zip((4, 5, 6), shown, strict=True):
        assert chunk["rows"][0][0] == pytest.approx(np.sin(frame / 20), abs=1e-5), "each beside its own picture"


def test_two_live_chunks_of_one_observation_both_count(folder, tmp_path):
    pilots = LivePilots([live_chunk(4, 60 * MILLISECOND), live_chunk(4, 90 * MILLISECOND)])
    assert replayed(folder, tmp_path, pilots).logs("policy")[0].predictions == 2
    assert pilots.counts() == {"total": 2, "without_observation": 0}
