"""What goes wrong while training is said in one sentence, and what was saved stays whole."""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from support.training import quiet, saved_weights, small_config

from groot_ros.cli.finetune import main
from groot_ros.errors import DatasetError, TrainingError
from groot_ros.training.average import WeightAverage
from groot_ros.training.batches import BatchMaker
from groot_ros.training.checkpoints import newest_checkpoint
from groot_ros.training.failures import plain_failures
from groot_ros.training.memory import device_costs
from groot_ros.training.network import TrainedNetwork
from groot_ros.training.trainer import FinetuneTrainer

ROOT = Path(__file__).parents[2]
FORWARD = TrainedNetwork.forward
WINDOWS_PER_STEP = 2


@pytest.fixture(name="config")
def saving_config(dataset, base_model, contract, tmp_path):
    return small_config(dataset, base_model, contract, tmp_path / "out", save_every=1, keep=2)


def test_a_loss_that_is_no_number_names_its_step_and_is_never_saved(config, monkeypatch):
    def poisoned(self, **batch):
        poisoned.calls += 1
        loss = FORWARD(self, **batch)["loss"]
        return {"loss": loss * math.nan if poisoned.calls == 3 else loss}

    poisoned.calls = 0
    monkeypatch.setattr(TrainedNetwork, "forward", poisoned)
    with pytest.raises(TrainingError, match="the loss of step 3 is not a finite number; nothing of it was saved"):
        quiet(config)
    newest = newest_checkpoint(config.output)
    assert newest.name == "checkpoint-2"
    assert all(bool(torch.isfinite(value).all()) for value in saved_weights(newest).values())


def test_weights_that_are_no_numbers_are_never_saved_though_their_loss_was_one(config, monkeypatch):
    def poisoned(self, **batch):
        poisoned.calls += 1
        loss = FORWARD(self, **batch)["loss"]
        if poisoned.calls == config.steps:
            loss.register_hook(lambda gradient: gradient * math.inf)
        return {"loss": loss}

    poisoned.calls = 0
    monkeypatch.setattr(TrainedNetwork, "forward", poisoned)
    with pytest.raises(TrainingError, match="the weights after step 4 are not finite numbers, though the loss was"):
        quiet(config)
    newest = newest_checkpoint(config.output)
    assert newest.name == "checkpoint-3"
    assert not (config.output / "checkpoint-4").exists()
    assert not (config.output / "model.safetensors").exists()
    assert all(bool(torch.isfinite(value).all()) for value in saved_weights(newest).values())


def test_what_the_log_holds_beside_numbers_does_not_cost_the_result(config, monkeypatch):
    log = FinetuneTrainer.log

    def with_none(self, logs, start_time=None):
        log(self, {**logs, "grad_norm": math.nan}, start_time)

    monkeypatch.setattr(FinetuneTrainer, "log", with_none)
    outcome = quiet(config)
    assert math.isnan(outcome.history[0]["grad_norm"])
    written = json.loads((config.output / "training_log.json").read_text())
    assert written[0]["grad_norm"] is None
    assert (config.output / "curves.png").is_file()


class NotSupported(Exception):
    """As the driver's bindings raise on MIG and Jetson."""


@pytest.mark.parametrize(
    "reason", [ModuleNotFoundError("pynvml"), NotSupported("Not Supported"), RuntimeError("no driver")]
)
def test_a_device_that_does_not_say_its_use_leaves_it_out_of_the_log(monkeypatch, reason):
    def refuse(_device):
        raise reason

    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda _device: 3 * 2**29)
    monkeypatch.setattr(torch.cuda, "utilization", refuse)
    assert device_costs(torch.device("cuda")) == {"gpu_memory_gib": 1.5}
    monkeypatch.setattr(torch.cuda, "utilization", lambda _device: 87)
    assert device_costs(torch.device("cuda")) == {"gpu_memory_gib": 1.5, "gpu_use_percent": 87.0}
    assert device_costs(torch.device("cpu")) == {}


def test_a_full_disk_leaves_the_last_checkpoint_and_removes_the_half_written_one(config, monkeypatch):
    save = FinetuneTrainer._save_optimizer_and_scheduler

    def full(self, output_dir):
        if self.state.global_step == 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        return save(self, output_dir)

    monkeypatch.setattr(FinetuneTrainer, "_save_optimizer_and_scheduler", full)
    with pytest.raises(TrainingError, match=r"the disk of .* is full; .*--resume.*checkpoint-2, is whole"):
        quiet(config)
    assert not (config.output / "checkpoint-3").exists()


def test_a_checkpoint_that_was_cut_short_is_not_resumed_from(config):
    quiet(config)
    (config.output / "checkpoint-4" / "trainer_state.json").write_text("{")
    assert newest_checkpoint(config.output).name == "checkpoint-3"


