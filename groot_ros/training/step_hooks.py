"""What happens after every step of a training, in the words of transformers' Trainer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from transformers import TrainerCallback, TrainingArguments


class StepHooks(TrainerCallback):
    """Calls something after every optimiser step, and stops and saves when asked to."""

    def __init__(self) -> None:
        self.after_step: Callable[[], None] = lambda: None
        self.stop = False

    def on_step_end(self, args: TrainingArguments, state: Any, control: Any, **_: Any) -> Any:  # noqa: ANN401, ARG002
        """After an optimiser step."""
        self.after_step()
        if self.stop:
            control.should_training_stop = control.should_save = True
        return control

    def on_epoch_end(self, args: TrainingArguments, state: Any, control: Any, **_: Any) -> Any:  # noqa: ANN401, ARG002
        """After the last step, whose own log, validation and checkpoint are there already."""
        control.should_log = control.should_evaluate = control.should_save = False
        return control
