"""What a row may be made of: commands of any type, cameras of any kind, cuts from a table, a bag nobody described."""

from fractions import Fraction

import av
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from support.robot_bags import (
    CONTRACT,
    INSTRUCTION,
    RATE_HZ,
    START_NS,
    STORE,
    bag_contract,
    command,
    header,
    pixels,
    robot,
    ros_time,
    string,
    write_bag,
)

from groot_ros.cli.convert import main
from groot_ros.contract import parse_contract
from groot_ros.dataset.bag import Bag
from groot_ros.dataset.conversion import ConversionSettings, Cut, convert, inspect_bag, read_cuts
from groot_ros.dataset.conversion.draft import draft_contract
from groot_ros.dataset.conversion.idle import idle_ends
from groot_ros.dataset.conversion.row_clock import RowClock
from groot_ros.dataset.reader import open_dataset
from groot_ros.dataset.video_writer import VideoEncoding
from groot_ros.errors import DatasetError

SECOND_NS = 1_000_000_000
LOSSLESS = VideoEncoding(codec="lossless")
RECORD = CONTRACT[CONTRACT.index("record:") : CONTRACT.index("policy:")]


def converted(root, bag, contract):
    conversion = convert([Cut(bag)], root, ConversionSettings(contract=contract), encoding=LOSSLESS)
    assert [report.fault for report in conversion.reports] == [None]
    return open_dataset(root)


def trajectory(at_ns):
    a, b, g = command(at_ns)
    duration = STORE.types["builtin_interfaces/msg/Duration"](sec=0, nanosec=0)
    none = np.empty(0)
    point = STORE.types["trajectory_msgs/msg/JointTrajectoryPoint"](
        positions=np.array([g, b, a]), velocities=none, accelerations=none, effort=none, time_from_start=duration
    )
    return STORE.types["trajectory_msgs/msg/JointTrajectory"](
        header=header(at_ns), joint_names=["g", "b", "a"], points=[point]
    )


def multi_array(at_ns):
    layout = STORE.types["std_msgs/msg/MultiArrayLayout"](dim=[], data_offset=0)
    return STORE.types["std_msgs/msg/Float64MultiArray"](layout=layout, data=np.array(command(at_ns)))


def twist(at_ns):
    a, b, g = command(at_ns)
    vector = STORE.types["geometry_msgs/msg/Vector3"]
    inner = STORE.types["geometry_msgs/msg/Twist"](linear=vector(x=a, y=b, z=0.0), angular=vector(x=0.0, y=0.0, z=g))
    return STORE.types["geometry_msgs/msg/TwistStamped"](header=header(at_ns), twist=inner)


