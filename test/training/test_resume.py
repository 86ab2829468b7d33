"""A training that goes on is the same training, and its result stays the best that it had."""

from __future__ import annotations

import os
import signal

import pytest
import torch
from support.datasets import write_dataset
from support.training import quiet, saved_weights, small_config

from groot_ros.errors import TrainingError
from groot_ros.policy import GrootPolicy
from groot_ros.training import trainer
from groot_ros.training.checkpoints import newest_checkpoint
from groot_ros.training.trainer import FinetuneTrainer
from groot_ros.training.validation import Scores

DROPOUT = {"from_scratch": {"network": {"diffusion_model_cfg": {"dropout": 0.1}}}, "state_dropout": 0.3}


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(value, other[name]) for name, value in one.items())


@pytest.fixture(name="config")
def plain_config(dataset, base_model, contract, tmp_path):
    return small_config(dataset, base_model, contract, tmp_path / "out")


def test_after_a_kill_a_resumed_training_ends_with_the_same_bits(dataset, base_model, contract, tmp_path, monkeypatch):
    """20 steps equal 10 and 10, with dropout, averaged weights and accumulation."""
    changes = {"steps": 20, "accumulation": 2, "batch_size": 1, "ema_decay": 0.9, "save_every": 10, **DROPOUT}
    whole = quiet(small_config(dataset, base_model, contract, tmp_path / "whole", **changes))
    broken = small_config(dataset, base_model, contract, tmp_path / "broken", **changes)

    class Killed(BaseException):
        pass

    step = FinetuneTrainer.training_step

    def dies(self, *arguments, **options):
        if self.state.global_step == 12:
            raise Killed
        return step(self, *arguments, **options)

    monkeypatch.setattr(FinetuneTrainer, "training_step", dies)
    with pytest.raises(Killed):
        quiet(broken)
    monkeypatch.undo()
    with pytest.raises(TrainingError, match=r"holds a training already; go on with --resume"):
        quiet(broken)
    assert newest_checkpoint(tmp_path / "broken").name == "checkpoint-10"
    resumed = quiet(broken, resume=True)
    assert same(saved_weights(tmp_path / "whole"), saved_weights(tmp_path / "broken"))

    def losses(outcome):
        return {entry["step"]: entry["loss"] for entry in outcome.history if "loss" in entry}

    assert losses(resumed) == losses(whole)


def test_a_finished_training_learns_in_the_steps_that_a_resume_adds(config):
    quiet(config)
    longer = {"steps": 8, "save_every": 1, "batch_size": 1, "accumulation": 2}  # the samples of a step are the same
    outcome = quiet(config.model_copy(update=longer), resume=True)
    assert outcome.steps == 8
    rates = {entry["step"]: entry["learning_rate"] for entry in outcome.history if "learning_rate" in entry}
    assert all(rates[step] > 0.0 for step in (5, 6, 7))
    weights = [saved_weights(config.output / f"checkpoint-{step}") for step in (4, 5, 6)]
    assert not same(weights[0], weights[1])
    assert not same(weights[1], weights[2])


def test_a_resumed_training_with_other_numbers_is_refused_and_leaves_its_record(config, tmp_path):
    config = config.model_copy(update={"steps": 1})
    quiet(config)
    record = config.output / "finetune.json"
    before = record.read_bytes()
    other = write_dataset(tmp_path / "other", lengths=(16, 14))
    for changes, sentence in (
        ({"learning_rate": 2e-3}, r"learning_rate was 0\.001 and is 0\.002 now; a resumed training keeps"),
        (
            {"seed": 7, "betas": (0.9, 0.95)},
            r"betas was \[0\.9, 0\.999\] and is \[0\.9, 0\.95\] now, seed was 42 and is 7",
        ),
        ({"batch_size": 4}, r"batch_size \* accumulation was 2 and is 4 now"),
        ({"dataset": other}, "dataset was .* and is .*other now"),
        ({"ema_decay": 0.9}, r"ema_decay was null and is 0\.9 now"),
        ({"tune": config.tune.model_copy(update={"llm": True})}, r"tune\.llm was false and is true now"),
        (
            {"validation": config.validation.model_copy(update={"patience": 2})},
            r"validation\.patience was null and is a number now",
        ),
    ):
        with pytest.raises(TrainingError, match=sentence):
            quiet(config.model_copy(update=changes), resume=True)
    assert record.read_bytes() == before
    record.unlink()
    with pytest.raises(TrainingError, match=r"finetune\.json: what the training was begun with cannot be read"):
        quiet(config, resume=True)


