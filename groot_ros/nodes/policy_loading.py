"""What configuring the policy node does before a topic is touched: contract, checkpoint, robot description, warm-up."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from groot_ros.contract import Contract, load_contract
from groot_ros.errors import ContractError
from groot_ros.execution.executor import Executor
from groot_ros.nodes.policy_parameters import ConfigureSettings
from groot_ros.nodes.robot_description import robot_description
from groot_ros.observation import NANOSECONDS_PER_SECOND, Observation
from groot_ros.policy import GrootPolicy

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
        policy: The policy, warmed up.
        executor: The rules of motion for both.
        instruction: The task at the start.
        warm_latency_s: Time of one prediction, measured.

    """

    contract: Contract
    policy: GrootPolicy
    executor: Executor
    instruction: str
    warm_latency_s: float


def load(settings: ConfigureSettings, receive_description: Callable[[str], str]) -> LoadedPolicy:
    """Load and warm up.

    Args:
        settings: The node's parameters.
        receive_description: Waits for the text of a robot description on a topic.

    Raises:
        GrootError: Anything is wrong or does not fit, in one sentence.

    """
    contract = load_contract(settings.contract)
    # One core stays free for callbacks, also where the network itself runs on the CPU.
    torch.set_num_threads(min(torch.get_num_threads(), max((os.cpu_count() or 1) - 1, 1)))
    # And none waits longer than this for the interpreter, which the model's thread would keep for 5 ms at a time.
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    policy = GrootPolicy.from_checkpoint(
        settings.checkpoint,
        settings.embodiment_tag or contract.embodiment_tag,
        device=settings.device,
        dtype=settings.dtype,
        rate_hz=contract.rate_hz,
        backbone=settings.backbone,
        allow_download=settings.allow_download,
        action_decode_transform=settings.action_decode_transform,
    )
    contract.check_against(policy.embodiment)
    policy.name_actions({group: contract.action_dimensions(group) for group in contract.actions})
    instruction = settings.instruction or contract.instruction
    policy.processor.prompts.refuse_control_tokens(instruction)
    executor = Executor(contract, horizon=policy.horizon, urdf=robot_description(contract, receive_description))
    latency_s = warm_up(policy, instruction)
    fault = executor.start_up_fault(round(latency_s * NANOSECONDS_PER_SECOND))
    if fault is not None:
        raise ContractError(fault)
    return LoadedPolicy(contract, policy, executor, instruction, latency_s)


def warm_up(policy: GrootPolicy, instruction: str) -> float:
    """Predict from grey frames and the mean state a few times; the median time of the later ones, seconds."""
    observation = plain_observation(policy, instruction)
    times_s = []
    for _ in range(UNTIMED_PREDICTIONS + TIMED_PREDICTIONS):
        start = time.perf_counter()
        policy.predict(observation, seed=0)
        times_s.append(time.perf_counter() - start)
    return float(np.median(times_s[UNTIMED_PREDICTIONS:]))


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
