"""Every number against a value that is known by hand."""

from __future__ import annotations

import json

import numpy as np
import pytest
from support.arm_bags import smooth, write_arm_bag
from support.datasets import action, write_dataset
from support.evaluation import (
    ARM,
    GRIPPER,
    HORIZON,
    arm_contract,
    bag_episode,
    dataset_contract,
    dataset_episode,
    replay,
)

from groot_ros.dataset.reader import open_dataset
from groot_ros.evaluation.columns import ActionColumns
from groot_ros.evaluation.errors_by_row import ErrorsByRow
from groot_ros.evaluation.gripper import gripper_timing
from groot_ros.evaluation.metrics import motion_metrics

LENGTHS = (24, 20)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    return open_dataset(write_dataset(tmp_path_factory.mktemp("dataset") / "ds", LENGTHS))


@pytest.fixture(scope="module")
def bag(tmp_path_factory):
    return write_arm_bag(tmp_path_factory.mktemp("bag") / "arm", 2.0)


def metrics(evaluation, player="policy"):
    return motion_metrics(evaluation.logs(player), evaluation.scale, evaluation.contract.period_s)


def test_a_policy_that_replays_a_dataset_has_no_error_and_no_seam(dataset, tmp_path):
    contract = dataset_contract()
    found = metrics(replay([dataset_episode(dataset, index, contract) for index in range(2)], contract, tmp_path))
    for name in ("mse", "mae", "first_step_mae"):
        assert {value for group in found[name].values() for value in group.values()} == {0.0}
    assert set(found["mae_by_row"]["single_arm"]) == {0.0}
    assert found["seam_jump"]["single_arm"] == {"p95": 0.0, "max": 0.0}
    assert found["refusals"]["total"] == found["holds"]["total"] == found["clips"]["total"] == 0


def test_a_policy_that_replays_a_bag_has_no_error_and_no_seam(bag, tmp_path):
    contract = arm_contract()
    found = metrics(replay([bag_episode(bag, contract)], contract, tmp_path))
    assert {value for group in found["mae"].values() for value in group.values()} == {0.0}
    assert found["seam_jump"]["single_arm"]["max"] == 0.0
    assert found["chunks"] > 10


def test_a_known_error_is_found_exactly(dataset, tmp_path):
    contract = dataset_contract()
    error = {"single_arm": np.array([0.5, -0.25, 0.0])}
    found = metrics(replay([dataset_episode(dataset, 0, contract)], contract, tmp_path, error))
    assert found["mae"]["single_arm"] == pytest.approx(
        {"all": 0.25, "shoulder": 0.5, "elbow": 0.25, "wrist": 0.0}, abs=1e-15
    )
    assert found["mse"]["single_arm"] == pytest.approx(
        {"all": (0.25 + 0.0625) / 3, "shoulder": 0.25, "elbow": 0.0625, "wrist": 0.0}, abs=1e-15
    )
    assert found["mae"]["gripper"]["all"] == 0.0
    assert found["seam_jump"]["single_arm"]["max"] == pytest.approx(0.0, abs=1e-15)


def test_an_error_that_grows_over_the_horizon_is_found_row_by_row(dataset, tmp_path):
    contract = dataset_contract()
    ramp = np.arange(HORIZON)[:, None] * np.array([[0.125, 0.25, 0.0]])
    found = metrics(replay([dataset_episode(dataset, 0, contract)], contract, tmp_path, {"single_arm": ramp}))
    assert found["mae_by_row"]["single_arm"] == pytest.approx([row * 0.125 for row in range(HORIZON)], abs=1e-15)
    assert found["first_step_mae"]["single_arm"]["all"] == 0.0
    # A chunk is replaced after k rows by one whose error begins anew: the seam is k times the largest growth.
    seam = found["seam_jump"]["single_arm"]["max"]
    assert seam > 0
    assert seam / 0.25 == pytest.approx(round(seam / 0.25), abs=1e-12)


def test_holding_still_has_the_error_of_the_state_against_the_later_actions(dataset, tmp_path):
    contract = dataset_contract()
    evaluation = replay([dataset_episode(dataset, 0, contract)], contract, tmp_path)
    log = evaluation.logs("hold_still")[0]
    starts = [round((stamp - dataset.stamps(0).stamps_ns["row"][0]) / 5e7) for stamp in log.latencies_s.stamps_ns]
    state = dataset.state(0, "single_arm")
    wanted = [
        np.abs(action(0, start + row)["single_arm"].astype(np.float32) - state[start]).mean()
        for start in starts
        for row in range(HORIZON)
        if start + row < LENGTHS[0]
    ]
    assert metrics(evaluation, "hold_still")["mae"]["single_arm"]["all"] == pytest.approx(np.mean(wanted), rel=1e-6)


