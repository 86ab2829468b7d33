"""The policy of an evaluation, loaded and checked against its contract as the policy node loads it."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from groot_ros.contract import Contract
from groot_ros.dataset.bag import Bag, is_bag
from groot_ros.errors import EvaluationError
from groot_ros.evaluation.bag_episode import absolute
from groot_ros.execution.state_check import check_state
from groot_ros.execution.urdf import UrdfLimits, parse_urdf, read_urdf
from groot_ros.policy import GrootPolicy


def load_policy(
    checkpoint: str,
    contract: Contract,
    *,
    embodiment_tag: str | None = None,
    device: str = "auto",
    dtype: str | None = None,
    backbone: Path | None = None,
    allow_download: bool = False,
    action_decode_transform: str = "auto",
) -> GrootPolicy:
    """Load a policy for a contract.

    Raises:
        GrootError: The checkpoint is wrong, or does not fit the contract.

    """
    policy = GrootPolicy.from_checkpoint(
        checkpoint,
        embodiment_tag or contract.embodiment_tag,
        device=device,
        dtype=dtype,
        rate_hz=contract.rate_hz,
        backbone=backbone,
        allow_download=allow_download,
        action_decode_transform=action_decode_transform,
    )
    contract.check_against(policy.embodiment)
    policy.name_actions({group: contract.action_dimensions(group) for group in contract.actions})
    return policy


def find_urdf(contract: Contract, given: Path | None, recordings: Sequence[Path]) -> UrdfLimits | None:
    """The robot's description: the file that was given, the contract's, or what a bag recorded on its topic.

    Raises:
        GrootError: The contract wants one and it is nowhere.

    """
    if given is not None:
        return read_urdf(given)
    if contract.limits is None:
        return None
    topic = contract.limits.urdf_topic
    if topic is None:
        path = contract.limits.urdf_file(contract.path.parent if contract.path else Path())
        return None if path is None else read_urdf(path)
    for recording in recordings:
        if not is_bag(recording):
            continue
        with Bag(recording) as bag:
            for message in bag.messages({absolute(topic)}):
                return parse_urdf(message.message().data, f"{recording}, {topic}")
    msg = f"the contract takes limits from {topic}, which no bag has recorded; give the file with --urdf"
    raise EvaluationError(msg)


def state_warnings(
    policy: GrootPolicy, contract: Contract, first_states: Sequence[Mapping[str, NDArray[np.floating]]]
) -> list[str]:
    """Sentences on recorded states that cannot be what the policy was trained on."""
    names = {group: contract.state_dimensions(group) for group in contract.state}
    sentences: dict[str, None] = {}
    for state in first_states:
        _, found = check_state(state, policy.embodiment.statistics.state, names)
        sentences.update(dict.fromkeys(found))
    return list(sentences)[:8]


def check_output(folder: Path) -> None:
    """See now, and not after hours, that the report can be written.

    Raises:
        EvaluationError: The folder cannot be made or written.

    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        msg = f"--output {folder}: {error.strerror or error}; give a folder that can be written"
        raise EvaluationError(msg) from error
