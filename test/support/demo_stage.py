"""Demo robot, swinging policy and watchdog, each a process of its own, so that each can be killed; and ears for all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
import yaml
from diagnostic_msgs.msg import DiagnosticArray
from lifecycle_msgs.srv import ChangeState
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool
from trajectory_msgs.msg import JointTrajectory

from groot_ros.checkpoint import write_tiny_checkpoint
from support.ros import ROOT, stamps_ns
from support.swinging_policy import SPEED

DEADLINE_S = 60.0
REST_RAD_S = 0.01
COMMANDS = "arm_controller/joint_trajectory"
LAG_S = 0.02
"""A stiff arm: what is measured is what was commanded, and not the arm's own lag."""
TOOL = [sys.executable, "-m", "groot_ros"]
SMALL = ["-p", "width:=64", "-p", "height:=48"]


class Delays:
    """How long this machine lets a thread wait that wants to run: what no program on it can do anything about."""

    def __init__(self) -> None:
        self.found: list[tuple[int, float]] = []
        self._stopping = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopping:
            start = time.monotonic()
            time.sleep(0.005)
            self.found.append((time.time_ns(), time.monotonic() - start - 0.005))

    def worst_s(self, start_ns: int, end_ns: int) -> float:
        return max((delay for time_ns, delay in self.found if start_ns <= time_ns <= end_ns + 50_000_000), default=0.0)

    def close(self) -> None:
        self._stopping = True
        self._thread.join()


