"""The recorder as its users see it: over DDS, from the demo robot, driven by services."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import shutil
import struct
import subprocess
import sys
import termios
import threading
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytestmark = pytest.mark.dds

from diagnostic_msgs.msg import DiagnosticStatus  # noqa: E402
from rclpy.qos import QoSProfile, qos_profile_sensor_data  # noqa: E402
from sensor_msgs.msg import Image, JointState  # noqa: E402
from std_msgs.msg import String  # noqa: E402
from std_srvs.srv import Trigger  # noqa: E402
from support.ros import ROOT, Listener, isolate, own_domain, tool  # noqa: E402

from groot_ros.alignment import Aligner, NotReady  # noqa: E402
from groot_ros.alignment.intake import Intake  # noqa: E402
from groot_ros.contract import load_contract  # noqa: E402
from groot_ros.dataset.bag import Bag  # noqa: E402
from groot_ros.dataset.conversion import ConversionSettings, Cut, convert  # noqa: E402
from groot_ros.dataset.conversion.playback import Playback  # noqa: E402
from groot_ros.dataset.reader import open_dataset  # noqa: E402
from groot_ros.dataset.video_writer import VideoEncoding  # noqa: E402
from groot_ros.nodes.recorder_node import RecorderNode, RecorderOptions  # noqa: E402
from groot_ros.recording.stream_watch import header_stamp_ns  # noqa: E402

LEROBOT = os.environ.get("GROOT_LEROBOT_PYTHON")
CONTRACT = ROOT / "config" / "robots" / "demo.yaml"

SMALL_PICTURES = ("-p", "width:=160", "-p", "height:=120")


@pytest.fixture(scope="module", autouse=True)
def _own_domain(tmp_path_factory):
    isolate(own_domain(), tmp_path_factory.mktemp("ros_log"))


@pytest.fixture
def listener():
    listener = Listener()
    yield listener
    listener.close()


def call(listener, name):
    answer = listener.call(Trigger, f"groot_recorder/{name}", Trigger.Request())
    return answer.success, answer.message


def record_tool(folder, contract=CONTRACT, *more):
    return tool("record", "--contract", str(contract), "--output", str(folder), "--no-view", *more)


class LiveEars:
    """What the policy node would see: the same topics into the same intake."""

    def __init__(self, listener, contract):
        self.aligner = Aligner(contract, with_commands=True)
        self.intake = Intake(contract, self.aligner, commands=True)
        self.clock = listener.node.get_clock()
        self.stamps = []
        self.seen = []
        self.lag_ns = 400_000_000
        types = {"sensor_msgs/msg/Image": Image, "sensor_msgs/msg/JointState": JointState}
        for topic in self.intake.topics.values():
            listener.node.create_subscription(
                types[topic.type],
                topic.name,
                lambda message, name=topic.name: self.take(name, message),
                qos_profile_sensor_data if topic.cameras else QoSProfile(depth=200),
            )

    def take(self, topic, message):
        now_ns = self.clock.now().nanoseconds
        taken = self.intake.take(topic, message, now_ns)
        if taken.frame and topic.startswith("front"):
            self.stamps.append(self.aligner.health["video.front"].newest_stamp_ns)
        while self.stamps and now_ns >= self.stamps[0] + self.lag_ns:
            stamp_ns = self.stamps.pop(0)
            observation = self.aligner.observation_at(stamp_ns, "")
            if not isinstance(observation, NotReady):
                self.seen.append((stamp_ns, observation, self.aligner.commands_at(stamp_ns)))


def bag_observations(bag_path, contract, stamps):
    """The observations for reference stamps, out of the bag."""
    found = {}
    waiting = sorted(stamps)
    with Bag(bag_path) as bag:
        playback = Playback(bag, contract, bag.start_ns, bag.end_ns)

        def look():
            stamp_ns = waiting.pop(0)
            found[stamp_ns] = playback.aligner.observation_at(stamp_ns, ""), playback.aligner.commands_at(stamp_ns)

        for now_ns in playback.play():
            while waiting and now_ns >= waiting[0] + playback.settled_ns:
                look()
        while waiting:  # nothing more comes
            look()
    return found


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A demonstration of the demo robot: its bag, and what a policy would have seen at the same time."""
    contract = load_contract(CONTRACT)
    recordings = tmp_path_factory.mktemp("recordings")
    listener = Listener("live")
    robot = tool("demo_robot", "--ros-args", "-p", "seed:=3", "-p", "drive:=true", *SMALL_PICTURES)
    with robot, record_tool(recordings):
        live = LiveEars(listener, contract)
        status = listener.listen(DiagnosticStatus, "groot_recorder/status", 10)
        listener.wait_for(
            lambda: status and status[-1].message == "ready", "readiness of the recorder", deadline_s=60.0
        )
        ok, sentence = call(listener, "start")
        assert ok, sentence
        assert "recording episode_000000: reach the target" in sentence
        assert call(listener, "start") == (
            False,
            "episode_000000 is being recorded already: stop or discard it first",
        )
        listener.spin(5.0)
        ok, sentence = call(listener, "stop")
        assert ok, sentence
    listener.close()
    bag = recordings / "episode_000000"
    assert (bag / "metadata.yaml").is_file()
    return bag, live


