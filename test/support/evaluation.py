"""Contracts and short cuts for the tests of the evaluation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from groot_ros.contract import Contract
from groot_ros.evaluation.bag_episode import BagEpisode
from groot_ros.evaluation.dataset_episode import DatasetEpisode
from groot_ros.evaluation.evaluation import Evaluation, Settings, evaluate
from groot_ros.evaluation.policies import RecordedActions

HORIZON = 8
ARM = {"topic": "joint_states", "joints": ["shoulder", "elbow"]}
GRIPPER = {"topic": "joint_states", "joints": ["gripper"]}


def arm_dict(**changes: Any) -> dict[str, Any]:
    """The contract of the arm of `support.arm_bags`: 20 rows a second, so that periods are whole nanoseconds."""
    data: dict[str, Any] = {
        "contract_version": 1,
        "robot": "arm",
        "embodiment_tag": "new_embodiment",
        "rate_hz": 20,
        "instruction": "wave",
        "cameras": {"front": {"topic": "front/image_raw"}, "wrist": {"topic": "wrist/image_raw"}},
        "state": {"single_arm": ARM, "gripper": GRIPPER},
        "actions": {"single_arm": {"meaning": "position"}, "gripper": {"meaning": "position"}},
        "outputs": {
            "arm": {"type": "joint_trajectory", "topic": "trajectory", "from": {"single_arm": "all", "gripper": "all"}}
        },
        "limits": "none",
        "record": {
            "single_arm": {**ARM, "topic": "leader/joint_states"},
            "gripper": {**GRIPPER, "topic": "leader/joint_states"},
        },
        "motion": {"start_ramp_s": 0.05, "strategy": "replace"},
    }
    return {**data, **changes}


def arm_contract(**changes: Any) -> Contract:
    return Contract.model_validate(arm_dict(**changes))


def dataset_contract(**changes: Any) -> Contract:
    """The contract of the robot of `support.datasets`."""
    joints = {"topic": "joint_states", "joints": ["shoulder", "elbow", "wrist"]}
    return arm_contract(state={"single_arm": joints, "gripper": GRIPPER}, record={}, **changes)


def bag_episode(path: Path, contract: Contract, horizon: int = HORIZON) -> BagEpisode:
    return BagEpisode(path, contract, video_history=(0,), state_history=(0,), horizon=horizon, name=path.stem)


def dataset_episode(dataset: Any, index: int, contract: Contract) -> DatasetEpisode:
    return DatasetEpisode(dataset, index, contract, video_history=(0,), state_history=(0,), name=f"episode {index}")


def replay(episodes: list[Any], contract: Contract, folder: Path, error: Any = None, **settings: Any) -> Evaluation:
    """Evaluate the policy that replays the recording, with a known error added."""
    policy = RecordedActions(contract, HORIZON, error)
    return evaluate(episodes, contract, policy, Settings(**settings), actions_path=folder / "actions.parquet")