SOURCES = {
    "trajectory": (
        "trajectory_msgs/msg/JointTrajectory",
        trajectory,
        'type: trajectory_msgs/msg/JointTrajectory, field: "points[-1].positions", joints: [a, b]',
        'type: trajectory_msgs/msg/JointTrajectory, field: "points[-1].positions", joints: [g]',
    ),
    "twist": (
        "geometry_msgs/msg/TwistStamped",
        twist,
        "type: geometry_msgs/msg/TwistStamped, fields: [twist.linear.x, twist.linear.y], names: [a, b]",
        "type: geometry_msgs/msg/TwistStamped, fields: [twist.angular.z], names: [g]",
    ),
    "array": (
        "std_msgs/msg/Float64MultiArray",
        multi_array,
        'type: std_msgs/msg/Float64MultiArray, fields: ["data[0]", "data[1]"], names: [a, b]',
        'type: std_msgs/msg/Float64MultiArray, fields: ["data[2]"], names: [g]',
    ),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_commands_of_any_type_are_actions_by_name_or_field(tmp_path, kind):
    type_name, message, arm, gripper = SOURCES[kind]
    said = [("/commands", type_name, at_ns, message(at_ns)) for at_ns in range(START_NS, START_NS + SECOND_NS, 10**7)]
    messages = sorted([*robot(1.0, commands=False), *said], key=lambda one: one[2])
    record = (
        f"record:\n  arm: {{topic: commands, {arm}, policy_unit: deg}}\n  gripper: {{topic: commands, {gripper}}}\n"
    )
    dataset = converted(tmp_path / "out", write_bag(tmp_path / "bag", iter(messages)), bag_contract((RECORD, record)))
    for row, stamp_ns in enumerate(dataset.stamps(0).stamps_ns["row"]):
        expected = command(int(stamp_ns))
        np.testing.assert_allclose(dataset.action(0, "arm")[row], np.rad2deg(expected[:2]), atol=5e-3)
        np.testing.assert_allclose(dataset.action(0, "gripper")[row], expected[2:], atol=1e-3)


def test_a_gripper_that_only_opens_and_closes_is_learnt_as_the_policys_levels(tmp_path):
    levels = ", kind: binary, open: {policy: 1, robot: 0.8}, closed: {policy: -1, robot: 0.0}}"
    contract = bag_contract(("gripper: {meaning: position}", "gripper: {meaning: position" + levels))
    dataset = converted(tmp_path / "out", write_bag(tmp_path / "bag", robot(2.0)), contract)
    recorded = [command(int(stamp_ns))[2] for stamp_ns in dataset.stamps(0).stamps_ns["row"]]
    sure = np.abs(np.array(recorded) - 0.4) > 0.01
    np.testing.assert_array_equal(
        dataset.action(0, "gripper")[sure, 0], np.where(np.array(recorded) > 0.4, 1, -1)[sure]
    )
    assert set(dataset.action(0, "gripper")[:, 0].tolist()) == {1.0, -1.0}


CUSTOM = """
std_msgs/Header header
my_robot_msgs/Goal[] goals
================================================================================
MSG: my_robot_msgs/Goal
float32 angle
bool closed
"""


def custom_bag(path):
    store = get_typestore_with(CUSTOM)
    goal = store.types["my_robot_msgs/msg/Goal"]
    whole = store.types["my_robot_msgs/msg/Goals"]
    writer = Writer(path, version=8, storage_plugin=StoragePlugin.MCAP)
    connections = {}
    messages = [*robot(1.0, commands=False)]
    for at_ns in range(START_NS, START_NS + SECOND_NS, 10**7):
        a, b, g = command(at_ns)
        goals = [goal(angle=a, closed=False), goal(angle=b, closed=False), goal(angle=g, closed=g > 0.5)]
        messages.append(("/goals", "my_robot_msgs/msg/Goals", at_ns, whole(header=header(at_ns), goals=goals)))
    with writer:
        for topic, kind, at_ns, message in sorted(messages, key=lambda one: one[2]):
            if topic not in connections:
                connections[topic] = writer.add_connection(topic, kind, typestore=store)
            writer.write(connections[topic], at_ns, store.serialize_cdr(message, kind))
    return path


def get_typestore_with(text):
    store = get_typestore(Stores.ROS2_JAZZY)
    store.register(get_types_from_msg(text, "my_robot_msgs/msg/Goals"))
    return store


GOALS = """record:
  arm:
    topic: goals
    type: my_robot_msgs/msg/Goals
    fields: ["goals[0].angle", "goals[1].angle"]
    names: [a, b]
    policy_unit: deg
  gripper:
    topic: goals
    type: my_robot_msgs/msg/Goals
    fields: ["goals[2].closed"]
    names: [g]
    interpolation: nearest
"""


def test_a_type_that_only_the_bag_knows_is_read_by_its_definition_there(tmp_path):
    bag = custom_bag(tmp_path / "bag")
    dataset = converted(tmp_path / "out", bag, bag_contract((RECORD, GOALS)))
    stamps = dataset.stamps(0).stamps_ns["row"]
    closed = dataset.action(0, "gripper")[:, 0]
    assert set(closed.tolist()) == {0.0, 1.0}
    angles = np.array([np.rad2deg(command(int(stamp_ns))[:2]) for stamp_ns in stamps])
    np.testing.assert_allclose(dataset.action(0, "arm"), angles, atol=5e-3)


def video_bag(path, codec, type_name, *, name=None, begin=0, seconds=2.0, key_frames=10, **options):
    """The front camera as packets of a video, as a camera driver with an encoder sends them."""
    if "FFMPEG" in type_name:
        text = (
            "std_msgs/Header header\nint32 width\nint32 height\nstring encoding\nuint64 pts\nuint8 flags\n"
            "bool is_bigendian\nuint8[] data\n"
        )
    else:
        text = "builtin_interfaces/Time timestamp\nstring frame_id\nuint8[] data\nstring format\n"
    store = get_typestore(Stores.ROS2_JAZZY)
    store.register(get_types_from_msg(text, type_name))
    encoder = av.CodecContext.create(codec, "w")
    encoder.width, encoder.height, encoder.pix_fmt = 64, 48, "yuv420p"
    encoder.time_base, encoder.gop_size = Fraction(1, 20), key_frames
    encoder.options = {"tune": "zerolatency", "preset": "veryfast", "crf": "10"} | options
    messages, number = [], 0
    for topic, kind, at_ns, message in robot(seconds, size=(48, 64)):
        if topic != "/front/image_raw":
            messages.append((topic, kind, at_ns, message))
            continue
        flat = np.full((48, 64, 3), (number * 6) % 256, np.uint8)
        frame = av.VideoFrame.from_ndarray(flat, format="rgb24")
        frame.pts = number
        data = b"".join(bytes(packet) for packet in encoder.encode(frame))
        if number >= begin:
            stamp_ns = message.header.stamp.sec * SECOND_NS + message.header.stamp.nanosec
            messages.append((topic, type_name, at_ns, packet_message(store, type_name, stamp_ns, data, name or codec)))
        number += 1
    writer, connections = Writer(path, version=8, storage_plugin=StoragePlugin.MCAP), {}
    with writer:
        for topic, kind, at_ns, message in messages:
            if topic not in connections:
                connections[topic] = writer.add_connection(topic, kind, typestore=store)
            writer.write(connections[topic], at_ns, store.serialize_cdr(message, kind))
    return path


def packet_message(store, type_name, stamp_ns, data, codec):
    content = np.frombuffer(data, np.uint8)
    if "FFMPEG" in type_name:
        return store.types[type_name](
            header=header(stamp_ns),
            width=64,
            height=48,
            encoding=codec,
            pts=0,
            flags=0,
            is_bigendian=False,
            data=content,
        )
    return store.types[type_name](timestamp=ros_time(stamp_ns), frame_id="", data=content, format=codec)


@pytest.mark.parametrize(
    ("codec", "type_name"),
    [
        ("libx264", "ffmpeg_image_transport_msgs/msg/FFMPEGPacket"),
        ("libx264", "foxglove_msgs/msg/CompressedVideo"),
        ("libx265", "foxglove_msgs/msg/CompressedVideo"),
    ],
)
def test_video_packets_are_decoded_frame_for_frame_with_their_stamps(tmp_path, codec, type_name):
    name = {"libx264": "h264", "libx265": "h265"}[codec]
    bag = video_bag(tmp_path / "bag", codec, type_name, name=name)
    camera = ("{topic: front/image_raw}", f"{{topic: front/image_raw, type: {type_name}}}")
    dataset = converted(tmp_path / "out", bag, bag_contract(camera))
    assert dataset.episodes[0].length == 40
    stamps = dataset.stamps(0).stamps_ns["observation.images.front"]
    assert abs(int(stamps[0]) - START_NS - 20_000_000) < 1000
    for row in (0, 1, 17, 39):
        (frame,) = dataset.frames(0, "front", [row])
        assert abs(int(frame.mean()) - (row * 6) % 256) <= 3


def test_packets_before_the_first_key_frame_are_no_rows(tmp_path):
    type_name = "foxglove_msgs/msg/CompressedVideo"
    bag = video_bag(tmp_path / "bag", "libx264", type_name, name="h264", begin=3)
    camera = ("{topic: front/image_raw}", f"{{topic: front/image_raw, type: {type_name}}}")
    conversion = convert([Cut(bag)], tmp_path / "out", ConversionSettings(contract=bag_contract(camera)))
    assert conversion.reports[0].notes == ("camera front: 7 video packets before the first key frame are no pictures",)
    dataset = open_dataset(tmp_path / "out")
    first_ns = int(dataset.stamps(0).stamps_ns["row"][0])
    assert abs(first_ns - START_NS - 20_000_000 - 10 * SECOND_NS / RATE_HZ) < 10_000
    assert abs(int(dataset.frames(0, "front", [0])[0].mean()) - 60) <= 3


def test_a_part_that_begins_long_behind_a_key_frame_has_all_its_frames(tmp_path):
    type_name = "foxglove_msgs/msg/CompressedVideo"
    once = {"key_frames": 1000, "sc_threshold": "0"}
    bag = video_bag(tmp_path / "bag", "libx264", type_name, name="h264", seconds=5.0, **once)
    camera = ("{topic: front/image_raw}", f"{{topic: front/image_raw, type: {type_name}}}")
    settings = ConversionSettings(contract=bag_contract(camera))
    conversion = convert([Cut(bag, 3.5)], tmp_path / "out", settings, encoding=LOSSLESS)
    assert (conversion.reports[0].fault, conversion.reports[0].notes) == (None, ())
    dataset = open_dataset(tmp_path / "out")
    assert dataset.episodes[0].length == 30
    first = round((int(dataset.stamps(0).stamps_ns["row"][0]) - START_NS - 20_000_000) * RATE_HZ / SECOND_NS)
    assert abs(int(dataset.frames(0, "front", [0])[0].mean()) - (first * 6) % 256) <= 3


def test_an_unknown_video_codec_is_refused_by_name(tmp_path):
    type_name = "foxglove_msgs/msg/CompressedVideo"
    bag = video_bag(tmp_path / "bag", "libx264", type_name, name="theora")
    camera = ("{topic: front/image_raw}", f"{{topic: front/image_raw, type: {type_name}}}")
    settings = ConversionSettings(contract=bag_contract(camera))
    conversion = convert([Cut(bag)], tmp_path / "out", settings)
    assert "the video codec 'theora' is not known; known are h264" in conversion.reports[0].fault


@given(
    jitter=st.lists(st.floats(-0.2, 0.2), min_size=30, max_size=120),
    drift=st.floats(-0.002, 0.002),
    phase=st.integers(0, 10**12),
)
def test_a_camera_at_the_rate_of_the_dataset_gives_every_frame_whatever_its_jitter(jitter, drift, phase):
    period_ns = 33_333_333
    stamps = [phase + round((n + shift) * period_ns * (1 + drift)) for n, shift in enumerate(jitter)]
    clock = RowClock(period_ns, max_gap_ns=2 * period_ns)
    rows = [row for stamp in stamps for row in clock.add(stamp)] + clock.finish()
    assert rows == sorted(set(rows))
    assert (
        len(stamps) - len(rows) <= 1 + len(stamps) // 20
    )  # a frame may fall between two expected times while it settles
    assert set(rows) <= set(stamps)


@given(camera_hz=st.floats(31, 240), seconds=st.floats(1, 4), phase=st.integers(0, 10**12))
def test_a_faster_camera_gives_rows_at_the_rate_of_the_dataset(camera_hz, seconds, phase):
    period_ns = 33_333_333
    stamps = [phase + round(n * 1e9 / camera_hz) for n in range(round(seconds * camera_hz))]
    clock = RowClock(period_ns, max_gap_ns=2 * period_ns)
    rows = [row for stamp in stamps for row in clock.add(stamp)] + clock.finish()
    assert rows == sorted(set(rows))
    assert set(rows) <= set(stamps)
    span_ns = stamps[-1] - stamps[0]
    assert abs(len(rows) - 1 - span_ns / period_ns) <= 1.5 + 0.011 * len(rows)


@given(gap=st.integers(3, 50), before=st.integers(1, 40), after=st.integers(1, 40))
def test_rows_begin_anew_behind_a_gap_and_none_lies_in_it(gap, before, after):
    period_ns = 50_000_000
    stamps = [n * period_ns for n in range(before)] + [(before - 1 + gap + n) * period_ns for n in range(after)]
    clock = RowClock(period_ns, max_gap_ns=2 * period_ns)
    rows = [row for stamp in stamps for row in clock.add(stamp)] + clock.finish()
    assert rows == stamps


@given(head=st.integers(0, 30), moving=st.integers(2, 50), tail=st.integers(0, 30), margin=st.integers(0, 5))
def test_only_head_and_tail_are_idle(head, moving, tail, margin):
    ramp = np.linspace(0.0, 1.0, moving + 1)
    actions = np.concatenate([np.zeros(head), ramp, np.ones(tail)])[:, np.newaxis]
    first, last = idle_ends({"arm": actions}, margin)
    assert first == max(0, head + 1 - margin)
    assert last == min(len(actions), head + moving + margin)


def test_a_joint_that_only_jitters_beside_one_that_moves_is_idle():
    ramp = np.concatenate([np.zeros(20), np.linspace(0.0, 90.0, 31), np.full(20, 90.0)])
    jitter = 0.05 * np.sin(np.arange(len(ramp)))
    assert idle_ends({"arm": np.stack([ramp, jitter], axis=1)}, 0) == (21, 50)
    gripper = np.concatenate([np.zeros(10), np.ones(61)])[:, np.newaxis]  # of another unit, and small beside degrees
    assert idle_ends({"arm": np.stack([ramp, jitter], axis=1), "gripper": gripper}, 0) == (10, 50)


def test_a_table_cuts_and_labels(tmp_path):
    bags = [tmp_path / "monday", tmp_path / "tuesday.mcap"]
    table = tmp_path / "episodes.csv"
    table.write_text(
        "bag, start_s, end_s, instruction, success\n"
        'monday, 1.5, 12, "open, then close", true\n'
        "./tuesday.mcap,,,,no\nmonday,20,,wave,\n"
    )
    assert read_cuts(table, bags) == [
        Cut(bags[0], 1.5, 12.0, "open, then close", success=True),
        Cut(bags[1], 0.0, None, None, success=False),
        Cut(bags[0], 20.0, None, "wave", success=None),
    ]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("file,start_s\nmonday,1\n", "found the columns file, start_s; wanted bag, start_s, end_s, instruction"),
        ("bag,start\nmonday,1\n", "found the columns bag, start; wanted"),
        ("bag\nsunday\n", "line 2: bag 'sunday' names 0 of the bags that were given: monday"),
        ("bag,start_s\nmonday,soon\n", "line 2: start_s is 'soon'; write seconds"),
        ("bag,start_s,end_s\nmonday,5,4\n", "line 2: the episode ends at 4 s, but begins at 5 s"),
        ("bag,success\nmonday,nearly\n", "line 2: success is 'nearly'; write true, false or nothing"),
        ("", "found the columns none"),
    ],
)
def test_a_wrong_table_is_refused_by_line(tmp_path, text, sentence):
    (tmp_path / "episodes.csv").write_text(text)
    with pytest.raises(DatasetError) as error:
        read_cuts(tmp_path / "episodes.csv", [tmp_path / "monday"])
    assert sentence in str(error.value)