@pytest.fixture(name="patient")
def patient_config(dataset, base_model, contract, tmp_path):
    validation = {"episodes": [3], "every": 1, "patience": 2}
    return small_config(dataset, base_model, contract, tmp_path / "out", steps=6, save_every=1, validation=validation)


@pytest.fixture(name="validations")
def given_losses(monkeypatch):
    """What the validations find is given; None presses Ctrl-C in the middle of the next one."""

    def give(*losses):
        left = iter(losses)

        def scores(*_arguments, **_options):
            loss = next(left)
            if loss is None:
                os.kill(os.getpid(), signal.SIGINT)
                loss = next(left)
            return Scores(1, loss, {}, {})

        monkeypatch.setattr(trainer, "scores", scores)

    return give


def test_with_patience_the_training_stops_and_the_result_is_the_best_of_its_validations(patient, validations):
    out = patient.output
    validations(3.0, 1.0, 2.0, 1.5)
    assert quiet(patient).steps == 4
    assert same(saved_weights(out), saved_weights(out / "checkpoint-2"))
    assert not same(saved_weights(out), saved_weights(out / "checkpoint-4"))
    assert (out / "model.safetensors").samefile(out / "best" / "model.safetensors"), "the disk holds it twice"
    GrootPolicy.from_checkpoint(out, "new_embodiment", device="cpu")


def test_a_resume_replaces_the_best_result_with_better_weights_alone(patient, validations):
    out = patient.output
    validations(3.0, 1.0, 2.0, 1.5)
    quiet(patient)
    best = saved_weights(out)
    validations(1.8)
    assert quiet(patient, resume=True).steps == 5
    assert same(saved_weights(out), best)
    assert not list(out.glob(".*partial"))
    validations(0.5)
    assert quiet(patient, resume=True).steps == 6
    assert same(saved_weights(out), saved_weights(out / "checkpoint-6"))


def test_a_resumed_training_remembers_the_best_validation(patient, validations, monkeypatch):
    validations(1.0, 2.0, 1.5)
    after_step = FinetuneTrainer.after_step

    def fall_over(self):
        after_step(self)
        if self.state.global_step == 2 and not (patient.output / "fell").exists():
            (patient.output / "fell").touch()
            raise KeyboardInterrupt

    monkeypatch.setattr(FinetuneTrainer, "after_step", fall_over)
    with pytest.raises(KeyboardInterrupt):
        quiet(patient)
    assert quiet(patient, resume=True).steps == 3
    assert same(saved_weights(patient.output), saved_weights(patient.output / "checkpoint-1"))


@pytest.mark.parametrize(
    ("losses", "steps", "interrupted"),
    [
        ((1.0, 2.0, None, 1.5), 3, False),  # the key is pressed in the validation that ends the training anyway
        ((1.0, None, 2.0, 0.5), 3, True),  # in one that does not: the next step is the last, and the best so far
        ((0.5, None, 2.0, 1.0), 3, False),  # in the step after, and that step's validation ends the training
    ],
)
def test_ctrl_c_near_the_end_of_patience_leaves_the_best_weights(patient, validations, losses, steps, interrupted):
    validations(*losses)
    outcome = quiet(patient)
    assert (outcome.steps, outcome.interrupted) == (steps, interrupted)
    numbers = [loss for loss in losses if loss is not None]
    best = 1 + numbers.index(min(numbers))
    assert same(saved_weights(patient.output), saved_weights(patient.output / f"checkpoint-{best}"))


def test_ctrl_c_in_the_last_step_is_the_end_of_the_training_with_its_best_weights(patient, validations, monkeypatch):
    validations(1.0, 2.0)
    after_step = FinetuneTrainer.after_step

    def press(self):
        after_step(self)
        if self.state.global_step == 2:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(FinetuneTrainer, "after_step", press)
    outcome = quiet(patient.model_copy(update={"steps": 2}))
    assert (outcome.steps, outcome.interrupted) == (2, False)
    assert same(saved_weights(patient.output), saved_weights(patient.output / "checkpoint-1"))


def test_best_weights_that_were_deleted_are_said_and_the_result_is_left_alone(patient, validations):
    validations(1.0, 2.0, 1.5)
    quiet(patient)
    result = saved_weights(patient.output)
    (patient.output / "best").rename(patient.output / "elsewhere")
    validations(1.8)
    with pytest.raises(TrainingError, match=r"best is gone, and with it the weights of the best validation"):
        quiet(patient, resume=True)
    assert same(saved_weights(patient.output), result)
