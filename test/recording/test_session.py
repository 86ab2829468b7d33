"""What an operator can do, what a stream's health says, and what is left when things go wrong."""

import errno
import json
import os
import threading
import time

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from rosbags.highlevel import AnyReader
from support.robot_bags import INSTRUCTION, START_NS, STORE, bag_contract, header, joint_state, robot, serialized

from groot_ros.contract.record import INSTRUCTION_TOPIC
from groot_ros.dataset.bag import Bag
from groot_ros.errors import RecordingError
from groot_ros.recording import RecordedTopic, RecordingSession, recorded_topics
from groot_ros.recording.definitions import find_definition
from groot_ros.recording.stream_watch import StreamWatch, header_stamp_ns

SECOND_NS = 1_000_000_000
TF = "tf2_msgs/msg/TFMessage"


def make_session(folder, contract=None):
    topics = {"/" + topic.topic.lstrip("/"): topic for topic in recorded_topics(contract or bag_contract())}
    return RecordingSession(folder, topics, max_gap_ns=75_000_000, least_free_bytes=0)


def hear(session, messages):
    at_ns = 0
    for topic, _, at_ns, data in serialized(messages):
        session.hear(topic, at_ns, data)
    return at_ns


@pytest.fixture
def session(tmp_path):
    return make_session(tmp_path / "recordings")


def test_only_what_the_contract_reads_is_recorded_each_topic_once():
    topics = {topic.topic: topic for topic in recorded_topics(bag_contract())}
    assert list(topics) == ["front/image_raw", "wrist/image_raw", "joint_states", "leader/joint_states"]
    assert topics["joint_states"].streams == ("state.arm", "state.gripper")
    assert [name for name, topic in topics.items() if topic.is_camera] == ["front/image_raw", "wrist/image_raw"]


def test_a_contract_without_actions_is_refused_before_anything_is_recorded():
    contract = bag_contract(
        ("  arm: {topic: leader/joint_states, joints: [a, b], policy_unit: deg}\n", ""),
        ("  gripper: {topic: leader/joint_states, joints: [g]}\npolicy", "  max_gap_s: 0.1\npolicy"),
    )
    with pytest.raises(RecordingError, match="found no source of actions under record"):
        recorded_topics(contract)


def test_why_no_episode_can_begin_is_said_by_stream_and_topic(session):
    assert session.obstacle(START_NS) == (
        "video.front: no message has come yet on /front/image_raw; is its node running?"
    )
    hear(session, (one for one in robot(0.5) if one[0] != "/leader/joint_states"))
    assert "action.arm, action.gripper: no message has come yet on /leader/joint_states" in session.obstacle(START_NS)
    ready_ns = hear(session, robot(0.5))
    assert session.obstacle(ready_ns) is None
    assert session.obstacle(ready_ns + SECOND_NS).endswith("came 1.0 s ago, allowed are 0.2 s")
    with pytest.raises(RecordingError, match=r"came 1\.\d s ago"):
        session.start(ready_ns + SECOND_NS, INSTRUCTION)
    with pytest.raises(RecordingError, match="there is no instruction"):
        session.start(ready_ns, "  ")


def test_a_gap_of_a_camera_marks_the_episode(session):
    ready_ns = hear(session, robot(0.5))
    session.start(ready_ns, INSTRUCTION)
    gaps = []
    for topic, _, at_ns, data in serialized(robot(1.0, start_ns=ready_ns + 1_000_000, lost=(7, 8))):
        gap = session.hear(topic, at_ns, data)
        gaps += [gap] if gap else []
    done = session.stop(at_ns)
    assert [gap.topic for gap in gaps] == ["/front/image_raw"]
    assert done.gaps == tuple(gaps)
    custom = yaml.safe_load((done.bag / "metadata.yaml").read_text())["rosbag2_bagfile_information"]["custom_data"]
    (noted,) = json.loads(custom["groot_ros.gaps"])
    assert noted["topic"] == "/front/image_raw"
    assert noted["length_s"] == pytest.approx(0.15, rel=0.01)
    assert custom["groot_ros.instruction"] == INSTRUCTION


def test_a_camera_that_falls_silent_until_the_end_marks_it_too(session):
    ready_ns = hear(session, robot(0.5))
    session.start(ready_ns, INSTRUCTION)
    end_ns = hear(
        session,
        (one for one in robot(1.0, start_ns=ready_ns) if one[0] != "/wrist/image_raw" or one[2] < ready_ns + 5e8),
    )
    (gap,) = session.stop(end_ns).gaps
    assert gap.topic == "/wrist/image_raw"
    assert gap.length_ns > 0.4 * SECOND_NS


