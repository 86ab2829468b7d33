"""The recorder under load: 3 raw cameras of 640x480 at 30 Hz and joint states at 500 Hz, over DDS, into a bag.

    python -m benchmarks.recording --seconds 60

Counts every message that was published against those in the bag, and takes CPU time and memory of the recorder's
process from /proc. Before that, two subscribers that do nothing hear the same streams, which tells what rclpy costs:
one is spun by an executor, one read 50 times a second as the recorder reads. An episode is recorded and put aside
first, so that memory and disk are warm. Needs rclpy; run it on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import array
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
CAMERAS, CAMERA_HZ, JOINT_HZ = ("front", "left", "wrist"), 30, 500
JOINTS = ["a", "b", "c", "d", "e", "f", "g"]
CONTRACT = """contract_version: 1
robot: benchmark
embodiment_tag: new_embodiment
rate_hz: 30
instruction: measure
cameras: {front: {topic: front/image_raw}, left: {topic: left/image_raw}, wrist: {topic: wrist/image_raw}}
state: {arm: {topic: joint_states, joints: [a, b, c, d, e, f, g]}}
actions: {arm: {meaning: position}}
outputs: {arm: {type: joint_trajectory, topic: arm/joint_trajectory, from: {arm: all}}}
limits: none
record: {arm: {topic: joint_states, joints: [a, b, c, d, e, f, g]}}
"""
SETTLE_S = 10.0
WARM_UP_S = 10.0
LISTEN_WARM_UP_S, LISTEN_S = 3.0, 10.0
LISTENERS = ("executor", "polled")


def publish(what: str, file: Path, reliable: bool) -> None:
    """Publish until SIGTERM, and write down every stamp."""
    import rclpy
    from rclpy.qos import QoSProfile, ReliabilityPolicy
    from sensor_msgs.msg import Image, JointState

    rclpy.init(signal_handler_options=rclpy.signals.SignalHandlerOptions.NO)
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    node = rclpy.create_node(f"benchmark_{what}", start_parameter_services=False, enable_rosout=False)
    qos = QoSProfile(
        depth=1000 if what == "joints" else 10,
        reliability=ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT,
    )
    if what == "joints":
        topics, kind, rate_hz = ["joint_states"], JointState, JOINT_HZ
        messages = [JointState(name=JOINTS, position=[0.0] * len(JOINTS))]
    else:
        topics, kind, rate_hz = [f"{camera}/image_raw" for camera in CAMERAS], Image, CAMERA_HZ
        pixels = np.random.default_rng(0).integers(0, 256, 480 * 640 * 3, dtype=np.uint8)
        messages = [Image(height=480, width=640, encoding="rgb8", step=1920) for _ in CAMERAS]
        for message in messages:
            message.data = array.array("B", pixels.tobytes())
    publishers = [node.create_publisher(kind, topic, qos) for topic in topics]
    stamps: dict[str, list[int]] = {topic: [] for topic in topics}
    due_s = time.monotonic()
    while not stopping.is_set():
        for topic, publisher, message in zip(topics, publishers, messages, strict=True):
            now = node.get_clock().now()
            message.header.stamp = now.to_msg()
            publisher.publish(message)
            stamps[topic].append(now.nanoseconds)
        now_s = time.monotonic()
        due_s = max(due_s + 1 / rate_hz, now_s)  # a camera that was late does not send faster afterwards
        time.sleep(due_s - now_s)
    file.write_text(json.dumps(stamps))
    node.destroy_node()
    rclpy.try_shutdown()


def listen(how: str, file: Path) -> None:
    """Hear everything, do nothing, and write down what it cost."""
    import rclpy
    from rclpy.executors import SingleThreadedExecutor
    from rclpy.qos import QoSProfile
    from sensor_msgs.msg import Image, JointState

    from groot_ros.nodes.memory import keep_freed_memory

    keep_freed_memory()
    rclpy.init()
    node = rclpy.create_node("benchmark_listener", start_parameter_services=False, enable_rosout=False)
    heard = 0

    def hear(_data: bytes) -> None:
        nonlocal heard
        heard += 1

    topics = {f"{camera}/image_raw": (Image, 60) for camera in CAMERAS} | {"joint_states": (JointState, 5000)}
    subscriptions = [
        node.create_subscription(kind, topic, hear, QoSProfile(depth=depth), raw=True)
        for topic, (kind, depth) in topics.items()
    ]
    executor = SingleThreadedExecutor()
    if how == "executor":
        executor.add_node(node)

    def turn() -> None:
        if how == "executor":
            executor.spin_once(timeout_sec=0.1)
            return
        for subscription in subscriptions:
            with subscription.handle:
                while (taken := subscription.handle.take_message(subscription.msg_type, True)) is not None:
                    hear(taken[0])
        time.sleep(0.02)

    def run(seconds: float) -> tuple[float, float]:
        begun_s, begun_cpu_s, begun = time.monotonic(), cpu_s(os.getpid()), heard
        while time.monotonic() < begun_s + seconds:
            turn()
        passed_s = time.monotonic() - begun_s
        return (cpu_s(os.getpid()) - begun_cpu_s) / passed_s, (heard - begun) / passed_s

    run(LISTEN_WARM_UP_S)
    file.write_text(json.dumps(run(LISTEN_S)))
    executor.shutdown()
    node.destroy_node()
    rclpy.try_shutdown()


def cpu_s(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_mb(process: int) -> float:
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def service(node: object, name: str) -> str:
    """Call a Trigger of the recorder; try again while it is not ready."""
    import rclpy
    from std_srvs.srv import Trigger

    client = node.create_client(Trigger, f"groot_recorder/{name}")
    deadline = time.monotonic() + 30
    while True:
        if client.wait_for_service(1.0):
            future = client.call_async(Trigger.Request())
            rclpy.spin_until_future_complete(node, future)
            answer = future.result()
            if answer.success or time.monotonic() > deadline:
                return answer.message
        time.sleep(0.5)


def lost(bag_path: Path, published: dict[str, list[int]]) -> dict[str, tuple[int, int]]:
    """By topic: messages that are missing between the first and the last in the bag, and messages in the bag."""
    from groot_ros.dataset.bag import Bag
    from groot_ros.recording.stream_watch import header_stamp_ns

    found: dict[str, set[int]] = {topic: set() for topic in published}
    with Bag(bag_path) as bag:
        for message in bag.messages([f"/{topic}" for topic in published]):
            found[message.topic.lstrip("/")].add(header_stamp_ns(message.data))
    result = {}
    for topic, stamps in published.items():
        first, last = min(found[topic]), max(found[topic])
        result[topic] = (
            sum(first <= stamp <= last and stamp not in found[topic] for stamp in stamps),
            len(found[topic]),
        )
    return result


def measure(seconds: float, folder: Path, reliable: bool) -> None:
    import rclpy

    contract = folder / "contract.yaml"
    contract.write_text(CONTRACT)
    python = [sys.executable, "-m", "benchmarks.recording"]
    options = ["--reliable"] if reliable else []
    publishers = [
        subprocess.Popen([*python, "--publish", what, "--file", str(folder / f"{what}.json"), *options], cwd=ROOT)
        for what in ("cameras", "joints")
    ]
    sent = CAMERA_HZ * len(CAMERAS) + JOINT_HZ
    for how in LISTENERS:
        file = folder / "listener.json"
        subprocess.run([*python, "--listen", how, "--file", str(file)], cwd=ROOT, check=True)
        listener_share, rate_hz = json.loads(file.read_text())
        print(f"a subscriber that does nothing, {how}: {100 * listener_share:.0f} % of a core, "
              f"{rate_hz:.0f} of {sent} messages a second", flush=True)  # fmt: skip
    recorder = subprocess.Popen(
        [sys.executable, "-m", "groot_ros", "record", "--contract", str(contract), "--output", str(folder / "bags"),
         "--no-view"], cwd=ROOT,
    )  # fmt: skip
    rclpy.init()
    node = rclpy.create_node("benchmark", start_parameter_services=False, enable_rosout=False)
    try:
        service(node, "start")
        time.sleep(WARM_UP_S)
        service(node, "discard")
        print(service(node, "start"))
        processes = {"recorder": recorder, "publisher of cameras": publishers[0], "publisher of joints": publishers[1]}
        begun_s, memory = time.monotonic(), []
        begun_cpu_s = {name: cpu_s(process.pid) for name, process in processes.items()}
        while time.monotonic() < begun_s + seconds:
            time.sleep(0.5)
            memory.append((time.monotonic() - begun_s, memory_mb(recorder.pid)))
        passed_s = time.monotonic() - begun_s
        shares = {name: (cpu_s(one.pid) - begun_cpu_s[name]) / passed_s for name, one in processes.items()}
        print(service(node, "stop"))
    finally:
        for process in (recorder, *publishers):
            process.terminate()
        for process in (recorder, *publishers):
            process.wait(timeout=30)
        node.destroy_node()
        rclpy.try_shutdown()
    published = {}
    for what in ("cameras", "joints"):
        published |= json.loads((folder / f"{what}.json").read_text())
    (bag,) = (folder / "bags").glob("episode_*")
    for topic, (missing, count) in lost(bag, published).items():
        print(f"{topic:18} {count:6} recorded, {missing} lost")
    settled = next(value for at_s, value in memory if at_s >= min(SETTLE_S, seconds / 2))
    for name, share in shares.items():
        print(f"CPU of the {name}: {100 * share:.0f} % of a core")
    print(f"memory: {memory[-1][1]:.0f} MB at the end, {memory[-1][1] - settled:+.0f} MB since the first 10 s")
    print(f"load average of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--folder", type=Path, help="where the bag goes (6 GB a minute); default: a temporary folder")
    parser.add_argument("--reliable", action="store_true", help="publishers that send lost messages again")
    parser.add_argument("--publish", choices=("cameras", "joints"), help=argparse.SUPPRESS)
    parser.add_argument("--listen", choices=LISTENERS, help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.publish:
        publish(options.publish, options.file, options.reliable)
        return
    if options.listen:
        listen(options.listen, options.file)
        return
    os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    os.environ.setdefault("FASTDDS_DEFAULT_PROFILES_FILE", str(ROOT / "config" / "fastdds_shared_memory.xml"))
    os.environ.setdefault("ROS_DOMAIN_ID", str(1 + os.getpid() % 100))
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        os.environ.setdefault("ROS_LOG_DIR", folder)
        measure(options.seconds, Path(folder), options.reliable)


if __name__ == "__main__":
    main()
