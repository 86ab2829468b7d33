"""Bags become datasets: the same rows whatever tool wrote the bag, and nothing dropped, guessed or done twice."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import yaml
from support.robot_bags import (
    CONTRACT,
    INSTRUCTION,
    RATE_HZ,
    START_NS,
    bag_contract,
    command,
    pixels,
    robot,
    ros_time,
    serialized,
    state,
    string,
    write_bag,
)

from groot_ros.contract.record import INSTRUCTION_TOPIC
from groot_ros.dataset.conversion import ConversionSettings, Cut, OnGap, convert
from groot_ros.dataset.conversion.convert import Shard
from groot_ros.dataset.conversion.known import PartNames
from groot_ros.dataset.layout import LayoutVersion
from groot_ros.dataset.quality.report import check_dataset
from groot_ros.dataset.reader import open_dataset
from groot_ros.dataset.video_writer import VideoEncoding
from groot_ros.errors import DatasetError
from groot_ros.recording import EpisodeFile
from groot_ros.recording.definitions import find_definition

ROOT = Path(__file__).parents[2]
LOSSLESS = VideoEncoding(codec="lossless")
SECONDS = 2.0
SECOND_NS = 1_000_000_000


def settings(*replacements, **changes):
    return ConversionSettings(contract=bag_contract(*replacements), **changes)


def converted(root, *bags, setting=None, **options):
    """The dataset of whole bags, and what was said of them."""
    cuts = [bag if isinstance(bag, Cut) else Cut(bag) for bag in bags]
    conversion = convert(cuts, root, setting or settings(), **{"encoding": LOSSLESS} | options)
    return conversion, open_dataset(root) if (root / "meta").exists() else None


def faults(conversion):
    return [report.fault for report in conversion.reports]


def in_degrees(joints):
    return {"arm": np.rad2deg(joints[:2]), "gripper": np.array(joints[2:])}


@pytest.fixture(scope="module")
def bag(tmp_path_factory):
    return write_bag(tmp_path_factory.mktemp("bags") / "kitchen", robot(SECONDS))


@pytest.fixture(scope="module")
def dataset(bag, tmp_path_factory):
    conversion, dataset = converted(tmp_path_factory.mktemp("converted") / "cubes", bag)
    assert faults(conversion) == [None]
    return dataset


def contents(dataset):
    """Everything that a dataset says, for comparison."""
    return [
        (
            {name: column.tolist() for name, column in dataset.rows(episode).items()},
            {name: stamps.tolist() for name, stamps in dataset.stamps(episode).stamps_ns.items()},
            [dataset.frames(episode, camera, [0, 7]).tolist() for camera in ("front", "wrist")],
            dataset.instruction(episode, 0),
        )
        for episode in range(len(dataset.episodes))
    ]


def test_a_row_is_a_frame_with_the_state_at_its_very_stamp_and_the_command(dataset):
    (entry,) = dataset.episodes
    stamps = dataset.stamps(0).stamps_ns
    assert entry.length == len(stamps["row"]) == SECONDS * RATE_HZ
    for row, stamp_ns in enumerate(stamps["row"]):
        expected = START_NS + 20_000_000 + row * SECOND_NS / RATE_HZ
        assert abs(int(stamp_ns) - expected) < 10_000  # doubles of this size have steps of 256 ns
        assert stamps["observation.images.front"][row] == stamp_ns
        assert stamps["observation.images.wrist"][row] == stamp_ns + 3_000_000
        for group, values in in_degrees(state(int(stamp_ns))).items():
            np.testing.assert_allclose(dataset.state(0, group)[row], values, atol=2e-3)
        for group, values in in_degrees(command(int(stamp_ns))).items():
            np.testing.assert_allclose(dataset.action(0, group)[row], values, atol=5e-3)
    assert dataset.info.features["observation.state"]["names"] == ["a", "b", "g"]
    assert dataset.instruction(0, 0) == INSTRUCTION


def test_every_frame_is_in_its_place(dataset):
    rows = range(0, 40, 9)
    for camera in ("front", "wrist"):
        frames = dataset.frames(0, camera, list(rows))
        for frame, row in zip(frames, rows, strict=True):
            np.testing.assert_array_equal(frame, pixels(camera, row))


def test_how_it_was_made_is_in_info(dataset, bag):
    notes = json.loads((dataset.root / "meta" / "info.json").read_text())["groot_ros"]
    assert notes["contract"]["robot"] == "two_joints"
    assert notes["on_gap"] == "split"
    labels = dataset.stamps(0).labels
    assert labels["bag"] == bag.name
    assert labels["gaps"] == []


def test_the_report_finds_no_error_in_it(dataset):
    report = check_dataset(dataset.root, horizon=8)
    assert [finding for finding in report.findings if finding.severity.value == "error"] == []
    relative = json.loads((dataset.root / "groot" / "meta" / "relative_stats.json").read_text())
    assert np.shape(relative["arm"]["mean"]) == (8, 2)


@pytest.mark.parametrize(
    ("storage", "compression"),
    [("sqlite3", "none"), ("sqlite3", "message"), ("sqlite3", "file"), ("mcap", "storage")],
)
def test_storage_and_compression_make_no_difference(dataset, tmp_path, storage, compression):
    other = write_bag(tmp_path / "kitchen", robot(SECONDS), storage=storage, compression=compression)
    conversion, found = converted(tmp_path / "out", other)
    assert faults(conversion) == [None]
    assert contents(found) == contents(dataset)


def test_a_bag_that_was_split_into_files_is_one_recording(dataset, tmp_path):
    messages = list(robot(SECONDS))
    middle = len(messages) // 2
    first = write_bag(tmp_path / "first", iter(messages[:middle]))
    second = write_bag(tmp_path / "second", iter(messages[middle:]))
    information = yaml.safe_load((first / "metadata.yaml").read_text())
    more = yaml.safe_load((second / "metadata.yaml").read_text())["rosbag2_bagfile_information"]
    (second / more["relative_file_paths"][0]).rename(first / "second.mcap")
    part = information["rosbag2_bagfile_information"]
    part["relative_file_paths"].append("second.mcap")
    part["message_count"] += more["message_count"]
    part["duration"]["nanoseconds"] = messages[-1][2] - messages[0][2]
    (first / "metadata.yaml").write_text(yaml.safe_dump(information))
    conversion, found = converted(tmp_path / "out", first)
    assert faults(conversion) == [None]
    assert contents(found) == contents(dataset)


def test_a_single_file_without_metadata_is_read_too(dataset, bag, tmp_path):
    (file,) = bag.glob("*.mcap")
    _, found = converted(tmp_path / "out", file)
    assert contents(found) == contents(dataset)


def test_a_robot_in_a_namespace_is_found_by_the_end_of_its_topics(dataset, tmp_path):
    other = write_bag(tmp_path / "kitchen", (("/left" + topic, *rest) for topic, *rest in robot(SECONDS)))
    _, found = converted(tmp_path / "out", other)
    assert contents(found) == contents(dataset)
    both = (message for pair in zip(robot(1.0), robot(1.0), strict=True) for message in renamed(pair))
    conversion, _ = converted(tmp_path / "both", write_bag(tmp_path / "two_arms", both))
    assert "has the contract's topics in several namespaces: /left, /right; write the full" in faults(conversion)[0]


def renamed(pair):
    for side, (topic, *rest) in zip(("/left", "/right"), pair, strict=True):
        yield side + topic, *rest


def test_v2_1_is_written_for_tools_that_know_nothing_else(dataset, bag, tmp_path):
    _, found = converted(tmp_path / "out", bag, version=LayoutVersion.V2_1)
    assert found.info.version is LayoutVersion.V2_1
    assert (tmp_path / "out" / "meta" / "modality.json").is_file()
    assert contents(found) == contents(dataset)


@pytest.mark.parametrize("lost", [(15,), (15, 16, 17)])
def test_a_lost_frame_splits_the_episode_and_is_written_down(tmp_path, lost):
    bag = write_bag(tmp_path / "lossy", robot(SECONDS, lost=lost))
    conversion, dataset = converted(tmp_path / "out", bag)
    (report,) = conversion.reports
    assert (report.gaps, len(report.names)) == (1, 2)
    assert report.notes[0].startswith("split: camera front was silent for 0.")
    assert [episode.length for episode in dataset.episodes] == [15, 40 - 15 - len(lost)]
    for episode in (0, 1):
        stamps = dataset.stamps(episode)
        assert np.diff(stamps.stamps_ns["row"]).max() < 1.1 * SECOND_NS / RATE_HZ
    (gap,) = dataset.stamps(0).labels["gaps"] or dataset.stamps(1).labels["gaps"]
    assert gap["stream"] == "video.front"
    assert gap["seconds"] == pytest.approx((len(lost) + 1) / RATE_HZ, rel=0.01)


def test_a_lost_frame_refuses_the_episode_where_that_is_asked_for(tmp_path):
    bag = write_bag(tmp_path / "lossy", robot(SECONDS, lost=(15,)))
    conversion, dataset = converted(tmp_path / "out", bag, setting=settings(on_gap=OnGap.REFUSE))
    assert "is refused, since it has 1 gaps; the first: camera front was silent for 0.100 s" in faults(conversion)[0]
    assert dataset is None or not dataset.episodes


def test_parts_that_are_too_short_are_left_out_and_said(tmp_path):
    bag = write_bag(tmp_path / "lossy", robot(SECONDS, lost=(5,)))
    conversion, dataset = converted(tmp_path / "out", bag, setting=settings(least_rows=8))
    assert "left out a part of 5 rows: shorter than 8" in conversion.reports[0].notes
    assert [episode.length for episode in dataset.episodes] == [34]


def test_idle_head_and_tail_are_cut_off_but_for_a_margin(tmp_path):
    bag = write_bag(tmp_path / "idle", robot(4.0, moves=(1.0, 3.0)))
    _, whole = converted(tmp_path / "whole", bag)
    conversion, trimmed = converted(tmp_path / "trimmed", bag, setting=settings(trim_idle_s=0.2))
    assert [episode.length for episode in whole.episodes] == [80]
    assert trimmed.episodes[0].length == pytest.approx(2 * RATE_HZ + 8, abs=3)
    assert any(note.startswith("idle: 0.8 s at the head") for note in conversion.reports[0].notes)
    first_ns = int(trimmed.stamps(0).stamps_ns["row"][0])
    assert first_ns == pytest.approx(START_NS + 0.8 * SECOND_NS, abs=2 * SECOND_NS / RATE_HZ)
    still = write_bag(tmp_path / "still", robot(1.0, moves=(0.0, 0.0)))
    conversion, _ = converted(tmp_path / "out", still, setting=settings(trim_idle_s=0.2))
    assert "left out a part of 0 rows: shorter than 2" in conversion.reports[0].notes


def test_actions_from_the_state_are_later_states_said_aloud_and_noted(tmp_path):
    bag = write_bag(tmp_path / "watched", robot(SECONDS, commands=False))
    without = (CONTRACT[CONTRACT.index("record:") : CONTRACT.index("policy:")], "")
    with pytest.raises(DatasetError, match=r"record.arm: found no source of this action; name the topic of its"):
        converted(tmp_path / "no", bag, setting=settings(without))
    shifted = (without[0], "record: {action_from_state: {shift_rows: 3}}\n")
    conversion, dataset = converted(tmp_path / "out", bag, setting=settings(shifted))
    assert conversion.warnings == [
        "the actions of arm, gripper are the states 3 rows later, not commands (record.action_from_state): "
        "a policy trained on them does not learn to push"
    ]
    notes = json.loads((tmp_path / "out" / "meta" / "info.json").read_text())["groot_ros"]
    assert notes["action_from_state"] == {"shift_rows": 3}
    assert dataset.episodes[0].length == 40 - 3
    for group in ("arm", "gripper"):
        np.testing.assert_array_equal(dataset.action(0, group)[:-3], dataset.state(0, group)[3:])


def test_a_faster_camera_gives_the_nearest_frames_at_the_right_speed(tmp_path):
    bag = write_bag(tmp_path / "fast", robot(SECONDS, camera_hz=50))
    conversion, dataset = converted(tmp_path / "out", bag)
    assert faults(conversion) == [None]
    assert dataset.episodes[0].length == pytest.approx(40, abs=1)
    stamps = dataset.stamps(0).stamps_ns["row"]
    grid = stamps[0] + np.arange(len(stamps)) * SECOND_NS / RATE_HZ
    assert np.abs(stamps - grid).max() <= 1.1 * SECOND_NS / 50 / 2 + 4_000_000


def test_a_slower_camera_is_refused_since_the_robot_would_move_at_another_speed(tmp_path):
    bag = write_bag(tmp_path / "slow", robot(SECONDS, camera_hz=16))
    conversion, _ = converted(tmp_path / "out", bag)
    assert "camera front gives 16.0 rows a second, but the contract's rate_hz is 20" in faults(conversion)[0]


def test_a_camera_at_half_the_rate_is_all_gaps(tmp_path):
    bag = write_bag(tmp_path / "slow", robot(SECONDS, camera_hz=10))
    conversion, dataset = converted(tmp_path / "out", bag)
    assert dataset is None or not dataset.episodes
    assert conversion.reports[0].gaps > 10


def with_instruction(messages, *said):
    for at_s, text in said:
        yield INSTRUCTION_TOPIC, "std_msgs/msg/String", START_NS + round(at_s * SECOND_NS), string(text)
    yield from messages


def test_the_recorded_instruction_counts_from_its_time_on(tmp_path):
    messages = sorted(with_instruction(robot(SECONDS), (0.0, "open"), (1.0, "close")), key=lambda one: one[2])
    _, dataset = converted(tmp_path / "out", write_bag(tmp_path / "bag", iter(messages)))
    said = [dataset.instruction(0, row) for row in range(40)]
    assert said[:20] == ["open"] * 20
    assert said[20:] == ["close"] * 20


def test_a_missing_instruction_is_asked_for(bag, tmp_path):
    nothing = (f"instruction: {INSTRUCTION}", 'instruction: ""')
    conversion, _ = converted(tmp_path / "out", bag, setting=settings(nothing))
    assert "says no instruction: give one with --instruction, in episodes.csv" in faults(conversion)[0]
    _, dataset = converted(tmp_path / "given", bag, setting=settings(nothing, instruction="wave"))
    assert dataset.instruction(0, 0) == "wave"


def test_cuts_make_several_labelled_episodes_of_one_bag(bag, tmp_path):
    cuts = [
        Cut(bag, 0.0, 0.8, instruction="open", success=True),
        Cut(bag, 1.0, None, instruction="close", success=False),
    ]
    _, dataset = converted(tmp_path / "out", *cuts)
    assert [episode.length for episode in dataset.episodes] == [16, 20]
    assert [dataset.instruction(episode, 0) for episode in (0, 1)] == ["open", "close"]
    assert [dataset.stamps(episode).labels["success"] for episode in (0, 1)] == [True, False]
    second = dataset.stamps(1).stamps_ns["row"]
    assert START_NS + SECOND_NS <= second[0] < START_NS + 1.1 * SECOND_NS
    # the first row of a cut in the middle has what came before it
    for group, values in in_degrees(state(int(second[0]))).items():
        np.testing.assert_allclose(dataset.state(1, group)[0], values, atol=2e-3)
    conversion, dataset = converted(tmp_path / "good", *cuts, setting=settings(successes_only=True))
    assert len(dataset.episodes) == 1
    assert conversion.reports[1].notes == ("left out: labelled as a failure",)


def test_what_is_there_already_is_not_done_again(bag, tmp_path):
    second = write_bag(tmp_path / "second", robot(SECONDS, start_ns=START_NS + 100 * SECOND_NS))
    converted(tmp_path / "out", bag)
    file = tmp_path / "out" / "data" / "chunk-000" / "file-000.parquet"
    before = file.stat().st_mtime_ns
    conversion, dataset = converted(tmp_path / "out", bag, second)
    assert [report.known for report in conversion.reports] == [True, False]
    assert file.stat().st_mtime_ns == before
    assert len(dataset.episodes) == 2
    conversion, dataset = converted(tmp_path / "out", bag, second)
    assert [report.known for report in conversion.reports] == [True, True]
    assert len(dataset.episodes) == 2


MADE_OTHERWISE = "is in the dataset already, made with other settings (contract, options or episodes.csv): convert into"


@pytest.mark.parametrize(
    "other",
    [
        settings(trim_idle_s=0.2),
        settings(on_gap=OnGap.REFUSE),
        settings(least_rows=8),
        settings(instruction="wave"),
        settings((f"instruction: {INSTRUCTION}", "instruction: wave")),
        settings(("limits: none", "limits: none\nalignment: {tolerance_s: 0.02}")),
        settings(("horizon: 8", "horizon: 16")),
    ],
)
def test_a_bag_is_not_doubled_when_it_is_converted_with_other_settings(bag, tmp_path, other):
    converted(tmp_path / "out", bag)
    conversion, dataset = converted(tmp_path / "out", bag, setting=other)
    assert MADE_OTHERWISE in faults(conversion)[0]
    assert len(dataset.episodes) == 1


def test_a_part_whose_label_was_changed_is_not_doubled(bag, tmp_path):
    converted(tmp_path / "out", Cut(bag, success=True))
    conversion, dataset = converted(tmp_path / "out", Cut(bag, success=False))
    assert MADE_OTHERWISE in faults(conversion)[0]
    assert len(dataset.episodes) == 1


def test_what_does_not_change_the_rows_makes_no_bag_a_new_one(bag, tmp_path):
    converted(tmp_path / "out", bag)
    other = settings(("limits: none", "limits: none\nmotion: {blend_s: 0.5}"))
    conversion, dataset = converted(tmp_path / "out", bag, setting=other)
    assert [report.known for report in conversion.reports] == [True]
    assert len(dataset.episodes) == 1


def test_one_span_may_be_given_with_several_instructions(bag, tmp_path):
    cuts = [Cut(bag, instruction=text) for text in ("open", "pull", "close")]
    converted(tmp_path / "out", *cuts[:2])
    conversion, dataset = converted(tmp_path / "out", *cuts)
    assert [report.known for report in conversion.reports] == [True, True, False]
    assert [dataset.instruction(episode, 0) for episode in range(3)] == ["open", "pull", "close"]


def test_a_dataset_with_the_names_of_an_earlier_version_is_continued_and_never_doubled(bag, tmp_path, monkeypatch):
    with monkeypatch.context() as earlier:
        earlier.setattr(PartNames, "prefix", property(lambda part: part.old))
        converted(tmp_path / "out", bag)
    second = write_bag(tmp_path / "second", robot(SECONDS, start_ns=START_NS + 100 * SECOND_NS))
    conversion, dataset = converted(tmp_path / "out", bag, second)
    assert [report.known for report in conversion.reports] == [True, False]
    assert len(dataset.episodes) == 2
    conversion, dataset = converted(tmp_path / "out", bag, setting=settings(trim_idle_s=0.2))
    assert "an earlier version has put a bag of this name into the dataset" in faults(conversion)[0]
    assert "convert into another directory" in faults(conversion)[0]
    assert len(dataset.episodes) == 2


def test_a_prepared_episode_that_lost_its_video_is_made_again(bag, dataset, tmp_path):
    converted(tmp_path / "out", bag, shard=Shard(1, 1))
    (video,) = (tmp_path / "out").glob(".staging/*.ready/observation.images.front.mp4")
    video.unlink()
    conversion, found = converted(tmp_path / "out", bag)
    assert faults(conversion) == [None]
    assert contents(found) == contents(dataset)


def test_shards_prepare_and_the_last_call_takes_all_in_in_order(tmp_path):
    bags = [write_bag(tmp_path / f"bag_{n}", robot(1.0, start_ns=START_NS + n * 100 * SECOND_NS)) for n in range(3)]
    _, expected = converted(tmp_path / "expected", *bags)
    for index in (3, 1, 2):
        conversion, _ = converted(tmp_path / "out", *bags, shard=Shard(index, 3))
        assert [report.cut.bag for report in conversion.reports] == [bags[index - 1]]
        assert conversion.episodes is None
    conversion, dataset = converted(tmp_path / "out", *bags)
    assert all(report.known for report in conversion.reports)
    assert contents(dataset) == contents(expected)
    assert not (tmp_path / "out" / ".staging").exists()


def test_several_processes_give_the_same_dataset(tmp_path):
    bags = [write_bag(tmp_path / f"bag_{n}", robot(1.0, start_ns=START_NS + n * 100 * SECOND_NS)) for n in range(2)]
    bags.append(tmp_path / "broken.mcap")
    bags[-1].write_bytes(b"nothing")
    shares = {}
    conversion, dataset = converted(tmp_path / "out", *bags, processes=2, progress=shares.__setitem__)
    _, expected = converted(tmp_path / "expected", *bags)
    assert contents(dataset) == contents(expected)
    assert [report.fault is None for report in conversion.reports] == [True, True, False]
    assert shares[0] == shares[1] == 1.0


def test_kill_9_while_converting_leaves_a_dataset_that_loads_and_the_same_command_completes_it(tmp_path):
    bags = [write_bag(tmp_path / f"bag_{n}", robot(1.0, start_ns=START_NS + n * 100 * SECOND_NS)) for n in range(4)]
    (tmp_path / "contract.yaml").write_text(CONTRACT)
    out = tmp_path / "out"
    command = [sys.executable, "-m", "groot_ros", "convert", *bags, out, "--contract", tmp_path / "contract.yaml"]
    process = subprocess.Popen([*map(str, command), "--jobs", "1", "--codec", "lossless"], cwd=ROOT)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (out / "meta" / "info.json").exists():
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = len(open_dataset(out).episodes)
    assert before >= 1
    conversion, dataset = converted(out, *bags, setting=settings(least_rows=8))
    assert faults(conversion) == [None] * 4
    assert [report.known for report in conversion.reports[:before]] == [True] * before
    _, expected = converted(tmp_path / "expected", *bags, setting=settings(least_rows=8))
    assert contents(dataset) == contents(expected)


def spoil(path, how):
    file = next(path.glob("*.mcap"), None) or next(path.glob("*.db3"))
    data = bytearray(file.read_bytes())
    if how == "flipped":
        data[len(data) // 2] ^= 0x04
    file.write_bytes(data if how == "flipped" else data[: len(data) // 2] if how == "truncated" else b"")
    return path


@pytest.mark.parametrize("storage", ["mcap", "sqlite3"])
@pytest.mark.parametrize("how", ["truncated", "empty"])
def test_a_damaged_bag_is_said_and_does_not_stop_the_others(tmp_path, storage, how):
    good = write_bag(tmp_path / "good", robot(1.0))
    bad = spoil(write_bag(tmp_path / "bad", robot(1.0), storage=storage), how)
    conversion, dataset = converted(tmp_path / "out", bad, good)
    assert conversion.failed
    assert str(bad) in faults(conversion)[0]
    assert faults(conversion)[1] is None
    assert len(dataset.episodes) == 1


def test_a_flipped_bit_is_found_by_the_checksum_of_our_recordings(tmp_path):
    file = EpisodeFile(tmp_path / "episode.mcap")
    channels = {}
    for topic, kind, at_ns, data in serialized(robot(1.0)):
        if topic not in channels:
            channels[topic] = file.add_channel(topic, find_definition(kind))
        file.write(channels[topic], at_ns, data)
    file.finish()
    file.close()
    conversion, _ = converted(tmp_path / "good", tmp_path / "episode.mcap")
    assert faults(conversion) == [None]
    spoil(tmp_path, "flipped")
    conversion, _ = converted(tmp_path / "out", tmp_path / "episode.mcap")
    assert "is damaged: Chunk checksum mismatch" in faults(conversion)[0]
    assert "record --recover" in faults(conversion)[0]


@pytest.mark.parametrize(
    ("drop", "sentence"),
    [
        ("/leader/joint_states", "has no topic /leader/joint_states; it has /front/image_raw, /joint_states"),
        ("/wrist/image_raw", "has no topic /wrist/image_raw"),
    ],
)
def test_a_missing_topic_is_named(tmp_path, drop, sentence):
    bag = write_bag(tmp_path / "bag", (message for message in robot(1.0) if message[0] != drop))
    conversion, _ = converted(tmp_path / "out", bag)
    assert sentence in faults(conversion)[0]


def test_a_joint_that_never_comes_and_a_stamp_that_was_never_set_are_named(tmp_path):
    bag = write_bag(tmp_path / "bag", robot(1.0))
    conversion, _ = converted(
        tmp_path / "out",
        bag,
        setting=settings(("{topic: joint_states, joints: [g]}", "{topic: joint_states, joints: [h], names: [g]}")),
    )
    assert "the message has no joint h; it has g, b, a" in faults(conversion)[0]

    def unset():
        for topic, kind, at_ns, message in robot(1.0):
            if topic == "/wrist/image_raw":
                message.header.stamp = ros_time(0)
            yield topic, kind, at_ns, message

    conversion, _ = converted(tmp_path / "out", write_bag(tmp_path / "unset", unset()))
    assert "messages on wrist/image_raw have a stamp of zero; let the driver fill it in" in faults(conversion)[0]


def test_a_camera_of_another_size_is_refused_and_the_others_stay(tmp_path):
    small = write_bag(tmp_path / "small", robot(1.0))
    large = write_bag(tmp_path / "large", robot(1.0, size=(64, 96), start_ns=START_NS + 100 * SECOND_NS))
    conversion, dataset = converted(tmp_path / "out", small, large)
    assert "one camera has one resolution" in faults(conversion)[1]
    assert len(dataset.episodes) == 1


def test_a_full_disk_is_said_and_what_was_finished_stays(bag, tmp_path):
    script = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000));"
        "from groot_ros.cli.convert import main; sys.exit(main(sys.argv[1:]))"
    )
    (tmp_path / "contract.yaml").write_text(CONTRACT)
    done = subprocess.run(
        [sys.executable, "-c", script, bag, tmp_path / "out", "--contract", tmp_path / "contract.yaml", "--jobs", "1",
         "--codec", "lossless"],
        cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ, "COLUMNS": "300"},
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "File too large" in done.stdout
    assert "free space" in done.stdout
    assert not (tmp_path / "out" / "meta" / "info.json").exists()
    conversion, dataset = converted(tmp_path / "out", bag, setting=settings(least_rows=8))
    assert faults(conversion) == [None]
    assert len(dataset.episodes) == 1