def test_a_cut_behind_the_end_is_refused(tmp_path):
    bag = write_bag(tmp_path / "bag", robot(1.0))
    settings = ConversionSettings(contract=bag_contract())
    conversion = convert([Cut(bag), Cut(bag, start_s=5.0)], tmp_path / "out", settings, encoding=LOSSLESS)
    assert "is 1.0 s long, but the episode begins at 5 s" in conversion.reports[1].fault


def test_inspection_says_rates_gaps_stamps_and_contents(tmp_path):
    messages = list(robot(2.0, lost=(10, 11)))
    messages[50] = (*messages[50][:3], messages[49][3]) if messages[50][0] == messages[49][0] else messages[50]
    report = inspect_bag(write_bag(tmp_path / "bag", iter(messages)))
    topics = {topic.name: topic for topic in report.topics}
    front, joints = topics["/front/image_raw"], topics["/joint_states"]
    assert front.content == "rgb8 48x32"
    assert front.rate_hz == pytest.approx(20, rel=0.01)
    assert front.longest_gap_s == pytest.approx(0.15, rel=0.01)
    assert joints.names == ("g", "b", "a")
    assert joints.rate_hz == pytest.approx(200, rel=0.01)
    assert joints.lag_s == pytest.approx(0.0005, rel=0.01)
    assert report.duration_s == pytest.approx(2.0, abs=0.02)