class DemoStage:
    """Starts what is not running, hears everything, and relays the joint states to the policy as a driver would.

    Args:
        folder: For the checkpoint, the contract and the logs.

    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.checkpoint = write_tiny_checkpoint(folder / "checkpoint")
        written = yaml.safe_load((ROOT / "config" / "robots" / "demo.yaml").read_text())
        for source in written["state"].values():
            source["topic"] = "driver/joint_states"
        written["motion"]["start_ramp_s"] = 0.8
        self.motion = written["motion"]
        self.contract = folder / "contract.yaml"
        self.contract.write_text(yaml.safe_dump(written, sort_keys=False))

        self.context = Context()
        rclpy.init(context=self.context)
        self.node = Node("stage", context=self.context)
        self.executor = SingleThreadedExecutor(context=self.context)
        self.executor.add_node(self.node)
        self.states: list[JointState] = []
        self.commands: list[tuple[int, JointTrajectory]] = []
        self.diagnostics: list[DiagnosticArray] = []
        self.relay = "relays"
        self._driver = self.node.create_publisher(JointState, "driver/joint_states", qos_profile_sensor_data)
        self.node.create_subscription(JointState, "joint_states", self._on_state, qos_profile_sensor_data)
        self.node.create_subscription(JointTrajectory, COMMANDS, self._on_command, 50)
        self.node.create_subscription(DiagnosticArray, "/diagnostics", self.diagnostics.append, 50)
        self.delays = Delays()
        self._stopping = False
        self._thread = threading.Thread(target=self._spin)
        self._thread.start()

    def _spin(self) -> None:
        while not self._stopping:
            self.executor.spin_once(timeout_sec=0.05)

    def _on_state(self, message: JointState) -> None:
        self.states.append(message)
        if self.relay == "relays":
            self._driver.publish(message)
        elif self.relay == "repeats":
            self._driver.publish(self._frozen)

    def _on_command(self, message: JointTrajectory) -> None:
        self.commands.append((time.time_ns(), message))

    def freeze(self, *, silent: bool) -> None:
        """Let the driver say nothing more, or its last message again and again."""
        self._frozen = self.states[-1]
        self.relay = "is silent" if silent else "repeats"

    def start(self, name: str) -> None:
        """Start a process unless it runs."""
        if name in self.processes and self.processes[name].poll() is None:
            return
        policy = [f"checkpoint:={self.checkpoint}", f"contract:={self.contract}", "dry_run:=false", "autostart:=true"]
        command = {
            "arm": [*TOOL, "demo_robot", "arm", "--ros-args", "-p", f"lag_s:={LAG_S}"],
            "cameras": [*TOOL, "demo_robot", "cameras", "--ros-args", *SMALL],
            "watchdog": [*TOOL, "watchdog", "--ros-args", "-p", f"contract:={self.contract}"],
            "policy": [
                *[sys.executable, str(Path(__file__).parent / "swinging_policy.py"), "--ros-args"],
                *[word for assignment in policy for word in ("-p", assignment)],
            ],
        }[name]
        paths = os.pathsep.join([str(ROOT), str(ROOT / "test")])
        environment = {**os.environ, "SWING_FAULTS": str(self.folder), "PYTHONPATH": paths}
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log)

    def send(self, name: str, number: int) -> int:
        """Send a signal to a process; the time of it."""
        self.processes[name].send_signal(number)
        return time.time_ns()

    def move(self) -> None:
        """Bring everything up, mend every fault, and wait until the arm swings at its even speed."""
        self.relay = "relays"
        (self.folder / "hang").unlink(missing_ok=True)
        for name in ("arm", "cameras", "watchdog", "policy"):
            self.start(name)
        self.states.clear()
        self.diagnostics.clear()
        end = time.monotonic() + DEADLINE_S
        while not self.swings():
            if time.monotonic() > end:
                raise AssertionError(f"the arm does not swing after {DEADLINE_S} s; {self.last_words()}")
            for name, process in self.processes.items():
                assert process.poll() is None, f"{name} ended with {process.returncode}; {self.last_words()}"
            if not self.is_enabled() and self.part("groot_policy: observation") == "observations are complete":
                self.enable(on=True)
            time.sleep(0.1)

    def swings(self) -> bool:
        """Whether the measured speed has been the swing's for a fifth of a second."""
        latest = self.states[-40:]
        speeds = [np.linalg.norm(message.velocity[:2]) for message in latest]
        return len(speeds) == 40 and bool(np.all(np.abs(np.array(speeds) - SPEED) < 0.5 * SPEED))

    def part(self, name: str) -> str | None:
        """The newest message of a part of the diagnostics."""
        found = [status.message for message in self.diagnostics for status in message.status if status.name == name]
        return found[-1] if found else None

    def values(self, name: str) -> dict[str, str]:
        """The newest values of a part of the diagnostics; empty while none have come."""
        found = [status.values for message in self.diagnostics for status in message.status if name in status.name]
        return {value.key: value.value for value in found[-1]} if found else {}

    def is_enabled(self) -> bool:
        return self.values("groot_policy: node").get("enabled") == "true"

    def enable(self, *, on: bool) -> Any:
        return self.call(SetBool, "/groot_policy/enable", SetBool.Request(data=on))

    def transition(self, number: int) -> None:
        request = ChangeState.Request()
        request.transition.id = number
        assert self.call(ChangeState, "/groot_policy/change_state", request).success

    def call(self, service_type: type, name: str, request: Any) -> Any:
        client = self.node.create_client(service_type, name)
        self.wait_for(client.service_is_ready, f"service {name}")
        future = client.call_async(request)
        self.wait_for(future.done, f"answer of {name}")
        return future.result()

    def wait_for(self, condition: Callable[[], Any], what: str, deadline_s: float = DEADLINE_S) -> Any:
        end = time.monotonic() + deadline_s
        while time.monotonic() < end:
            if result := condition():
                return result
            time.sleep(0.01)
        raise AssertionError(f"after {deadline_s} s there is still no {what}; {self.last_words()}")

    def came_to_rest_ns(self, since_ns: int, watch_s: float = 1.5) -> int:
        """When the arm was last measured in motion after a moment, by the stamps of its joint states."""
        end_ns = since_ns + round(watch_s * 1e9)
        self.wait_for(lambda: self.states and stamps_ns(self.states[-1:])[0] > end_ns, "joint states")
        states = list(self.states)
        seen = [pair for pair in zip(stamps_ns(states), states, strict=True) if pair[0] > since_ns]
        moving = [stamp for stamp, message in seen if np.max(np.abs(message.velocity)) > REST_RAD_S]
        assert seen[-1][0] not in moving, f"the arm still moves {watch_s} s after the fault; {self.last_words()}"
        return max(moving, default=since_ns)

    def rejected(self) -> str:
        """What the controller has rejected; empty where nothing."""
        values = self.values("demo_robot: arm_controller")
        return values.get("last rejection", "the controller says nothing")

    def last_words(self) -> str:
        """The end of every log."""
        logs = {name: (self.folder / f"{name}.log").read_text(errors="replace") for name in self.processes}
        return "\n".join(f"--- {name}\n" + "\n".join(log.splitlines()[-12:]) for name, log in logs.items())

    def close(self) -> None:
        for process in self.processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.terminate()
        end = time.monotonic() + 10.0
        while time.monotonic() < end and any(process.poll() is None for process in self.processes.values()):
            time.sleep(0.05)
        for process in self.processes.values():
            process.kill()
            process.wait()
        self.delays.close()
        self._stopping = True
        self._thread.join()
        self.executor.shutdown()
        self.node.destroy_node()
        rclpy.shutdown(context=self.context)


@contextmanager
def demo_stage(folder: Path) -> Iterator[DemoStage]:
    stage = DemoStage(folder)
    try:
        yield stage
    finally:
        stage.close()