def test_too_little_memory_on_the_device_says_what_to_change(config, monkeypatch):
    def exhausted(_self, **_batch):
        raise torch.OutOfMemoryError

    monkeypatch.setattr(TrainedNetwork, "forward", exhausted)
    with pytest.raises(TrainingError, match=r"not enough memory.*halve batch_size.*No checkpoint had been saved yet"):
        quiet(config)


def test_too_little_memory_for_the_averaged_weights_is_said_as_well(config, monkeypatch):
    def exhausted(*_arguments):
        raise torch.OutOfMemoryError

    monkeypatch.setattr(WeightAverage, "__init__", exhausted)
    with pytest.raises(TrainingError, match=r"not enough memory.*halve batch_size.*No checkpoint had been saved yet"):
        quiet(config.model_copy(update={"ema_decay": 0.9}))


def test_a_killed_worker_is_named(config):
    with pytest.raises(TrainingError, match="a worker that prepares batches was killed"), plain_failures(config.output):
        raise RuntimeError("DataLoader worker (pid 1) is killed by signal: Killed.")


def test_a_worker_that_the_system_really_kills_ends_the_training(dataset, base_model, contract, tmp_path, monkeypatch):
    config = small_config(dataset, base_model, contract, tmp_path / "out", workers=1, steps=400)
    after = FinetuneTrainer.after_step

    def kill_workers(self):
        after(self)
        for child in torch.multiprocessing.active_children():
            os.kill(child.pid, signal.SIGKILL)

    monkeypatch.setattr(FinetuneTrainer, "after_step", kill_workers)
    with pytest.raises(TrainingError, match="a worker that prepares batches was killed"):
        quiet(config)


def test_a_training_that_is_killed_leaves_no_process_behind(config, tmp_path):
    path = tmp_path / "training.yaml"
    path.write_text(config.model_copy(update={"workers": 1, "steps": 1000}).model_dump_json())
    command = [sys.executable, "-m", "groot_ros", "finetune", "--config", str(path)]
    training = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True, cwd=ROOT)
    wait_for(lambda: newest_checkpoint(config.output), "checkpoint")
    assert len(group(training.pid)) > 1, "there is no worker to leave behind"
    training.kill()
    training.wait()
    wait_for(lambda: not group(training.pid), "end of the workers")


def group(leader: int) -> list[str]:
    """The processes that a process has started, and itself."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _parent, number = stat.read_text().rsplit(")", 1)[1].split()[:3]
            found += [stat.parent.name] * (int(number) == leader and state != "Z")
    return found


def wait_for(condition, what):
    end = time.monotonic() + 60.0
    while not condition():
        assert time.monotonic() < end, f"no {what} after 60 s"
        time.sleep(0.1)


def test_a_corrupt_video_is_named(dataset, base_model, contract, tmp_path):
    broken = tmp_path / "dataset"
    shutil.copytree(dataset, broken)
    video = sorted(broken.rglob("*.mp4"))[0]
    video.write_bytes(video.read_bytes()[:200])
    config = small_config(broken, base_model, contract, tmp_path / "out", steps=40)
    with pytest.raises((TrainingError, DatasetError), match=rf"{video.name}.* is not a video that can be read"):
        quiet(config)


def test_what_the_checks_find_stops_the_training_before_it_costs(dataset, base_model, contract, tmp_path):
    broken = tmp_path / "dataset"
    shutil.copytree(dataset, broken)
    sorted(broken.rglob("*.mp4"))[0].unlink()
    config = small_config(broken, base_model, contract, tmp_path / "out", check_dataset="quick")
    with pytest.raises(TrainingError, match=r"errors.*dataset\.html; or train on it as it is with check_dataset: skip"):
        quiet(config)


def test_ctrl_c_saves_and_the_training_can_go_on(config, monkeypatch):
    config = config.model_copy(update={"save_every": 100})
    make = BatchMaker.make

    def interrupted(self, windows, draws):
        if len(windows) == WINDOWS_PER_STEP and not interrupted.done:
            interrupted.done = True
            os.kill(os.getpid(), signal.SIGINT)
        return make(self, windows, draws)

    interrupted.done = False
    monkeypatch.setattr(BatchMaker, "make", interrupted)
    outcome = quiet(config)
    assert outcome.interrupted
    assert outcome.steps < config.steps
    assert newest_checkpoint(config.output).name == f"checkpoint-{outcome.steps}"
    monkeypatch.undo()
    assert quiet(config, resume=True).steps == config.steps


def test_the_command_prints_one_sentence(capsys, tmp_path):
    assert main(["--dataset", str(tmp_path / "none"), "--base-model", "b", "--output", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert "Traceback" not in error
    assert main(["--set", "steps"]) == 2
    assert "write it as key=value" in capsys.readouterr().err


def test_resuming_nothing_is_refused(config):
    with pytest.raises(TrainingError, match="holds no complete checkpoint to resume from; start without --resume"):
        quiet(config, resume=True)