def test_wrong_stamps_are_said(tmp_path):
    def messages():
        for number, (topic, kind, at_ns, message) in enumerate(robot(1.0)):
            if topic == "/joint_states" and number % 10 == 0:
                message.header.stamp = ros_time(0)
            if topic == "/front/image_raw":
                message.header.stamp = ros_time(at_ns - 7200 * SECOND_NS)
            yield topic, kind, at_ns, message

    topics = {topic.name: topic for topic in inspect_bag(write_bag(tmp_path / "bag", messages())).topics}
    assert any(fault.endswith("zero") for fault in topics["/joint_states"].stamp_faults)
    assert any("going back" in fault for fault in topics["/joint_states"].stamp_faults)
    assert topics["/front/image_raw"].stamp_faults == ["7200.0 s behind their arrival: another clock?"]
    assert topics["/wrist/image_raw"].stamp_faults == []


def test_the_drafted_contract_converts_the_bag_that_it_was_drafted_from(tmp_path):
    said = [("/groot/instruction", "std_msgs/msg/String", START_NS, string(INSTRUCTION))]
    bag = write_bag(tmp_path / "bag", iter([*said, *robot(2.0)]))
    text = draft_contract(inspect_bag(bag))
    dataset = converted(tmp_path / "out", bag, parse_contract(text, "draft.yaml"))
    assert dataset.info.fps == RATE_HZ
    assert dataset.instruction(0, 0) == INSTRUCTION
    assert set(dataset.modality.video) == {"front", "wrist"}
    np.testing.assert_allclose(dataset.action(0, "arm")[:, 2], [
        command(int(stamp_ns))[0] for stamp_ns in dataset.stamps(0).stamps_ns["row"]
    ], atol=1e-3)  # fmt: skip
    without = write_bag(tmp_path / "without", robot(1.0, commands=False))
    assert "action_from_state: {shift_rows: 1}" in draft_contract(inspect_bag(without))


