"""What listening costs the policy node: three cameras and fast joint states, beside a bare subscriber in the same run.

    python benchmarks/ingest.py [--seconds 10] [--rounds 3] [--output build/ingest.json]

One process publishes 3 cameras of 640x480 rgb8 at 30 Hz and joint states at 500 Hz, with the shipped transport profile.
Then, in turns, a process receives them: a bare subscriber (a plain rclpy node with the same typed subscriptions and
rclpy's usual services, spun by ``executor.spin()``, whose callbacks only look at the stamps), the policy node with
inference paused (active, motion disabled, no keep-warm), and the policy node with its model computing without a pause.
Each process measures itself over the same time: CPU by its own clock, the delay of every callback from the stamp of its
message, and messages lost by their numbers. The figures are the medians over the rounds.

Passes when nothing is lost, the paused node's CPU and delay p95 are at most 1.3 times the bare subscriber's, and with
the model computing no callback is later than 50 ms.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from array import array
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import yaml

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

CAMERAS = ("front", "left", "right")
JOINTS = ("shoulder", "elbow", "gripper")
CAMERA_RATE_HZ, STATE_RATE_HZ = 30, 500
WIDTH, HEIGHT = 640, 480
SETTLE_S = 2.0
MOST_CPU_RATIO = MOST_DELAY_RATIO = 1.3
LATEST_CALLBACK_MS = 50.0
DEADLINE_S = 60.0
RECEIVERS = ("bare", "paused", "computing")
NAMESPACE = ["--ros-args", "-r", "__ns:=/ingest_benchmark"]
"""Apart from whatever else speaks on this machine."""

CONTRACT: dict[str, Any] = {
    "contract_version": 1,
    "robot": "benchmark",
    "embodiment_tag": "new_embodiment",
    "rate_hz": 30,
    "instruction": "move the gripper to the target",
    "cameras": {camera: {"topic": f"{camera}/image_raw", "rate_hz": CAMERA_RATE_HZ} for camera in CAMERAS},
    "state": {
        "single_arm": {"topic": "joint_states", "joints": list(JOINTS[:2])},
        "gripper": {"topic": "joint_states", "joints": list(JOINTS[2:])},
    },
    "actions": {"single_arm": {"meaning": "unused"}, "gripper": {"meaning": "unused"}},
    "limits": "none",
    "motion": {"execution_horizon": 1},  # the next inference is due at once
}


class Meter:
    """Counts messages and the delays of their callbacks over one window."""

    def __init__(self) -> None:
        self._numbers: dict[str, list[int]] = defaultdict(list)
        self._delays_ms: dict[str, list[float]] = defaultdict(list)
        self._cpu_s = self._start_s = 0.0
        self.is_open = False

    def note(self, stream: str, message: Any, now_ns: int) -> None:
        """Note a message at the beginning of its callback."""
        if not self.is_open:
            return
        stamp = message.header.stamp
        self._numbers[stream].append(int(message.header.frame_id))
        self._delays_ms[stream].append((now_ns - stamp.sec * 1_000_000_000 - stamp.nanosec) / 1e6)

    def open(self) -> None:
        """Begin the window."""
        self._cpu_s, self._start_s, self.is_open = time.process_time(), time.monotonic(), True

    def close(self) -> dict[str, Any]:
        """End the window and give its figures."""
        self.is_open = False
        seconds = time.monotonic() - self._start_s
        cpu = (time.process_time() - self._cpu_s) / seconds
        delays = np.concatenate([np.array(values) for values in self._delays_ms.values()])
        lost = {stream: numbers[-1] - numbers[0] + 1 - len(numbers) for stream, numbers in self._numbers.items()}
        received = sum(len(numbers) for numbers in self._numbers.values())
        return {
            "cpu_percent": 100 * cpu,
            "cpu_us_per_message": 1e6 * cpu * seconds / received,
            "load": os.getloadavg()[0],
            "delay_p50_ms": float(np.percentile(delays, 50)),
            "delay_p95_ms": float(np.percentile(delays, 95)),
            "delay_max_ms": float(delays.max()),
            "image_p95_ms": float(np.percentile(np.concatenate([self._delays_ms[name] for name in CAMERAS]), 95)),
            "received": {stream: len(numbers) for stream, numbers in self._numbers.items()},
            "lost": sum(lost.values()),
            "lost_by_stream": lost,
        }


def publish() -> None:
    """The robot: publishes until it is stopped."""
    import rclpy
    from rclpy.qos import qos_profile_sensor_data
    from rclpy.signals import SignalHandlerOptions
    from sensor_msgs.msg import Image, JointState

    rclpy.init(args=NAMESPACE, signal_handler_options=SignalHandlerOptions.NO)  # a signal ends it at once
    node = rclpy.create_node("robot", start_parameter_services=False)
    pictures = {}
    for camera in CAMERAS:
        message = Image(height=HEIGHT, width=WIDTH, encoding="rgb8", step=3 * WIDTH)
        message.data = array("B", np.random.default_rng(1).integers(0, 256, 3 * WIDTH * HEIGHT, np.uint8).tobytes())
        pictures[camera] = (node.create_publisher(Image, f"{camera}/image_raw", qos_profile_sensor_data), message)
    states = node.create_publisher(JointState, "joint_states", qos_profile_sensor_data)
    numbers: dict[str, int] = defaultdict(int)

    def send(stream: str, publisher: Any, message: Any) -> None:
        message.header.frame_id = str(numbers[stream])
        message.header.stamp = node.get_clock().now().to_msg()
        publisher.publish(message)
        numbers[stream] += 1

    state = JointState(name=list(JOINTS), position=[0.1, 0.2, 0.3])
    start, turn = time.monotonic(), 0
    while rclpy.ok():
        send("joint_states", states, state)
        for index, camera in enumerate(CAMERAS):
            wanted = int((time.monotonic() - start) * CAMERA_RATE_HZ + index / len(CAMERAS))
            if numbers[camera] < wanted:
                send(camera, *pictures[camera])
        turn += 1
        time.sleep(max(start + turn / STATE_RATE_HZ - time.monotonic(), 0.0))


def receive_bare(meter: Meter) -> Any:
    """A node with the same subscriptions and callbacks that only count."""
    from rclpy.node import Node
    from rclpy.qos import qos_profile_sensor_data
    from sensor_msgs.msg import Image, JointState

    from groot_ros.nodes.quality import STATE_DEPTH

    node = Node("bare")
    clock = node.get_clock()
    for camera in CAMERAS:
        node.create_subscription(
            Image,
            f"{camera}/image_raw",
            lambda message, camera=camera: meter.note(camera, message, clock.now().nanoseconds),
            qos_profile_sensor_data,
        )
    from rclpy.qos import QoSProfile, ReliabilityPolicy

    qos = QoSProfile(depth=STATE_DEPTH, reliability=ReliabilityPolicy.BEST_EFFORT)
    node.create_subscription(
        JointState, "joint_states", lambda message: meter.note("joint_states", message, clock.now().nanoseconds), qos
    )
    return node


def receive_policy(meter: Meter, folder: Path, *, computing: bool) -> Any:
    """The policy node, whose subscription callbacks are noted before they do their work."""
    from rclpy.parameter import Parameter

    from groot_ros.nodes.memory import keep_freed_memory
    from groot_ros.nodes.policy_ingest import Ingest
    from groot_ros.nodes.policy_node import PolicyNode

    make_callback = Ingest._callback

    def noted_callback(self: Any, topic: Any) -> Any:
        receive = make_callback(self, topic)
        stream, clock = topic.name.split("/")[0], self._clock

        def noted(message: Any) -> None:
            meter.note(stream, message, clock.now().nanoseconds)
            receive(message)

        return noted

    Ingest._callback = noted_callback
    keep_freed_memory()  # as `run_node` does for every node of ours
    values = {
        "checkpoint": str(folder / "checkpoint"),
        "contract": str(folder / "contract.yaml"),
        "device": "cpu",
        "dry_run": computing,
        "keep_warm_period_s": 0.0,
    }
    node = PolicyNode(parameter_overrides=[Parameter(name, value=value) for name, value in values.items()])
    node.trigger_configure()
    node.trigger_activate()
    if node.session is None:
        msg = "the policy node could not be configured"
        raise RuntimeError(msg)
    return node


def receive(kind: str, folder: Path, seconds: float) -> None:
    """One receiver, alone in its process: settles, measures itself, prints its figures."""
    import rclpy
    from rclpy.executors import SingleThreadedExecutor

    rclpy.init(args=NAMESPACE)
    meter = Meter()
    node = receive_bare(meter) if kind == "bare" else receive_policy(meter, folder, computing=kind == "computing")
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    spinning = threading.Thread(target=executor.spin, daemon=True)
    spinning.start()
    deadline = time.monotonic() + DEADLINE_S
    meter.is_open = True
    while len(meter._numbers) < len(CAMERAS) + 1:  # until every stream is heard
        time.sleep(0.1)
        if time.monotonic() > deadline:
            sys.exit("not every stream is heard")
    meter.is_open = False
    time.sleep(SETTLE_S)
    meter._numbers.clear()
    meter._delays_ms.clear()
    meter.open()
    time.sleep(seconds)
    figures = meter.close()
    executor.create_task(executor.shutdown)  # in the thread that spins
    spinning.join()
    if kind != "bare":
        figures["chunks"] = node.session._ledger.chunks
        node.stop()
    print(json.dumps(figures))
    node.destroy_node()
    rclpy.try_shutdown()


def measure(seconds: float, rounds: int) -> dict[str, Any]:
    """Run all receivers in turns against one robot."""
    from groot_ros.checkpoint import write_tiny_checkpoint

    environment = {
        **os.environ,
        "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
        "ROS_DOMAIN_ID": str(1 + os.getpid() % 100),
        "FASTDDS_DEFAULT_PROFILES_FILE": str(ROOT / "config" / "fastdds_shared_memory.xml"),
        "FASTRTPS_DEFAULT_PROFILES_FILE": str(ROOT / "config" / "fastdds_shared_memory.xml"),
    }
    found: dict[str, list[dict[str, Any]]] = {kind: [] for kind in RECEIVERS}
    with tempfile.TemporaryDirectory() as folder:
        environment["ROS_LOG_DIR"] = folder
        write_tiny_checkpoint(Path(folder) / "checkpoint", cameras=CAMERAS)
        (Path(folder) / "contract.yaml").write_text(yaml.safe_dump(CONTRACT, sort_keys=False))
        robot = subprocess.Popen([sys.executable, __file__, "--role", "robot"], env=environment)
        try:
            for turn in range(rounds):
                for kind in RECEIVERS:
                    command = [sys.executable, __file__, "--role", kind, "--folder", folder, "--seconds", str(seconds)]
                    done = subprocess.run(
                        command, env=environment, check=True, stdout=subprocess.PIPE, text=True, timeout=2 * DEADLINE_S
                    )
                    figures = json.loads(done.stdout.strip().splitlines()[-1])
                    found[kind].append(figures)
                    print(f"round {turn + 1} {kind:<10}{line(figures)}", flush=True)
        finally:
            robot.terminate()
            robot.wait(10)
    return {"receivers": {kind: medians(values) for kind, values in found.items()}, "rounds": found}


def medians(values: list[dict[str, Any]]) -> dict[str, float]:
    """Medians of the figures over the rounds; of losses and the latest callback the worst."""
    names = [name for name, value in values[0].items() if isinstance(value, int | float)]
    worst = {"lost", "delay_max_ms"}
    return {
        name: max(value[name] for value in values) if name in worst else statistics.median(v[name] for v in values)
        for name in names
    }


def line(figures: dict[str, Any]) -> str:
    """Figures in one line."""
    text = (
        f"load {figures['load']:4.1f}  CPU {figures['cpu_percent']:5.1f} % ({figures['cpu_us_per_message']:4.0f} us a "
        f"message)  delay p50 {figures['delay_p50_ms']:6.2f}  p95 "
        f"{figures['delay_p95_ms']:6.2f}  max {figures['delay_max_ms']:6.1f} ms  lost {figures['lost']:.0f}"
    )
    return text + (f"  chunks {figures['chunks']:.0f}" if "chunks" in figures else "")


def verdicts(result: dict[str, Any]) -> list[tuple[bool, str]]:
    """What must hold, and whether it does."""
    bare, paused, computing = (result["receivers"][kind] for kind in RECEIVERS)
    cpu = paused["cpu_percent"] / bare["cpu_percent"]
    delay = paused["delay_p95_ms"] / bare["delay_p95_ms"]
    return [
        (paused["lost"] == 0, f"paused: {paused['lost']:.0f} messages lost, wanted 0"),
        (cpu <= MOST_CPU_RATIO, f"paused: CPU {cpu:.2f} times the bare subscriber's, wanted {MOST_CPU_RATIO} at most"),
        (delay <= MOST_DELAY_RATIO, f"paused: delay p95 {delay:.2f} times, wanted {MOST_DELAY_RATIO} at most"),
        (computing["lost"] == 0, f"computing: {computing['lost']:.0f} messages lost, wanted 0"),
        (
            computing["delay_max_ms"] <= LATEST_CALLBACK_MS,
            f"computing: latest callback {computing['delay_max_ms']:.1f} ms, wanted {LATEST_CALLBACK_MS:.0f} at most",
        ),
    ]


def main() -> int:
    """Measure, print, and say whether it passes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10.0, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--output", type=Path, help="JSON file for all figures")
    parser.add_argument("--role", choices=("robot", *RECEIVERS), help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.role == "robot":
        publish()
        return 0
    if arguments.role is not None:
        receive(arguments.role, arguments.folder, arguments.seconds)
        return 0
    result = measure(arguments.seconds, arguments.rounds)
    if arguments.output is not None:
        arguments.output.parent.mkdir(parents=True, exist_ok=True)
        arguments.output.write_text(json.dumps(result, indent=2))
    print()
    for kind in RECEIVERS:
        print(f"{kind:<10}{line(result['receivers'][kind])}")
    outcomes = verdicts(result)
    for holds, sentence in outcomes:
        print(("passes  " if holds else "FAILS   ") + sentence)
    return 0 if all(holds for holds, _ in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