def test_repeating_the_last_action_has_the_error_of_the_action_one_row_before(dataset, tmp_path):
    contract = dataset_contract()
    evaluation = replay([dataset_episode(dataset, 0, contract)], contract, tmp_path)
    log = evaluation.logs("repeat_last")[0]
    starts = [round((stamp - dataset.stamps(0).stamps_ns["row"][0]) / 5e7) for stamp in log.latencies_s.stamps_ns]
    rows = dataset.action(0, "single_arm").astype(np.float64)
    state = dataset.state(0, "single_arm").astype(np.float32)
    wanted = [
        np.abs(rows[start + row] - (rows[start - 1] if start else state[0])).mean()
        for start in starts
        for row in range(HORIZON)
        if start + row < LENGTHS[0]
    ]
    assert metrics(evaluation, "repeat_last")["mae"]["single_arm"]["all"] == pytest.approx(np.mean(wanted), rel=1e-12)


def test_rows_beyond_the_end_of_the_recording_do_not_count(dataset, tmp_path):
    contract = dataset_contract()
    errors = replay([dataset_episode(dataset, 0, contract)], contract, tmp_path).logs("policy")[0].errors
    assert errors.count[0, 0] > errors.count[-1, 0] > 0


def test_latency_is_simulated_and_rows_that_were_past_are_counted(dataset, tmp_path):
    from groot_ros.evaluation.latency import Latency

    contract = dataset_contract()
    evaluation = replay([dataset_episode(dataset, 0, contract)], contract, tmp_path, latency=Latency(0.12))
    log = evaluation.logs("policy")[0]
    assert set(log.latencies_s.rows[:, -1]) == {0.12}
    # Rows of 0.05 s at 0, 0.05 and 0.10 s are past when the chunk is there after 0.12 s.
    assert log.rows_expired == 3 * log.predictions
    assert metrics(evaluation)["mae"]["single_arm"]["all"] == 0.0


def test_chunks_that_come_after_they_have_run_out_are_refused_and_named(dataset, tmp_path):
    from groot_ros.evaluation.latency import Latency

    contract = dataset_contract()
    evaluation = replay([dataset_episode(dataset, 0, contract)], contract, tmp_path, latency=Latency(0.45))
    found = metrics(evaluation)
    assert found["refusals"]["expired"] == found["refusals"]["total"] == found["chunks"] > 0
    moments = evaluation.episodes[0].played.moments
    assert {moment.reason for moment in moments if moment.kind == "chunk"} == {"expired"}
    assert "0.45 s" in moments[0].sentence


def test_limits_clip_what_the_policy_wants_and_the_joint_is_named(bag, tmp_path):
    joints = {name: {"position": [-2.0, 2.0], "velocity": 50.0} for name in ("elbow", "gripper")}
    shoulder = {"position": [-0.9, 0.9], "velocity": 50.0}
    contract = arm_contract(limits={"joints": {"shoulder": shoulder, **joints}})
    evaluation = replay([bag_episode(bag, contract)], contract, tmp_path)
    found = metrics(evaluation)
    assert found["clips"]["shoulder"] == found["clips"]["total"] > 0
    assert np.nanmax(evaluation.logs("policy")[0].executed.rows[:, 0]) == 0.9


def test_a_camera_that_stops_is_on_the_timeline_and_the_robot_is_held(tmp_path):
    from support.arm_bags import START_NS, BagWriter

    from groot_ros.dataset.bag import Bag

    whole = write_arm_bag(tmp_path / "whole", 2.0)
    with Bag(whole) as bag, BagWriter(tmp_path / "broken") as writer:
        for message in bag.messages():
            if message.topic == "/wrist/image_raw" and 0.8e9 < message.received_ns - START_NS < 1.6e9:
                continue
            writer.write_raw(message.topic, message.type, message.data, message.received_ns)
    contract = arm_contract()
    evaluation = replay([bag_episode(tmp_path / "broken", contract)], contract, tmp_path)
    played = evaluation.episodes[0].played
    assert played.not_ready == {"stale": 1} or "unmatched" in played.not_ready
    assert any("video.wrist" in moment.sentence for moment in played.moments)
    assert metrics(evaluation)["holds"]["no_observation"] == 1


def test_wrapped_angles_err_by_the_shortest_arc():
    arm = {**ARM, "policy_unit": "deg", "wraps": ["elbow"]}
    contract = arm_contract(state={"single_arm": arm, "gripper": GRIPPER})
    columns = ActionColumns.from_contract(contract)
    assert columns.periods.tolist() == [np.inf, 360.0, np.inf]
    errors = ErrorsByRow(columns, 1)
    errors.add(np.array([[[350.0, 350.0, 0.0]]]), np.array([[[0.0, 0.0, np.nan]]]), np.full(3, np.nan))
    assert errors.absolute.tolist() == [[350.0, 10.0, 0.0]]
    assert errors.count.tolist() == [[1, 1, 0]]


def test_gripper_changes_are_paired_nearest_first_and_the_rest_counted():
    stamps = np.arange(10) * 100_000_000
    wanted = np.array([0, 0, 1, 1, 1, 0, 0, 0, 1, 1.0])
    done = np.array([0, 0, 0, 1, 1, 1, 0, 0, 0, 0.0])
    timing = gripper_timing(stamps, done, wanted, 0.5)
    assert sorted(timing.delays_s) == pytest.approx([0.1, 0.1])
    assert (timing.missed, timing.extra) == (1, 0)