def test_live_bag_and_dataset_give_the_same_observations_bit_for_bit(recorded, tmp_path):
    contract = load_contract(CONTRACT)
    bag, live = recorded
    root = tmp_path / "reaching"
    settings = ConversionSettings(contract=contract)
    conversion = convert([Cut(bag)], root, settings, encoding=VideoEncoding(codec="lossless"))
    assert not conversion.failed, conversion.reports
    dataset = open_dataset(root)
    rows = {}
    for episode in range(len(dataset.episodes)):
        stamps = dataset.stamps(episode).stamps_ns
        for row, stamp_ns in enumerate(stamps["row"]):
            images = {name: int(values[row]) for name, values in stamps.items()}
            rows[int(stamp_ns)] = (episode, row, images)
    live_seen = {stamp_ns: (observation, commands) for stamp_ns, observation, commands in live.seen}
    from_bag = bag_observations(bag, contract, rows)
    common = [stamp_ns for stamp_ns in rows if stamp_ns in live_seen]
    assert len(common) >= 8, (len(rows), len(live_seen), conversion.reports)
    for stamp_ns in common:
        (observed, commanded), (bagged, bag_commands) = live_seen[stamp_ns], from_bag[stamp_ns]
        episode, row, stamps = rows[stamp_ns]
        assert observed.stamp_ns == bagged.stamp_ns
        assert observed.image_stamps_ns == bagged.image_stamps_ns
        for camera, pictures in observed.images.items():
            assert stamps[f"observation.images.{camera}"] == observed.image_stamps_ns[camera][-1]
            np.testing.assert_array_equal(pictures, bagged.images[camera])
        for group, values in observed.state.items():
            np.testing.assert_array_equal(values, bagged.state[group])
            np.testing.assert_array_equal(values[-1], dataset.state(episode, group)[row])
        for group, values in commanded.items():
            np.testing.assert_array_equal(values, bag_commands[group])
            np.testing.assert_array_equal(values.astype(np.float32), dataset.action(episode, group)[row])
    for stamp_ns in common[:: len(common) // 5]:
        episode, row, _ = rows[stamp_ns]
        for camera, pictures in live_seen[stamp_ns][0].images.items():
            np.testing.assert_array_equal(dataset.frames(episode, camera, [row])[0], pictures[-1])
    assert dataset.instruction(0, 0) == contract.instruction


@pytest.mark.skipif(not LEROBOT, reason="GROOT_LEROBOT_PYTHON names no interpreter with LeRobot")
@pytest.mark.timeout(400)
def test_what_was_recorded_is_read_and_appended_to_by_the_real_lerobot_and_passes_its_doctor(recorded, tmp_path):
    bag, _ = recorded
    root = tmp_path / "reaching"
    conversion = convert([Cut(bag)], root, ConversionSettings(contract=load_contract(CONTRACT)))
    assert not conversion.failed, conversion.reports
    dataset = open_dataset(root)
    lengths = [episode.length for episode in dataset.episodes]
    doctor = Path(LEROBOT).with_name("lerobot-doctor")
    if doctor.exists():
        done = subprocess.run(
            [doctor, root, "--json"], env=other_environment(tmp_path), capture_output=True, check=False
        )
        severities = {check["name"]: check["severity"] for check in json.loads(done.stdout)["checks"]}
        assert "FAIL" not in severities.values(), done.stdout
    seen = peer(tmp_path, "append", root, 1, 10)
    assert seen["lengths"] == [*lengths, 10]
    assert seen["tasks"] == ["reach the target", "appended"]
    for sample in seen["samples"]:
        episode, row = sample["episode"], sample["row"]
        if episode == len(lengths):
            continue
        np.testing.assert_array_equal(sample["state"], dataset.column(episode, "observation.state")[row])
        np.testing.assert_array_equal(sample["action"], dataset.column(episode, "action")[row])
        assert sample["task"] == "reach the target"
        for camera in ("front", "wrist"):
            (frame,) = dataset.frames(episode, camera, [row])
            assert sample["sums"][f"observation.images.{camera}"] == int(frame.astype(np.int64).sum())


def other_environment(folder):
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "_ROS", "LD_"))}
    return environment | {"HF_HUB_OFFLINE": "1", "HF_HOME": str(folder / "hf"), "OMP_NUM_THREADS": "1"}