def test_discard_puts_aside_and_the_next_number_is_a_new_one(session):
    ready_ns = hear(session, robot(0.5))
    with pytest.raises(RecordingError, match="no episode was recorded since the recorder began"):
        session.discard()
    session.start(ready_ns, INSTRUCTION)
    aside = session.discard()
    assert aside == session.folder / "discarded" / "episode_000000.recording"
    assert session.start(ready_ns, INSTRUCTION) == "episode_000001"
    session.stop(ready_ns)
    assert session.discard() == session.folder / "discarded" / "episode_000001"
    assert session.name == "episode_000002"
    for what in (session.discard, lambda: session.stop(ready_ns)):
        with pytest.raises(RecordingError):
            what()


def test_a_second_start_changes_nothing(session):
    ready_ns = hear(session, robot(0.5))
    session.start(ready_ns, INSTRUCTION)
    with pytest.raises(RecordingError, match="episode_000000 is being recorded already"):
        session.start(ready_ns, INSTRUCTION)
    assert session.close(ready_ns).bag.name == "episode_000000"
    assert session.close(ready_ns) is None


def test_an_episode_that_is_under_way_is_called_so_and_no_tool_takes_it_for_whole(session):
    ready_ns = hear(session, robot(0.5))
    session.start(ready_ns, INSTRUCTION)
    hear(session, robot(0.5, start_ns=ready_ns))
    (folder,) = session.folder.iterdir()
    assert folder.name == "episode_000000.recording"
    assert not (folder / "metadata.yaml").exists()
    session.stop(ready_ns)
    assert [path.name for path in session.folder.iterdir()] == ["episode_000000"]


def test_fixed_frames_and_values_that_hold_are_in_every_episode(tmp_path):
    definition = find_definition(TF)
    topics = {
        "/tf_static": RecordedTopic("/tf_static", TF, ("state.pose",), is_camera=False, max_age_ns=None),
        "/gripper": RecordedTopic(
            "gripper", "sensor_msgs/msg/JointState", ("action.gripper",), is_camera=False, max_age_ns=None
        ),
    }
    session = RecordingSession(tmp_path, topics, max_gap_ns=SECOND_NS, least_free_bytes=0)
    for number, at_ns in enumerate((START_NS, START_NS + 1)):
        session.hear("/tf_static", at_ns, tf_message(f"camera_{number}"))
    for position in (0.1, 0.2):
        said = [("/gripper", "sensor_msgs/msg/JointState", START_NS, joint_state(START_NS, ["g"], [position]))]
        hear(session, iter(said))
    for episode in range(2):
        now_ns = START_NS + (episode + 1) * 100 * SECOND_NS
        session.start(now_ns, INSTRUCTION)
        with Bag(session.stop(now_ns).bag) as bag:
            messages = list(bag.messages())
            frames = [m.message().transforms[0].child_frame_id for m in messages if m.topic == "/tf_static"]
            values = [m.message().position[0] for m in messages if m.topic == "/gripper"]
            assert {m.received_ns for m in messages} == {now_ns}
        assert frames == ["camera_0", "camera_1"]
        assert values == [0.2]
    assert definition.name == TF


def tf_message(child):
    vector, quaternion = STORE.types["geometry_msgs/msg/Vector3"], STORE.types["geometry_msgs/msg/Quaternion"]
    transform = STORE.types["geometry_msgs/msg/TransformStamped"](
        header=header(START_NS),
        child_frame_id=child,
        transform=STORE.types["geometry_msgs/msg/Transform"](
            translation=vector(x=0.0, y=0.0, z=0.0), rotation=quaternion(x=0.0, y=0.0, z=0.0, w=1.0)
        ),
    )
    return bytes(STORE.serialize_cdr(STORE.types[TF](transforms=[transform]), TF))


def test_a_new_instruction_within_an_episode_is_recorded_with_its_time(session):
    ready_ns = hear(session, robot(0.5))
    session.start(ready_ns, "open")
    session.instruct(ready_ns + SECOND_NS, "close — slowly")
    with AnyReader([session.stop(ready_ns + 2 * SECOND_NS).bag]) as reader:
        chosen = [one for one in reader.connections if one.topic == INSTRUCTION_TOPIC]
        said = [(at_ns, reader.deserialize(raw, one.msgtype).data) for one, at_ns, raw in reader.messages(chosen)]
    assert said == [(ready_ns, "open"), (ready_ns + SECOND_NS, "close — slowly")]