def test_binary_grippers_agree_by_their_level(bag, tmp_path):
    levels = {"open": {"policy": 0.7, "robot": 0.7}, "closed": {"policy": 0.1, "robot": 0.1}}
    actions = {"single_arm": {"meaning": "position"}, "gripper": {"meaning": "position", "kind": "binary", **levels}}
    contract = arm_contract(actions=actions)
    same = metrics(replay([bag_episode(bag, contract)], contract, tmp_path))["gripper"]["gripper/gripper"]
    assert same["agreement"] == 1.0
    assert (same["missed_changes"], same["extra_changes"]) == (0, 0)
    assert abs(same["delay_s"]) <= 0.05
    other = metrics(replay([bag_episode(bag, contract)], contract, tmp_path, {"gripper": 1.0}))
    high = np.mean([smooth(row / 20)[2] > 0.4 for row in range(40)])
    assert other["gripper"]["gripper/gripper"]["agreement"] == pytest.approx(high, abs=0.1)


def test_the_same_seed_gives_the_same_metrics_byte_for_byte(bag, tmp_path):
    contract = arm_contract()
    texts = {json.dumps(metrics(replay([bag_episode(bag, contract)], contract, tmp_path))) for _ in range(2)}
    assert len(texts) == 1


def test_errors_do_not_depend_on_how_many_chunks_are_reckoned_at_a_time():
    columns = ActionColumns.from_contract(arm_contract())
    rows = np.random.default_rng(0).normal(size=(2, 100, HORIZON, columns.width))
    together, alone = ErrorsByRow(columns, HORIZON), ErrorsByRow(columns, HORIZON)
    levels = np.zeros(columns.width)
    together.add(rows[0], rows[1], levels)
    for predicted, recorded in zip(rows[0], rows[1], strict=True):
        alone.add(predicted[None], recorded[None], levels)
    for name in ("count", "absolute", "squared", "agreeing"):
        assert getattr(together, name).tobytes() == getattr(alone, name).tobytes()


def test_velocities_that_are_sent_as_a_twist_are_measured_like_any_motion(tmp_path):
    names = ["vx", "vy", "vz", "wx", "wy", "wz"]
    fields = [f"twist.{part}.{axis}" for part in ("linear", "angular") for axis in "xyz"]
    record = {"topic": "teleop", "type": "geometry_msgs/msg/TwistStamped", "fields": fields, "names": names}
    contract = arm_contract(
        actions={"base": {"meaning": "velocity", "names": names}},
        outputs={"base": {"type": "twist", "topic": "cmd", "frame": "base", "from": {"base": "all"}}},
        record={"base": record},
    )
    from support.arm_bags import SECOND, START_NS, STORE, BagWriter, header

    from groot_ros.dataset.bag import Bag

    types = STORE.types
    with Bag(write_arm_bag(tmp_path / "arm", 2.0)) as bag, BagWriter(tmp_path / "base") as writer:
        for message in bag.messages():
            writer.write_raw(message.topic, message.type, message.data, message.received_ns)
            if message.topic == "/joint_states":
                time_s = (message.received_ns - START_NS) / SECOND
                vector = types["geometry_msgs/msg/Vector3"]
                twist = types["geometry_msgs/msg/Twist"](
                    linear=vector(x=float(np.sin(time_s)), y=0.0, z=0.0), angular=vector(x=0.0, y=0.0, z=0.5)
                )
                stamped = types["geometry_msgs/msg/TwistStamped"](header=header(message.received_ns), twist=twist)
                writer.write("/teleop", stamped, message.received_ns)
    found = metrics(replay([bag_episode(tmp_path / "base", contract)], contract, tmp_path))
    assert found["mae"]["base"]["all"] == 0.0
    assert 0.0 <= found["tracking_error"]["base"] < 0.1
    assert found["jerk_ratio"]["base"] is not None
    assert found["power_above_3hz"]["base"] is not None


def test_roughness_beside_a_demonstration_that_stands_still_is_not_a_number(tmp_path):
    def standing(time_s):
        return np.array([np.sin(time_s), 0.3 + 1e-7 * np.sin(9 * time_s), 0.4 + 1e-7 * np.sin(9 * time_s)])

    contract = arm_contract()
    bags = [write_arm_bag(tmp_path / "moves", 2.0), write_arm_bag(tmp_path / "stands", 2.0, command=standing)]
    evaluation = replay([bag_episode(bag, contract) for bag in bags], contract, tmp_path, {"gripper": 0.1})
    scale = np.full(3, np.nan)
    ranges = np.array([2.0, 1.0, 0.6])
    found = motion_metrics(evaluation.logs("policy")[1:], scale, contract.period_s, ranges)
    assert found["jerk_ratio"]["gripper"] is None
    assert found["jerk_ratio"]["single_arm"] < 10.0
