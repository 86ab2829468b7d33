"""What happens after every step of a training, in the words of transformers' Trainer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from transformers import TrainerCallback, TrainingArguments

from groot_ros.training.sharding import largest


class StepHooks(TrainerCallback):
    """Calls something after every optimiser step, and stops and saves when asked to.

    Attributes:
        after_step: What is called.
        stop: Whether the training shall stop after the step that is under way.
        interrupted: Whether it did, with steps left to do.

    """

    def __init__(self) -> None:
        self.after_step: Callable[[], None] = lambda: None
        self.stop = False
        self.interrupted = False

    def on_train_begin(self, args: TrainingArguments, state: Any, control: Any, **_: Any) -> Any:  # noqa: ANN401
        """After a checkpoint was loaded, which says how often the training was to log, validate and save before."""
        state.compute_steps(args, state.max_steps)
        return control

    def on_step_end(self, args: TrainingArguments, state: Any, control: Any, **_: Any) -> Any:  # noqa: ANN401
        """After an optimiser step."""
        self.after_step()
        # Who asks one rank asks all: the others would wait for it in their next step.
        self.stop = bool(largest(torch.tensor(int(self.stop), device=args.device)))
        if self.stop:
            self.interrupted = state.global_step < state.max_steps
            control.should_training_stop = control.should_save = True
        return control

    def on_epoch_end(self, args: TrainingArguments, state: Any, control: Any, **_: Any) -> Any:  # noqa: ANN401, ARG002
        """After the last step, whose own log, validation and checkpoint are there already."""
        control.should_log = control.should_evaluate = control.should_save = False
        return control
