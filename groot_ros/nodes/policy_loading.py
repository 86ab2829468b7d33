"""What configuring the policy node does before a topic is touched: contract, checkpoint, robot description, warm-up."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch

from groot_ros.contract import Contract, load_contract
from groot_ros.errors import ContractError
from groot_ros.execution.executor import Executor
from groot_ros.nodes.policy_host import PolicyHost, PolicySettings
from groot_ros.nodes.policy_parameters import ConfigureSettings
from groot_ros.nodes.policy_worker import InferenceWorker
from groot_ros.nodes.robot_description import robot_description
from groot_ros.observation import NANOSECONDS_PER_SECOND, Observation
from groot_ros.policy import GrootPolicy, PredictionRequest

UNTIMED_PREDICTIONS = 1
"""The first one compiles and allocates."""
TIMED_PREDICTIONS = 3
SWITCH_INTERVAL_S = 0.0005
WARM_UP_FRAME = (480, 640)
GREY = 128


@dataclass(frozen=True)
class LoadedPolicy:
    """What the node runs.

    Attributes:
        contract: The robot.
        worker: The thread of the policy, warmed up; other robots of the process may share it.
        executor: The rules of motion for both.
        instruction: The task at the start.
        warm_latency_s: Time of one prediction for all robots of the process together, measured.

    """

    contract: Contract
    worker: InferenceWorker
    executor: Executor
    instruction: str
    warm_latency_s: float

    @property
    def policy(self) -> GrootPolicy:
        """The policy."""
        return self.worker.policy


def load(
    settings: ConfigureSettings, host: PolicyHost, robot: str, receive_description: Callable[[str], str]
) -> LoadedPolicy:
    """Load and warm up; the host must be left once the policy is needed no more.

    Args:
        settings: The node's parameters.
        host: Where the policy of the process is.
        robot: Full name of the node.
        receive_description: Waits for the text of a robot description on a topic.

    Raises:
        GrootError: Anything is wrong or does not fit, in one sentence.

    """
    contract = load_contract(settings.contract)
    # One core stays free for callbacks, also where the network itself runs on the CPU.
    torch.set_num_threads(min(torch.get_num_threads(), max((os.cpu_count() or 1) - 1, 1)))
    # And none waits longer than this for the interpreter, which the model's thread would keep for 5 ms at a time.
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    worker = host.enter(
        robot,
        PolicySettings(
            checkpoint=settings.checkpoint,
            embodiment_tag=settings.embodiment_tag or contract.embodiment_tag,
            rate_hz=contract.rate_hz,
            device=settings.device,
            dtype=settings.dtype,
            backbone=settings.backbone,
            allow_download=settings.allow_download,
            action_decode_transform=settings.action_decode_transform,
        ),
    )
    try:
        return _fitted(settings, contract, worker, host.robots, receive_description)
    except BaseException:
        host.leave(robot)
        raise


def _fitted(
    settings: ConfigureSettings,
    contract: Contract,
    worker: InferenceWorker,
    robots: int,
    receive_description: Callable[[str], str],
) -> LoadedPolicy:
    policy = worker.policy
    contract.check_against(policy.embodiment)
    instruction = settings.instruction or contract.instruction
    policy.processor.prompts.refuse_control_tokens(instruction)
    executor = Executor(contract, horizon=policy.horizon, urdf=robot_description(contract, receive_description))
    latency_s = warm_up(worker, instruction, robots)
    fault = executor.start_up_fault(round(latency_s * NANOSECONDS_PER_SECOND))
    if fault is not None:
        raise ContractError(fault)
    return LoadedPolicy(contract, worker, executor, instruction, latency_s)


def warm_up(worker: InferenceWorker, instruction: str, robots: int) -> float:
    """Predict from grey frames and the mean state a few times, for one robot, then for two, and so on to all.

    Returns:
        The median time of the later predictions for all robots together, seconds.

    """
    request = PredictionRequest(plain_observation(worker.policy, instruction), seed=0)
    times_s = []
    for together in [*range(1, robots), *[robots] * (UNTIMED_PREDICTIONS + TIMED_PREDICTIONS)]:
        start = time.perf_counter()
        # Each by itself, so that robots which are active already have their turn in between.
        worker.call(partial(worker.policy.predict_batch, [request] * together))
        times_s.append(time.perf_counter() - start)
    return float(np.median(times_s[-TIMED_PREDICTIONS:]))


def plain_observation(policy: GrootPolicy, instruction: str) -> Observation:
    """An observation that every policy accepts: grey frames and the mean state."""
    modalities, statistics = policy.embodiment.modalities, policy.embodiment.statistics
    frames, rows = len(modalities.video.delta_indices), len(modalities.state.delta_indices)
    return Observation(
        images={key: np.full((frames, *WARM_UP_FRAME, 3), GREY, np.uint8) for key in modalities.video.modality_keys},
        state={
            key: np.tile(statistics.state[key].mean.astype(np.float32), (rows, 1))
            for key in modalities.state.modality_keys
        },
        instruction=instruction,
        stamp_ns=0,
    )