def test_the_stamp_is_read_from_the_bytes():
    for topic, kind, _, data in serialized(robot(0.2)):
        assert topic
        assert find_definition(kind).begins_with_header
        assert START_NS <= header_stamp_ns(data) < START_NS + SECOND_NS
    assert not find_definition("std_msgs/msg/String").begins_with_header
    assert not find_definition(TF).begins_with_header
    with pytest.raises(RecordingError, match="my_msgs/msg/Odd: its definition is not on this machine; install"):
        find_definition("my_msgs/msg/Odd")


@given(period_ms=st.integers(2, 100), lost=st.integers(1, 20), jitter=st.lists(st.floats(-0.2, 0.2), min_size=40))
def test_lost_messages_are_counted_by_stamps_whatever_the_jitter(period_ms, lost, jitter):
    period_ns = period_ms * 1_000_000
    watch = StreamWatch("/joints", stamped=False, max_gap_ns=None)
    stamps = [round((number + shift) * period_ns) for number, shift in enumerate(jitter)]
    middle = len(stamps) // 2
    for stamp_ns in stamps[:middle]:
        watch.hear(b"", stamp_ns)
    assert watch.missing == 0
    for stamp_ns in stamps[middle:]:
        watch.hear(b"", stamp_ns + lost * period_ns)
    assert watch.rate_hz == pytest.approx(1e9 / period_ns, rel=0.2)
    if lost >= 3:
        assert abs(watch.missing - lost) <= 0.2 * lost + 1
    assert watch.out_of_order == 0
    watch.hear(b"", stamps[0])
    assert watch.out_of_order == 1


def test_a_disk_that_is_too_slow_ends_the_episode_by_name(session, monkeypatch):
    ready_ns = hear(session, robot(0.5))
    monkeypatch.setattr("groot_ros.recording.episode_writer.LARGEST_BACKLOG", 1000)
    monkeypatch.setattr("groot_ros.recording.episode_file.EpisodeFile.write", lambda *_: time.sleep(0.02))
    session.start(ready_ns, INSTRUCTION)
    at_ns = hear(session, robot(0.3, start_ns=ready_ns))
    assert "the disk is too slow" in session.check(at_ns).fault


def test_a_disk_that_may_be_too_slow_is_told_of_before_anything_is_lost(session, monkeypatch):
    ready_ns = hear(session, robot(0.5))
    session.try_disk()
    assert session.disk_bytes_per_s > 0
    assert session.disk_doubt() is None
    monkeypatch.setattr("groot_ros.recording.session.try_speed", lambda _: 1000.0)
    session.try_disk()
    assert "may be too slow: it took 0 MB/s when it was tried" in session.disk_doubt()
    assert "record fewer or compressed images, or to another disk" in session.disk_doubt()
    session.disk_bytes_per_s = None
    monkeypatch.setattr("groot_ros.recording.session.LARGE_BACKLOG", 1000)
    monkeypatch.setattr("groot_ros.recording.episode_file.EpisodeFile.write", lambda *_: time.sleep(0.02))
    session.start(ready_ns, INSTRUCTION)
    hear(session, robot(0.3, start_ns=ready_ns))
    assert "falls behind" in session.disk_doubt()


def test_what_all_streams_bring_is_known_before_an_episode_begins(session):
    hear(session, robot(1.0))
    heard = sum(len(data) for _, _, _, data in serialized(robot(1.0)))
    assert session.bytes_per_s == pytest.approx(heard, rel=0.1)


def test_a_disk_that_is_slow_to_answer_keeps_no_message_from_the_system(session, monkeypatch):
    """What the system has, it keeps also when this process is killed."""
    answer = threading.Event()
    asked = threading.Event()

    def slow_answer(_descriptor):
        asked.set()
        answer.wait(30)

    ready_ns = hear(session, robot(0.5))
    session.start(ready_ns, INSTRUCTION)
    (file,) = (session.folder / "episode_000000.recording").glob("*.mcap")
    monkeypatch.setattr("groot_ros.recording.episode_file.os.fsync", slow_answer)
    try:
        hear(session, robot(0.5, start_ns=ready_ns, size=(120, 160)))
        assert asked.wait(10)
        before = file.stat().st_size
        at_ns = hear(session, robot(0.5, start_ns=ready_ns + 500_000_000, size=(120, 160)))
        deadline = time.monotonic() + 10
        while file.stat().st_size < 1.9 * before and time.monotonic() < deadline:
            time.sleep(0.01)
        assert file.stat().st_size >= 1.9 * before
        assert session.backlog_bytes > before
    finally:
        answer.set()
    assert session.stop(at_ns).fault is None


