"""What lies on the disk: standard bags with checksums, whole after a crash, a full disk, a flipped bit."""

import os
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from mcap.reader import make_reader
from rosbags.highlevel import AnyReader
from rosbags.rosbag2 import Reader
from support.robot_bags import INSTRUCTION, RATE_HZ, START_NS, bag_contract, robot, serialized

from groot_ros.contract.record import INSTRUCTION_TOPIC
from groot_ros.errors import RecordingError
from groot_ros.recording import RecordingSession, recorded_topics, recover

ROOT = Path(__file__).parents[2]
SECONDS = 2.0
SIZE = (120, 160)
"""So that an episode has several chunks."""


def make_session(folder, **changes):
    topics = {f"/{topic.topic}": topic for topic in recorded_topics(bag_contract())}
    values = {"max_gap_ns": 75_000_000, "least_free_bytes": 0} | changes
    return RecordingSession(folder, topics, **values)


def hear(session, messages):
    """Let the session hear messages; the time of the last one."""
    for topic, _, at_ns, data in serialized(messages):
        session.hear(topic, at_ns, data)
    return at_ns


def record(folder, *, seconds=SECONDS, **robot_changes):
    """One finished episode."""
    session = make_session(folder)
    ready_ns = hear(session, robot(0.5))
    session.start(ready_ns, INSTRUCTION)
    end_ns = hear(session, robot(seconds, start_ns=ready_ns + 1_000_000, size=SIZE, **robot_changes))
    return session.stop(end_ns)


def contents(bag):
    """Topic to its raw messages, read by another tool."""
    with Reader(bag) as reader:
        found = {}
        for connection, at_ns, data in reader.messages():
            found.setdefault(connection.topic, []).append((at_ns, bytes(data)))
        return found


def expected(seconds=SECONDS, start_ns=None):
    found = {}
    start_ns = start_ns or START_NS
    for topic, _, at_ns, data in serialized(robot(seconds, start_ns=start_ns)):
        found.setdefault(topic, []).append((at_ns, data))
    return found


def test_an_episode_is_a_standard_bag_with_every_message_byte_for_byte_and_its_instruction(tmp_path):
    session = make_session(tmp_path)
    ready_ns = hear(session, robot(0.5))
    assert session.start(ready_ns, INSTRUCTION) == "episode_000000"
    start_ns = ready_ns + 1_000_000
    done = session.stop(hear(session, robot(SECONDS, start_ns=start_ns)))
    assert done.bag == tmp_path / "episode_000000"
    assert sorted(path.name for path in done.bag.iterdir()) == ["episode_000000_0.mcap", "metadata.yaml"]
    found = contents(done.bag)
    (said,) = found.pop(INSTRUCTION_TOPIC)
    assert found == expected(start_ns=start_ns)
    with AnyReader([done.bag]) as reader:
        assert reader.deserialize(said[1], "std_msgs/msg/String").data == INSTRUCTION
        hashes = {connection.topic: connection.digest for connection in reader.connections}
        assert all(value.startswith("RIHS01_") for value in hashes.values())
    with next(done.bag.glob("*.mcap")).open("rb") as file:
        reader = make_reader(file, validate_crcs=True)
        assert reader.get_header().profile == "ros2"
        assert {schema.encoding for schema in reader.get_summary().schemas.values()} == {"ros2msg"}
        assert len(list(reader.iter_messages())) == sum(map(len, expected().values())) + 1


