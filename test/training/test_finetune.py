"""Whole trainings of a few steps: what comes out, and what more than one process does."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from support.datasets import TASKS, write_dataset
from support.training import quiet, saved_weights, small_config
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from groot_ros.checkpoint import open_checkpoint
from groot_ros.checkpoint.writing import write_json
from groot_ros.contract import load_contract
from groot_ros.dataset.reader import open_dataset
from groot_ros.dataset.windows import TrainingWindows
from groot_ros.errors import CheckpointError
from groot_ros.policy import GrootPolicy
from groot_ros.training.checkpoints import newest_checkpoint
from groot_ros.training.embodiment import window_spec
from groot_ros.training.finetune import finetune


def test_a_finished_training_is_a_checkpoint_that_the_policy_loads(dataset, base_model, contract, tmp_path):
    out = tmp_path / "out"
    changes = {"validation": {"episodes": [3], "every": 2, "windows": 3}, "steps": 2, "check_dataset": "quick"}
    changes |= {"report_to": ["tensorboard"]}
    outcome = quiet(small_config(dataset, base_model, contract, out, **changes))
    assert outcome.steps == 2
    for name in ("dataset.html", "curves.png", "training_log.json", "contract.yaml", "cameras/front.png"):
        assert (out / name).is_file(), name
    validated = [entry for entry in outcome.history if "eval_loss" in entry]
    assert len(validated) == 1
    assert {"eval_single_arm_mae", "eval_gripper_mse"} <= validated[0].keys()
    steps = [entry for entry in outcome.history if "loss" in entry]
    assert all({"samples_per_s", "data_s", "step_s", "grad_norm"} <= entry.keys() for entry in steps)
    board = EventAccumulator(str(next((out / "runs").iterdir()))).Reload()
    assert {"train/loss", "train/samples_per_s", "train/data_s", "eval/loss"} <= set(board.Tags()["scalars"])
    policy = GrootPolicy.from_checkpoint(out, "new_embodiment", device="cpu")
    assert policy.rate_hz == 20.0
    load_contract(out / "contract.yaml").check_against(policy.embodiment)
    windows = TrainingWindows(open_dataset(dataset), window_spec(policy.embodiment.modalities, None))
    chunk = policy.predict(windows[0].observation, seed=0)
    assert {key: values.shape for key, values in chunk.groups.items()} == {"single_arm": (8, 3), "gripper": (8, 1)}
    with pytest.raises(CheckpointError, match="trained at 20 Hz"):
        GrootPolicy.from_checkpoint(out, "new_embodiment", device="cpu", rate_hz=30.0)


def test_the_statistics_are_those_of_the_dataset_row_by_row_for_relative_groups(
    dataset, base_model, contract, tmp_path
):
    quiet(small_config(dataset, base_model, contract, tmp_path / "out", steps=1))
    statistics = open_checkpoint(tmp_path / "out").statistics["new_embodiment"]
    data = open_dataset(dataset)
    relative = np.concatenate(
        [
            [data.action(e, "single_arm")[row : row + 8] - data.state(e, "single_arm")[row] for row in range(n - 7)]
            for e, n in enumerate(episode.length for episode in data.episodes)
        ]
    )
    assert statistics.relative_action.keys() == {"single_arm"}
    np.testing.assert_allclose(statistics.relative_action["single_arm"].min, relative.min(axis=0), atol=1e-6)
    np.testing.assert_allclose(statistics.relative_action["single_arm"].max, relative.max(axis=0), atol=1e-6)
    states = np.concatenate([data.state(episode, "gripper") for episode in range(len(data.episodes))])
    np.testing.assert_allclose(statistics.state["gripper"].mean, states.mean(axis=0), atol=1e-6)


def launched(script: str, config: Path, *options: str, **environment: str) -> str:
    """Two processes of this machine, over gloo."""
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    command = [*launcher, str(Path(__file__).parent / script), "--config", str(config), *options]
    root = Path(__file__).parents[2]
    variables = {"PYTHONPATH": str(root), "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", **environment}
    done = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, check=False, timeout=150)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    return done.stdout + done.stderr


def largest_difference(one: Path, other: Path) -> float:
    """Keys' biases apart: attention does not depend on them, so Adam follows the noise of a gradient that is zero."""
    weights, others = saved_weights(one), saved_weights(other)
    return max(
        float((others[name] - value).abs().max()) for name, value in weights.items() if not name.endswith("to_k.bias")
    )