def test_a_clock_that_goes_back_ends_the_episode_before_the_new_run(session):
    ready_ns = hear(session, robot(0.5))
    session.start(ready_ns, INSTRUCTION)
    end_ns = hear(session, robot(1.0, start_ns=ready_ns + 1_000_000))
    again_ns = hear(session, robot(0.3))
    done = session.check(again_ns)
    assert "the clock went back by 1.5 s" in done.fault
    assert done.duration_s == pytest.approx(1.0, abs=0.01)
    assert done.gaps == ()
    with Bag(done.bag) as bag:
        times = [message.received_ns for message in bag.messages()]
    assert (min(times), max(times)) == (ready_ns, end_ns)
    session.start(again_ns, INSTRUCTION)
    assert session.stop(hear(session, robot(0.3, start_ns=again_ns))).fault is None


def test_topics_that_are_read_one_long_after_the_other_are_no_clock_that_went_back(session):
    ready_ns = hear(session, robot(0.5))
    session.start(ready_ns, INSTRUCTION)
    late = list(robot(2.0, start_ns=ready_ns))
    for wanted in session.topics:
        hear(session, (one for one in late if one[0] == wanted))
    assert session.check(late[-1][2]) is None


def test_what_holds_at_all_times_holds_also_when_the_clock_went_back(tmp_path):
    topics = {
        name: RecordedTopic(name, TF, (f"state{name}",), is_camera=False, max_age_ns=max_age_ns)
        for name, max_age_ns in (("/gripper", None), ("/pose", SECOND_NS))
    }
    session = RecordingSession(tmp_path, topics, max_gap_ns=SECOND_NS, least_free_bytes=0)
    for topic, at_ns in (("/gripper", START_NS), ("/pose", START_NS + 100 * SECOND_NS), ("/pose", START_NS)):
        session.hear(topic, at_ns, tf_message(topic))
    assert session.watches["/gripper"].newest_received_ns is None
    assert session.obstacle(START_NS) is None


def test_a_folder_that_was_moved_away_is_said_and_ends_nothing_but_the_episode(session, tmp_path):
    ready_ns = hear(session, robot(0.5))
    session.start(ready_ns, INSTRUCTION)
    at_ns = hear(session, robot(0.3, start_ns=ready_ns))
    session.folder.rename(tmp_path / "elsewhere")
    assert "recordings cannot be reached: No such file or directory; was it moved" in session.obstacle(at_ns)
    assert session.free_bytes == 0
    with pytest.raises(RecordingError, match="cannot be finished: No such file or directory"):
        session.check(at_ns)
    with pytest.raises(RecordingError, match="recordings cannot be reached"):
        session.start(at_ns, INSTRUCTION)
    assert not session.folder.exists()
    (tmp_path / "elsewhere").rename(session.folder)
    assert session.start(at_ns, INSTRUCTION) == "episode_000001"
    session.stop(at_ns)


def refuses(number):
    def call(*_arguments):
        raise OSError(number, os.strerror(number))

    return call


def test_a_disk_that_is_gone_is_said_when_the_episode_is_stopped(session, monkeypatch):
    ready_ns = hear(session, robot(0.5))
    session.start(ready_ns, INSTRUCTION)
    at_ns = hear(session, robot(0.3, start_ns=ready_ns))
    monkeypatch.setattr("groot_ros.recording.episode_file.os.writev", refuses(errno.EIO))
    monkeypatch.setattr("groot_ros.recording.episode_file.os.ftruncate", refuses(errno.EIO))
    with pytest.raises(RecordingError, match="is empty: nothing was on the disk yet"):
        session.stop(at_ns)
    monkeypatch.undo()
    session.start(at_ns, INSTRUCTION)
    monkeypatch.setattr("groot_ros.recording.episode_writer.give_reserve_back", refuses(errno.EROFS))
    with pytest.raises(RecordingError, match="cannot be finished: Read-only file system"):
        session.stop(at_ns)
    session.start(at_ns, INSTRUCTION)
    assert session.discard().name == "episode_000002.recording"


def test_behind_an_episode_that_could_not_be_finished_the_good_one_before_it_is_not_discarded(session, monkeypatch):
    ready_ns = hear(session, robot(0.5))
    session.start(ready_ns, INSTRUCTION)
    good = session.stop(ready_ns).bag
    session.start(ready_ns, INSTRUCTION)
    monkeypatch.setattr("groot_ros.recording.episode_writer.give_final_name", refuses(errno.EIO))
    with pytest.raises(RecordingError, match="cannot be finished"):
        session.stop(ready_ns)
    with pytest.raises(RecordingError, match="or could not be finished: there is nothing to discard"):
        session.discard()
    assert good.is_dir()