def test_without_a_camera_nothing_is_drafted(tmp_path):
    bag = write_bag(tmp_path / "bag", (one for one in robot(1.0) if "image" not in one[0]))
    with pytest.raises(DatasetError, match="has no camera, so no contract can be drafted"):
        draft_contract(inspect_bag(bag))


@pytest.fixture
def contract_file(tmp_path):
    path = tmp_path / "contract.yaml"
    path.write_text(CONTRACT)
    return path


def run(capsys, *arguments):
    status = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return status, " ".join(captured.out.split()), captured.err


@pytest.fixture(autouse=True)
def _wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "250")


def test_the_command_converts_a_folder_and_says_what_became_of_each(tmp_path, contract_file, capsys):
    folder = tmp_path / "recordings"
    folder.mkdir()
    write_bag(folder / "episode_000000", robot(1.0))
    write_bag(folder / "episode_000001", robot(1.0, start_ns=START_NS + 100 * SECOND_NS, lost=(3,)))
    status, out, _ = run(capsys, folder, tmp_path / "out", "--contract", contract_file, "--jobs", 1)
    assert status == 0
    assert "episode_000000 │ 1 │ 20 │ 1.0 │ 0" in out
    assert "split: camera front was silent for 0.100 s; left out a part of 3 rows: shorter than 8" in out
    assert "2 episodes; next: python -m groot_ros check" in out
    broken = folder / "episode_000002.recording"
    broken.mkdir()
    (broken / "episode_000002_0.mcap").write_bytes(b"half")
    status, out, _ = run(capsys, folder, tmp_path / "out", "--contract", contract_file)
    assert status == 1
    assert "was there already" in out
    assert "episode_000002.recording was left out: it is not finished; run record --recover" in out