def peer(folder, *arguments):
    """What the real LeRobot sees."""
    script = ROOT / "test" / "dataset" / "lerobot_peer.py"
    done = subprocess.run(
        [LEROBOT, script, *map(str, arguments)],
        env=other_environment(folder),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.partition("SEEN ")[2])


def test_it_says_why_no_episode_can_begin_and_begins_when_the_stream_is_there(listener, tmp_path):
    with record_tool(tmp_path):
        ok, sentence = call(listener, "start")
        assert not ok
        assert "video.front: no message has come yet on /front/image_raw; is its node running?" in sentence
        assert call(listener, "stop") == (False, "no episode is being recorded, so there is nothing to stop")
        ok, sentence = call(listener, "discard")
        assert not ok
        assert "no episode was recorded since the recorder began" in sentence
    assert list(tmp_path.iterdir()) == []


def test_stopped_by_a_signal_it_finishes_the_episode_and_discarded_ones_are_put_aside(listener, tmp_path):
    instructions = listener.node.create_publisher(String, "groot_recorder/instruction", 10)
    robot = tool("demo_robot", "--ros-args", *SMALL_PICTURES)
    with robot, record_tool(tmp_path, CONTRACT, "--instruction", "first"):
        status = listener.listen(DiagnosticStatus, "groot_recorder/status", 10)
        listener.wait_for(
            lambda: status and status[-1].message == "ready", "readiness of the recorder", deadline_s=60.0
        )
        assert call(listener, "start")[0]
        listener.spin(0.5)
        ok, sentence = call(listener, "discard")
        assert ok
        assert str(tmp_path / "discarded" / "episode_000000") in sentence
        assert call(listener, "start")[0]
        listener.wait_for(instructions.get_subscription_count, "the recorder's ears")
        instructions.publish(String(data="second"))
        listener.wait_for(
            lambda: {v.key: v.value for v in status[-1].values}["instruction"] == "second", "new instruction", 60.0
        )
        listener.spin(0.5)
        figures = {value.key: value.value for value in status[-1].values}
        assert figures["recording"] == "True"
        assert float(figures["/joint_states.rate_hz"]) > 20  # 200 on a machine that has time
    with Bag(tmp_path / "episode_000001") as bag:
        said = [m.message().data for m in bag.messages(["/groot_recorder/instruction"])]
        assert said == ["first", "second"]
        assert bag.counts["/front/image_raw"] > 5
    assert {path.name for path in tmp_path.iterdir()} == {"discarded", "episode_000001"}
    shutil.rmtree(tmp_path / "discarded")


STALL_S = 1.5
FAST_HZ = 400
STALL_CONTRACT = """contract_version: 1
robot: stall
embodiment_tag: new_embodiment
rate_hz: 30
instruction: wait
cameras: {front: {topic: front/image_raw}}
state: {arm: {topic: joint_states, joints: [a]}}
actions: {arm: {meaning: position}}
outputs: {arm: {type: joint_trajectory, topic: arm/joint_trajectory, from: {arm: all}}}
limits: none
record: {arm: {topic: joint_states, joints: [a]}}
"""


class FastRobot:
    """Publishes one joint at 400 Hz and a small camera at 20 Hz from a thread of its own, and keeps every stamp."""

    def __init__(self):
        self.robot = Listener("fast_robot")
        node = self.robot.node
        self.joints = node.create_publisher(JointState, "joint_states", QoSProfile(depth=1000))
        self.camera = node.create_publisher(Image, "front/image_raw", QoSProfile(depth=100))
        self.stamps = {"/joint_states": [], "/front/image_raw": []}
        self.stopping = False
        self.thread = threading.Thread(target=self.publish)
        self.thread.start()

    def publish(self):
        clock = self.robot.node.get_clock()
        picture = Image(height=4, width=4, encoding="mono8", step=4, data=bytes(16))
        joint = JointState(name=["a"], position=[0.0])
        due_s = time.monotonic()
        while not self.stopping:
            self.send("/joint_states", self.joints, joint, clock.now())
            if len(self.stamps["/joint_states"]) % 20 == 0:
                self.send("/front/image_raw", self.camera, picture, clock.now())
            due_s += 1 / FAST_HZ
            time.sleep(max(0.0, due_s - time.monotonic()))

    def send(self, topic, publisher, message, now):
        message.header.stamp = now.to_msg()
        self.stamps[topic].append(now.nanoseconds)
        publisher.publish(message)

    def close(self):
        self.stopping = True
        self.thread.join()
        self.robot.close()