def losses(output: Path) -> list[float]:
    return [entry["loss"] for entry in json.loads((output / "training_log.json").read_text()) if "loss" in entry]


@pytest.mark.parametrize("rank", [None, "0"])
def test_accelerate_on_a_cpu_says_that_it_started_one_process_alone(
    dataset, base_model, contract, tmp_path, monkeypatch, rank
):
    """As `accelerate launch --cpu --num_processes 2` does; torchrun sets a rank."""
    monkeypatch.setenv("ACCELERATE_USE_CPU", "True")
    monkeypatch.setenv("MASTER_PORT", "29500")
    if rank:
        monkeypatch.setenv("RANK", rank)
    heard = io.StringIO()
    finetune(
        small_config(dataset, base_model, contract, tmp_path / "out", steps=1), console=Console(file=heard, width=400)
    )
    told = "one process trains: on a CPU accelerate starts several only through mpirun" in heard.getvalue()
    assert told == (rank is None)


TWO_RANKS = {"steps": 10, "batch_size": 4, "learning_rate": 1e-4}


@pytest.fixture(scope="module", name="one_task")
def dataset_of_one_task(tmp_path_factory) -> Path:
    """Prompts of one length: N1.7 sees padding, so ranks whose prompts differ in length compute something else."""
    return write_dataset(tmp_path_factory.mktemp("one_task") / "dataset", lengths=(16, 14, 15, 12), tasks=TASKS[:1])


def test_two_ranks_equal_one_with_twice_the_batch(one_task, base_model, contract, tmp_path):
    quiet(small_config(one_task, base_model, contract, tmp_path / "one", **TWO_RANKS))
    config = small_config(one_task, base_model, contract, tmp_path / "two", **TWO_RANKS)
    write_json(tmp_path / "two.json", config.model_dump(mode="json"))  # JSON is YAML
    assert launched("two_ranks.py", tmp_path / "two.json").count("one of 2 ranks") == 2
    assert largest_difference(tmp_path / "one", tmp_path / "two") < 1e-5
    np.testing.assert_allclose(losses(tmp_path / "two"), losses(tmp_path / "one"), atol=1e-5)


def test_sharded_weights_learn_the_same_and_go_on_after_a_break(one_task, base_model, contract, tmp_path):
    validation = {"episodes": [3], "every": 2, "windows": 3}
    changes = TWO_RANKS | {"steps": 4, "validation": validation, "save_every": 2}
    quiet(small_config(one_task, base_model, contract, tmp_path / "one", **changes))
    config = small_config(one_task, base_model, contract, tmp_path / "two", **changes)
    write_json(tmp_path / "two.json", config.model_dump(mode="json"))
    launched("sharded_ranks.py", tmp_path / "two.json")
    assert largest_difference(tmp_path / "one", tmp_path / "two") < 1e-5
    np.testing.assert_allclose(losses(tmp_path / "two"), losses(tmp_path / "one"), atol=1e-5)
    whole = (tmp_path / "two" / "model.safetensors").read_bytes()
    shutil.rmtree(tmp_path / "two" / "checkpoint-4")
    launched("sharded_ranks.py", tmp_path / "two.json", "--resume")
    assert (tmp_path / "two" / "model.safetensors").read_bytes() == whole


def test_ctrl_c_that_reaches_one_rank_alone_stops_both_with_one_checkpoint(one_task, base_model, contract, tmp_path):
    config = small_config(one_task, base_model, contract, tmp_path / "two", **TWO_RANKS)
    write_json(tmp_path / "two.json", config.model_dump(mode="json"))
    said = launched("stopped_ranks.py", tmp_path / "two.json")
    assert [said.count(f"rank {rank} has done step {step}") for rank in (0, 1) for step in (2, 3)] == [1, 0, 1, 0]
    assert newest_checkpoint(tmp_path / "two").name == "checkpoint-2"