def test_what_was_put_aside_or_never_finished_is_not_converted_though_a_pattern_names_it(
    tmp_path, contract_file, capsys
):
    folder = tmp_path / "recordings"
    (folder / "discarded").mkdir(parents=True)
    write_bag(folder / "episode_000000", robot(1.0))
    write_bag(folder / "episode_000001.recording", robot(1.0, start_ns=START_NS + 100 * SECOND_NS))
    write_bag(folder / "discarded" / "episode_000002", robot(1.0, start_ns=START_NS + 200 * SECOND_NS))
    all_of_it = sorted(folder.iterdir())
    status, out, _ = run(capsys, *all_of_it, tmp_path / "out", "--contract", contract_file, "--jobs", 1)
    assert status == 1
    assert "out: 1 episodes; next" in out
    assert f"{folder / 'discarded'} was left out: what lies in it was put aside; give it alone to convert it" in out
    assert f"episode_000001.recording was left out: it is not finished; run record --recover {folder}" in out
    status, out, _ = run(capsys, folder / "discarded", tmp_path / "aside", "--contract", contract_file, "--jobs", 1)
    assert status == 0
    assert "aside: 1 episodes; next" in out


def test_the_command_ends_with_1_when_a_bag_failed_and_with_2_when_nothing_could_be_done(
    tmp_path, contract_file, capsys
):
    bad = tmp_path / "bad.mcap"
    bad.write_text("no bag")
    status, out, _ = run(capsys, bad, tmp_path / "out", "--contract", contract_file)
    assert status == 1
    assert f"failed: {bad} cannot be read as a bag: File magic is invalid" in out
    assert not (tmp_path / "out").exists()
    status, _, err = run(capsys, tmp_path / "nowhere", tmp_path / "out", "--contract", contract_file)
    assert (status, "is not there; give bags" in err) == (2, True)
    status, _, err = run(capsys, bad, "--contract", contract_file)
    assert (status, "a directory for the dataset behind the bags is missing" in err) == (2, True)
    status, _, err = run(capsys, bad, tmp_path / "out")
    assert (status, "--contract is missing" in err) == (2, True)
    with pytest.raises(SystemExit):
        main([str(bad), str(tmp_path / "out"), "--shard", "9/8"])
    assert "'9/8' is no shard; write 1/8 to 8/8" in capsys.readouterr().err


def test_the_command_inspects(tmp_path, capsys):
    bag = write_bag(tmp_path / "bag", robot(1.0))
    status, out, _ = run(capsys, "--inspect", bag)
    assert status == 0
    assert "│ /joint_states │ sensor_msgs/msg/JointState │ 200 │ 200.0 │ 0.005 │ 0.001 │ good │ g, b, a │" in out
    assert "contract_version: 1" in out
    with Bag(bag) as opened:
        assert opened.message_count == sum(topic.messages for topic in inspect_bag(bag).topics)


def test_pictures_of_two_bags_are_never_mixed_up():
    assert not np.array_equal(pixels("front", 3), pixels("front", 4))