def test_a_reader_finds_topic_and_time_through_the_index(tmp_path):
    bag = record(tmp_path).bag
    whole = contents(bag)
    (file,) = bag.glob("*.mcap")
    times = [at_ns for at_ns, _ in whole["/joint_states"]]
    middle = slice(len(times) // 3, 2 * len(times) // 3)
    with file.open("rb") as stream:
        reader = make_reader(stream, validate_crcs=True)
        found = list(reader.iter_messages(["/joint_states"], starting_at=times[middle][0], ending_at=times[middle][-1]))
        summary = reader.get_summary()
    assert [(message.log_time, message.data) for _, _, message in found] == whole["/joint_states"][middle]
    counts = {summary.channels[number].topic: n for number, n in summary.statistics.channel_message_counts.items()}
    assert counts == {topic: len(messages) for topic, messages in whole.items()}
    assert len(summary.chunk_indexes) > 2
    for chunk in summary.chunk_indexes:
        assert chunk.message_start_time <= chunk.message_end_time


def test_every_chunk_carries_a_checksum(tmp_path):
    bag = record(tmp_path).bag
    (file,) = bag.glob("*.mcap")
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 0x10
    file.write_bytes(data)
    with file.open("rb") as stream, pytest.raises(ValueError, match="crc"):
        list(make_reader(stream, validate_crcs=True).iter_messages())


def test_a_flipped_bit_costs_one_chunk_and_the_rest_is_recovered(tmp_path):
    bag = record(tmp_path).bag
    before = contents(bag)
    (file,) = bag.glob("*.mcap")
    data = bytearray(file.read_bytes())
    data[len(data) // 3] ^= 0x10
    file.write_bytes(data)
    (recovery,) = recover(bag)
    assert recovery.fault is None
    assert recovery.bad_chunks == 1
    after = contents(bag)
    lost = sum(len(before[topic]) - len(after.get(topic, [])) for topic in before)
    assert 0 < lost < sum(map(len, before.values()))
    assert all(message in before[topic] for topic in after for message in after[topic])
    with file.open("rb") as stream:
        assert len(list(make_reader(stream, validate_crcs=True).iter_messages())) == recovery.messages


@pytest.mark.parametrize("where", [0.2, 0.5, 0.8])
def test_behind_a_damaged_chunk_every_index_stands_behind_its_own_chunk(tmp_path, where):
    bag = record(tmp_path).bag
    (file,) = bag.glob("*.mcap")
    data = bytearray(file.read_bytes())
    data[int(len(data) * where)] ^= 0x10
    file.write_bytes(data)
    (recovery,) = recover(bag)
    assert recovery.bad_chunks == 1
    with file.open("rb") as stream:
        chunks = make_reader(stream, validate_crcs=True).get_summary().chunk_indexes
    for chunk in chunks:
        end = chunk.chunk_start_offset + chunk.chunk_length
        assert all(end <= at < end + chunk.message_index_length for at in chunk.message_index_offsets.values())


@pytest.mark.parametrize("cut", [0.1, 0.5, 0.97, 0.9999])
def test_a_truncated_file_is_recovered_up_to_its_last_whole_chunk(tmp_path, cut):
    bag = record(tmp_path).bag
    before = contents(bag)
    (file,) = bag.glob("*.mcap")
    os.truncate(file, int(file.stat().st_size * cut))
    (bag / "metadata.yaml").unlink()
    (recovery,) = recover(tmp_path)
    assert recovery.fault is None
    after = contents(recovery.bag)
    assert sum(map(len, after.values())) == recovery.messages > 0
    for topic, messages in after.items():
        assert messages == before[topic][: len(messages)]
    with file.open("rb") as stream:
        summary = make_reader(stream, validate_crcs=True).get_summary()
        assert summary.statistics.message_count == recovery.messages
    assert recover(bag)[0].messages == recovery.messages  # whole now: nothing changes any more


@pytest.mark.parametrize(
    ("content", "sentence"),
    [(b"", "is empty"), (b"hello, this is text", "is no MCAP file"), (b"\x89MCAP0\r\n", "holds no whole message")],
)
def test_what_is_no_recording_is_refused_by_name(tmp_path, content, sentence):
    bag = tmp_path / "episode_000000.recording"
    bag.mkdir()
    (bag / "episode_000000_0.mcap").write_bytes(content)
    (recovery,) = recover(tmp_path)
    assert sentence in recovery.fault
    assert str(bag) in recovery.fault
    assert (bag / "episode_000000_0.mcap").read_bytes() == content


def noted(bag):
    text = (bag / "metadata.yaml").read_text()
    return yaml.safe_load(text)["rosbag2_bagfile_information"]["custom_data"]


def test_what_is_being_recorded_is_not_recovered(tmp_path):
    session = make_session(tmp_path)
    ready_ns = hear(session, robot(0.5))
    session.start(ready_ns, INSTRUCTION)
    at_ns = hear(session, robot(0.5, start_ns=ready_ns))
    (recovery,) = recover(tmp_path)
    assert recovery.fault == f"{tmp_path / 'episode_000000.recording'} is being recorded: end the episode first"
    done = session.stop(hear(session, robot(0.5, start_ns=at_ns)))
    assert done.fault is None
    assert len(contents(done.bag)["/front/image_raw"]) == RATE_HZ


def test_a_whole_bag_is_not_touched_and_a_mended_one_keeps_what_was_noted_of_it(tmp_path):
    bag = record(tmp_path, lost=(7, 8)).bag
    before = (bag / "metadata.yaml").read_bytes()
    notes = noted(bag)
    assert notes.keys() == {"groot_ros.instruction", "groot_ros.gaps"}
    assert recover(bag)[0].fault is None
    assert (bag / "metadata.yaml").read_bytes() == before
    (file,) = bag.glob("*.mcap")
    data = bytearray(file.read_bytes())
    data[len(data) // 3] ^= 0x10
    file.write_bytes(data)
    recover(bag)
    assert noted(bag) == notes | {"groot_ros.recovered": "1 damaged chunks, 0 bytes cut off"}


def test_a_crash_between_the_metadata_and_the_final_name_is_recovered_and_leaves_no_reserve(tmp_path):
    done = record(tmp_path)
    unfinished = done.bag.with_name(f"{done.bag.name}.recording")
    done.bag.rename(unfinished)
    (unfinished / ".reserve").write_bytes(bytes(1000))
    (recovery,) = recover(tmp_path)
    assert (recovery.fault, recovery.bag) == (None, done.bag)
    assert sorted(path.name for path in done.bag.iterdir()) == ["episode_000000_0.mcap", "metadata.yaml"]
    assert noted(done.bag)["groot_ros.instruction"] == INSTRUCTION


def test_a_folder_without_bags_is_refused(tmp_path):
    with pytest.raises(RecordingError, match="holds no MCAP bag: nothing to recover"):
        recover(tmp_path)
    with pytest.raises(RecordingError, match="is no folder"):
        recover(tmp_path / "nowhere")
    (tmp_path / "old.db3").touch()
    with pytest.raises(RecordingError, match="sqlite3"):
        recover(tmp_path)


def play_until_killed(folder, after_s):
    """A recorder in another process, killed without warning."""
    script = Path(__file__).with_name("recording_player.py")
    process = subprocess.Popen(
        [sys.executable, str(script), str(folder)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'test'}"},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout.readline() == "recording\n"
        time.sleep(after_s)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()


def check_after_kill(folder, after_s):
    play_until_killed(folder, after_s)
    finished = sorted(path for path in folder.glob("episode_*") if (path / "metadata.yaml").exists())
    intact = {bag: contents(bag) for bag in finished}
    unfinished = [path for path in folder.glob("episode_*") if path not in finished]
    assert len(unfinished) <= 1
    recoveries = recover(folder)
    for recovery in recoveries:
        if recovery.fault is None:
            found = contents(recovery.bag)
            assert recovery.messages == sum(map(len, found.values()))
            assert recovery.bag.name == unfinished[0].name.removesuffix(".recording")
        else:
            assert "holds no whole message" in recovery.fault or "is empty" in recovery.fault
            # nothing was on the disk: it must have begun within the last second
            assert after_s < 1.6 or len(finished) > 0
    for bag, found in intact.items():
        assert contents(bag) == found
    session = make_session(folder)
    numbers = [int(path.name[8:14]) for path in folder.glob("episode_*")]
    assert session.name == f"episode_{max(numbers, default=-1) + 1:06d}"  # nothing is ever overwritten


@pytest.mark.parametrize("after_s", [0.1, 0.9, 1.7])
def test_kill_9_while_recording_leaves_every_finished_episode_and_what_was_written(tmp_path, after_s):
    check_after_kill(tmp_path, after_s)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_kill_9_at_twenty_random_moments(tmp_path, seed):
    check_after_kill(tmp_path, random.Random(seed).uniform(0.0, 4.0))


def test_a_full_disk_ends_the_episode_with_a_clear_sentence_and_a_whole_bag(tmp_path):
    """A limit on the size of files stands in for the disk: the system refuses to write in the same way."""
    session = make_session(tmp_path)
    ready_ns = hear(session, robot(0.5))
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5_000_000, limit[1]))
    try:
        session.start(ready_ns, INSTRUCTION)
        size = (480, 640)
        at_ns = hear(session, robot(0.6, start_ns=ready_ns + 1_000_000, size=size))
        deadline = time.monotonic() + 60  # fsync may take long on a busy disk
        done = None
        while done is None and time.monotonic() < deadline:
            done = session.check(at_ns)
            time.sleep(0.01)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert "File too large" in done.fault
    assert "free space on the disk" in done.fault
    assert not session.is_recording
    found = contents(done.bag)
    whole = expected_large(ready_ns + 1_000_000, size)
    for topic, messages in found.items():
        if topic != INSTRUCTION_TOPIC:
            assert messages == whole[topic][: len(messages)]
    assert len(found["/front/image_raw"]) >= 1


def expected_large(start_ns, size):
    found = {}
    for topic, _, at_ns, data in serialized(robot(0.6, start_ns=start_ns, size=size)):
        found.setdefault(topic, []).append((at_ns, data))
    return found


def test_no_episode_begins_on_a_disk_that_is_nearly_full(tmp_path):
    session = make_session(tmp_path, least_free_bytes=1 << 60)
    ready_ns = hear(session, robot(0.5))
    with pytest.raises(RecordingError, match=r"GB are free on the disk of .*delete something"):
        session.start(ready_ns, INSTRUCTION)
    assert list(tmp_path.iterdir()) == []


def test_an_episode_under_way_ends_when_the_disk_is_nearly_full(tmp_path):
    session = make_session(tmp_path)
    ready_ns = hear(session, robot(0.5))
    session.start(ready_ns, INSTRUCTION)
    at_ns = hear(session, robot(0.5, start_ns=ready_ns + 1_000_000))
    assert session.check(at_ns) is None
    session._least_free_bytes = 1 << 60
    done = session.check(at_ns)
    assert "are kept free" in done.fault
    assert len(contents(done.bag)["/front/image_raw"]) == RATE_HZ // 2