def test_a_recorder_that_is_kept_waiting_loses_nothing_and_keeps_the_times_of_arrival(listener, tmp_path):
    contract = tmp_path / "contract.yaml"
    contract.write_text(STALL_CONTRACT)
    robot = FastRobot()
    recorder = RecorderNode(RecorderOptions(contract, tmp_path), context=listener.context)
    listener.executor.add_node(recorder)
    try:
        listener.wait_for(lambda: recorder.session.obstacle(recorder.now_ns()) is None, "readiness of the recorder")
        recorder.start()
        listener.spin(0.3)
        time.sleep(STALL_S)
        listener.spin(0.3)
        recorder.stop()
    finally:
        listener.executor.remove_node(recorder)
        recorder.destroy_node()
        robot.close()
    with Bag(tmp_path / "episode_000000") as bag:
        for topic, published in robot.stamps.items():
            messages = list(bag.messages([topic]))
            stamps = [header_stamp_ns(message.data) for message in messages]
            span = [stamp for stamp in published if stamps[0] <= stamp <= stamps[-1]]
            assert stamps == span
            assert span[-1] - span[0] > STALL_S * 1e9
            lags_ns = [message.received_ns - stamp for message, stamp in zip(messages, stamps, strict=True)]
            assert np.quantile(lags_ns, 0.9) < STALL_S * 1e9 / 10


class Terminal:
    """A terminal with the recorder in it."""

    def __init__(self, *arguments):
        self.side, inner = pty.openpty()
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 180, 0, 0))
        self.settings = termios.tcgetattr(inner)
        self.inner = inner
        self.text = ""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "groot_ros", "record", *map(str, arguments)],
            cwd=ROOT, stdin=inner, stdout=inner, stderr=inner, env={**os.environ, "TERM": "xterm"},
        )  # fmt: skip

    def wait_for(self, text, deadline_s=60.0):
        end = time.monotonic() + deadline_s
        while time.monotonic() < end:
            self.read()
            if text in self.text:
                self.text = ""
                return
        raise AssertionError(f"no {text!r} on the terminal, but {self.text[-2000:]}")

    def read(self):
        if select.select([self.side], [], [], 0.1)[0]:
            self.text += os.read(self.side, 65536).decode(errors="replace")

    def press(self, key):
        os.write(self.side, key.encode())

    def wait_for_end(self, deadline_s=60.0):
        """Go on reading, as a terminal does, until the recorder has ended."""
        end = time.monotonic() + deadline_s
        while self.process.poll() is None and time.monotonic() < end:
            self.read()
        if self.process.poll() is None:
            self.process.kill()
        self.read()
        return self.process.wait()


def test_the_terminal_shows_the_streams_and_takes_keys(tmp_path):
    terminal = Terminal("--contract", CONTRACT, "--output", tmp_path, "--instruction", "open", "--instruction", "close")
    terminal.wait_for("cannot start: video.front: no message has come yet on /front/image_raw")
    terminal.wait_for("no publisher")
    terminal.press("n")
    terminal.wait_for("instruction: close")
    with tool("demo_robot", "--ros-args", *SMALL_PICTURES):
        terminal.wait_for("ready for episode_000000")
        terminal.press(" ")
        terminal.wait_for("● episode_000000")
        terminal.press("r")
        terminal.wait_for("put aside: ")
        terminal.wait_for("● episode_000001")
        terminal.press("x")
        terminal.wait_for("the key 'x' does nothing")
        terminal.press("q")
        assert terminal.wait_for_end() == 0, terminal.text[-3000:]
    assert termios.tcgetattr(terminal.inner) == terminal.settings
    assert (tmp_path / "episode_000001" / "metadata.yaml").is_file()
    assert [path.name for path in (tmp_path / "discarded").iterdir()] == ["episode_000000.recording"]
