"""The demo robot and a policy in one process and in simulated time: trials that take less than they last."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np

from groot_ros.contract import Contract
from groot_ros.demo.arm import demo_arm
from groot_ros.demo.episode import draw_episode
from groot_ros.demo.scene import VIEWS, Scene
from groot_ros.demo.simulation import ArmSimulation
from groot_ros.demo.trajectory_controller import TrajectoryController
from groot_ros.demo.trajectory_rules import JointTrajectoryRules
from groot_ros.demo.trials import ReachJudge, Trial
from groot_ros.execution.commands import TrajectoryCommand
from groot_ros.execution.executor import Executor
from groot_ros.observation import Observation
from groot_ros.policy import GrootPolicy

TICK_NS = 5_000_000
FRAME_TICKS, COMMAND_TICKS = 7, 4
LATENCY_NS = 60_000_000
EDGE_PX = 128


def trial(
    policy: GrootPolicy, contract: Contract, seed: int, *, shown: int | None = None, limit_s: float = 6.0
) -> Trial:
    """One trial; ``shown`` is the seed of the target that the cameras show, where it is another one."""
    return _Stage(policy, contract, seed, seed if shown is None else shown).run(limit_s)


@dataclass
class _Stage:
    policy: GrootPolicy
    contract: Contract
    seed: int
    shown: int

    def __post_init__(self) -> None:
        self.arm = demo_arm()
        episode = draw_episode(self.arm, self.seed)
        self.target, self.shown_target = episode.target, draw_episode(self.arm, self.shown).target
        self.scenes = {name: Scene(self.arm, view, EDGE_PX, EDGE_PX) for name, view in VIEWS.items()}
        self.simulation = ArmSimulation(self.arm, episode.start)
        self.controller = TrajectoryController(JointTrajectoryRules(self.arm.names), episode.start)
        self.executor = Executor(self.contract, horizon=self.policy.horizon)

    def run(self, limit_s: float) -> Trial:
        begin = now = 1_000_000_000_000_000_000
        judge = ReachJudge(self.arm, self.target, begin)
        flight, tick = None, 0
        while now - begin < limit_s * 1e9 and judge.reached_after_s is None:
            self.simulation.step(self.controller.command(now)[0], TICK_NS / 1e9)
            if tick % FRAME_TICKS == 0:
                observation = self.observe(now)
                self.executor.observe(observation.state, now, now)
            if flight is None and self.executor.inference_due(now):
                inference = self.executor.begin_inference(observation.stamp_ns, now)
                flight = now + LATENCY_NS, inference, self.policy.predict(observation, inference.prefix, seed=tick)
            if flight is not None and now >= flight[0]:
                acceptance = self.executor.accept(self.policy.rollout(flight[2]), flight[1], now)
                assert acceptance.refusal is None, acceptance.sentence
                flight = None
            if tick % COMMAND_TICKS == 0:
                for command in self.executor.commands(now):
                    rejection = self.controller.receive(_message(command), now)
                    assert rejection is None, rejection
            judge.hear(now, self.simulation.positions)
            now, tick = now + TICK_NS, tick + 1
        return judge.trial(self.seed)

    def observe(self, now_ns: int) -> Observation:
        frames = {}
        for name, scene in self.scenes.items():
            frames[name] = np.empty((1, EDGE_PX, EDGE_PX, 3), np.uint8)
            scene.draw(self.simulation.positions, self.shown_target, frames[name][0])
        positions = self.simulation.positions.astype(np.float32)[None]
        return Observation(
            images=frames,
            state={"single_arm": positions[:, :2], "gripper": positions[:, 2:]},
            instruction=self.contract.instruction,
            stamp_ns=now_ns,
            image_stamps_ns=dict.fromkeys(frames, (now_ns,)),
        )


def _message(command: TrajectoryCommand) -> SimpleNamespace:
    points = [
        SimpleNamespace(
            positions=positions.tolist(),
            velocities=velocities.tolist(),
            accelerations=[],
            effort=[],
            time_from_start=_time(offset_ns),
        )
        for positions, velocities, offset_ns in zip(
            command.positions, command.velocities, command.offsets_ns, strict=True
        )
    ]
    header = SimpleNamespace(stamp=_time(command.stamp_ns), frame_id="")
    return SimpleNamespace(header=header, joint_names=list(command.joints), points=points)


def _time(nanoseconds: int) -> SimpleNamespace:
    return SimpleNamespace(sec=int(nanoseconds) // 1_000_000_000, nanosec=int(nanoseconds) % 1_000_000_000)
