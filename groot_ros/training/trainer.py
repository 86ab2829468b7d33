"""transformers' Trainer with N1.7's recipe: our batches, our checkpoints, and nothing that depends on luck."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import LambdaLR
from transformers import Trainer, TrainerCallback, TrainingArguments

from groot_ros.contract import Contract
from groot_ros.errors import TrainingError
from groot_ros.training.average import WeightAverage
from groot_ros.training.batches import Batch, BatchMaker
from groot_ros.training.checkpoints import BEST, CHECKPOINTS, LIVE_WEIGHTS
from groot_ros.training.config import FinetuneConfig
from groot_ros.training.embodiment import Target
from groot_ros.training.loader import BatchLoader
from groot_ros.training.memory import device_costs
from groot_ros.training.network import TrainedNetwork
from groot_ros.training.order import SampleOrder
from groot_ros.training.schedule import CosineSchedule
from groot_ros.training.sharding import largest, own_share, shared_like, whole
from groot_ros.training.tuning import has_decay, merged_weights
from groot_ros.training.validation import scores
from groot_ros.training.weights import write_checkpoint

_NETWORK = "network."


class FinetuneTrainer(Trainer):
    """Trains a network on windows of a dataset.

    Every sample, its noise and the dropout of every step are functions of the seed and their place in the training, so
    a training that was interrupted goes on as if it had not been, and the number of workers changes nothing.

    Args:
        network: What is trained.
        config: The configuration.
        target: Everything of the checkpoint but its weights.
        maker: Makes the batches.
        validation: Makes the batches of the held-out episodes, and which of their windows; None for none.
        contract: Saved beside the checkpoints.
        arguments: transformers' own.
        callbacks: More of transformers' callbacks.

    Attributes:
        out_of_patience: Whether so many validations were not better that the training ended.

    """

    def __init__(
        self,
        network: TrainedNetwork,
        config: FinetuneConfig,
        target: Target,
        maker: BatchMaker,
        *,
        validation: tuple[BatchMaker, list[int]] | None,
        contract: Contract | None,
        arguments: TrainingArguments,
        callbacks: list[TrainerCallback],
    ) -> None:
        self._config = config
        self._target = target
        self._contract = contract
        self._validation = validation
        self._schedule = CosineSchedule.of(config.steps, config.warmup_ratio, config.final_learning_rate)
        self.out_of_patience = False
        self._average: WeightAverage | None = None
        self._bad_step = torch.tensor(-1)
        self._data_s = 0.0
        self._logged_at = (time.perf_counter(), 0)
        super().__init__(
            model=network,
            args=arguments,
            train_dataset=maker,
            eval_dataset=validation[0] if validation else None,
            callbacks=callbacks,
        )
        self._maker = maker
        if self.is_fsdp_enabled:
            self._refuse_what_cannot_be_sharded()
        self._bad_step = self._bad_step.to(arguments.device)
        if config.ema_decay is not None:
            self._average = WeightAverage(network, config.ema_decay)

    def _refuse_what_cannot_be_sharded(self) -> None:
        plugin = self.accelerator.state.fsdp_plugin
        if plugin.fsdp_version != 2:
            msg = "FSDP version 1 cannot shard parts that learn beside parts that do not; pass --fsdp_version 2"
            raise TrainingError(msg)
        if self._config.ema_decay is not None:
            msg = (
                "ema_decay needs whole weights on every device, and FSDP shards them; set ema_decay to null, or use DDP"
            )
            raise TrainingError(msg)

    # What is trained on

    def get_train_dataloader(self) -> BatchLoader:  # type: ignore[override] # all that Trainer asks of a loader is there
        """The batches of this rank."""
        order = SampleOrder(
            len(self._maker),
            self._config.seed,
            self.args.per_device_train_batch_size,
            self.args.process_index,
            self.args.world_size,
        )
        return BatchLoader(
            self._maker,
            order,
            end=self._config.steps * self._config.accumulation,
            device=self.args.device,
            workers=self._config.workers,
            first=lambda: self.state.global_step * self._config.accumulation,
            waited=self._count_wait,
        )

    def _count_wait(self, seconds: float) -> None:
        self._data_s += seconds

    # How it is trained

    def create_optimizer(self, model: nn.Module | None = None) -> torch.optim.Optimizer:
        """AdamW without decay of biases and norms, fused where the device can."""
        if self.optimizer is None:
            learning = [(name, p) for name, p in (model or self._wrapped()).named_parameters() if p.requires_grad]
            config = self._config
            self.optimizer = torch.optim.AdamW(
                [
                    {"params": [p for name, p in learning if has_decay(name, p)], "weight_decay": config.weight_decay},
                    {"params": [p for name, p in learning if not has_decay(name, p)], "weight_decay": 0.0},
                ],
                lr=config.learning_rate,
                betas=config.betas,
                eps=config.epsilon,
                fused=self.args.device.type == "cuda",
            )
        return self.optimizer

    def create_scheduler(self, num_training_steps: int, optimizer: torch.optim.Optimizer | None = None) -> LambdaLR:  # noqa: ARG002
        """The cosine of the recipe over the actual steps."""
        if self.lr_scheduler is None:

            def share(step: int) -> float:
                # LambdaLR saves what a callable object holds, and a resume would go on with its number of steps.
                return self._schedule(step)

            self.lr_scheduler = LambdaLR(optimizer or self.create_optimizer(), share)
            self._created_lr_scheduler = True
        return self.lr_scheduler

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        """Go on with the optimiser's moments, at the rate of this schedule: the saved one may have had other steps."""
        super()._load_optimizer_and_scheduler(checkpoint)
        if checkpoint is None:
            return
        assert self.optimizer is not None
        assert self.lr_scheduler is not None
        state = self.lr_scheduler.state_dict()
        rate = self._config.learning_rate * self._schedule(state["last_epoch"])
        self.lr_scheduler.load_state_dict(state | {"_last_lr": [rate] * len(state["_last_lr"])})
        for group in self.optimizer.param_groups:
            group["lr"] = rate

    def training_step(self, model: nn.Module, inputs: Batch, num_items_in_batch: Tensor | int | None = None) -> Tensor:
        """One forward and backward pass; what is random in it depends on the step and the rank alone."""
        place = (self.state.global_step * self._config.accumulation + self._micro_step()) * self.args.world_size
        torch.manual_seed(self._config.seed * 1_000_003 + place + self.args.process_index)
        loss: Tensor = super().training_step(model, inputs, num_items_in_batch)
        bad = ~torch.isfinite(loss) & (self._bad_step < 0)
        self._bad_step = torch.where(bad, torch.full_like(self._bad_step, self.state.global_step), self._bad_step)
        return loss

    def _micro_step(self) -> int:
        """Which batch of the current step it is."""
        step = self.state.global_step
        last, count = getattr(self, "_micro", (-1, 0))
        count = count + 1 if last == step else 0
        self._micro = (step, count)
        return count

    def after_step(self) -> None:
        """Take the new weights into the average."""
        if self._average is not None:
            self._average.update(self._bare_network(), self.state.global_step)

    def refuse_bad_loss(self) -> None:
        """Stop, all ranks alike, before a loss that is no number reaches a log or a checkpoint.

        Raises:
            TrainingError: There was one.

        """
        bad = largest(self._bad_step)
        if bad >= 0:
            msg = (
                f"the loss of step {bad + 1} is not a finite number; nothing of it was saved. Lower "
                "learning_rate, look for outliers with `check`, or use precision: float32"
            )
            raise TrainingError(msg)

    def _refuse_bad_weights(self) -> None:
        """Stop, all ranks alike, before weights that are no numbers are saved.

        A finite loss may have a gradient that is not.

        Raises:
            TrainingError: There are some.

        """
        bad = torch.zeros((), dtype=torch.int64, device=self.args.device)
        for parameter in self._wrapped().parameters():
            if parameter.requires_grad:
                bad |= (~torch.isfinite(own_share(parameter.detach()))).any()
        if largest(bad):
            msg = (
                f"the weights after step {self.state.global_step} are not finite numbers, though the loss was; nothing "
                "of them was saved. Lower learning_rate, look for outliers with `check`, or use precision: float32"
            )
            raise TrainingError(msg)

    # What is said about it

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Add what the training costs to what transformers logs."""
        self.refuse_bad_loss()
        now, step = time.perf_counter(), self.state.global_step
        before, step_before = self._logged_at
        if "loss" in logs and step > step_before:
            steps = step - step_before
            samples = steps * self._config.batch_size * self._config.accumulation
            logs["samples_per_s"] = round(samples / (now - before), 2)
            logs["step_s"] = round((now - before) / steps, 4)
            logs["data_s"] = round(self._data_s / steps, 4)
            logs.update(device_costs(self.args.device))
            self._logged_at, self._data_s = (now, step), 0.0
        samples_seen = step * self._config.batch_size * self._config.accumulation
        self.state.epoch = round(samples_seen / len(self._maker), 3)
        super().log(logs, start_time)

    def evaluate(self, *_args: Any, **_kwargs: Any) -> dict[str, float]:  # noqa: ANN401 - transformers' signature
        """Judge the weights that would be saved on the held-out windows: loss, and errors in physical units."""
        assert self._validation is not None
        maker, numbers = self._validation
        started = time.perf_counter()
        network = self._bare_network()
        with self._averaged(), whole(network), self.autocast_smart_context_manager():
            network.eval()
            found = scores(
                network,
                maker,
                numbers[self.args.process_index :: self.args.world_size],
                batch_size=self.args.per_device_train_batch_size,
                device=self.args.device,
            )
            network.train()
        keys = list(found.absolute)
        sums = torch.tensor(
            [found.windows, found.loss, *(found.absolute[key] for key in keys), *(found.squared[key] for key in keys)],
            dtype=torch.float32 if self.args.device.type == "mps" else torch.float64,
            device=self.args.device,
        )
        total, loss, *errors = self.accelerator.reduce(sums, reduction="sum").tolist()
        metrics = {"eval_loss": loss / total}
        for place, key in enumerate(keys):
            metrics[f"eval_{key}_mae"] = errors[place] / total
            metrics[f"eval_{key}_mse"] = errors[place + len(keys)] / total
        self.log(metrics)
        self._note_progress()
        pause = time.perf_counter() - started
        self._logged_at = (self._logged_at[0] + pause, self._logged_at[1])
        return metrics

    def _note_progress(self) -> None:
        """Keep the best weights, and stop after `patience` validations that were not better."""
        patience = self._config.validation.patience
        if patience is None:
            return
        losses = [entry["eval_loss"] for entry in self.state.log_history if "eval_loss" in entry]
        since_best = len(losses) - 1 - losses.index(min(losses))
        if since_best == 0:
            self.save_model(str(self._config.output / BEST), _internal_call=True)
        elif since_best >= patience:
            self.control.should_training_stop = self.out_of_patience = True

    @property
    def has_best(self) -> bool:
        """Whether the best weights are kept, and become the result; all ranks know it, whoever sees the folder."""
        validated = any("eval_loss" in entry for entry in self.state.log_history)
        return self._config.validation.patience is not None and validated

    # What is saved

    def _save(self, output_dir: str | None = None, state_dict: dict[str, Tensor] | None = None) -> None:
        """Write a whole checkpoint in NVIDIA's layout, and what the optimiser works on where that differs."""
        self.refuse_bad_loss()
        self._refuse_bad_weights()
        if not self.args.should_save:
            return
        directory = Path(output_dir or self._config.output)
        live = {
            name.removeprefix(_NETWORK): value
            for name, value in (state_dict or self._bare_network().state_dict()).items()
        }
        saved = live
        if self._average is not None:
            averaged = {name.removeprefix(_NETWORK): value for name, value in self._average.values.items()}
            saved = {name: averaged.get(name, value) for name, value in live.items()}
        write_checkpoint(
            directory,
            self._target,
            merged_weights(saved, self._config.lora),
            tune=self._config.tune,
            contract=self._contract,
        )
        if directory.name.startswith(CHECKPOINTS):
            self._save_live(directory, live)

    def _save_live(self, directory: Path, live: dict[str, Tensor]) -> None:
        from safetensors.torch import save_file

        learning = {name.removeprefix(_NETWORK) for name, p in self._wrapped().named_parameters() if p.requires_grad}
        tensors = {name: value.detach().cpu().contiguous() for name, value in live.items() if name in learning}
        if self._average is not None:
            for name, value in self._average.values.items():
                tensors[f"average.{name.removeprefix(_NETWORK)}"] = value.detach().cpu().contiguous()
        save_file(tensors, directory / LIVE_WEIGHTS)

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: nn.Module | None = None) -> None:
        """Go on with the weights as the optimiser had them."""
        from safetensors.torch import load_file

        stored = load_file(Path(resume_from_checkpoint) / LIVE_WEIGHTS)
        network = self._bare_network() if model is None else model
        parameters = {name.removeprefix(_NETWORK): p for name, p in network.named_parameters() if p.requires_grad}
        live = {name: value for name, value in stored.items() if not name.startswith("average.")}
        if live.keys() != parameters.keys():
            msg = (
                f"{resume_from_checkpoint}: {len(live)} tensors learned there, but {len(parameters)} would learn now; "
                "resume with the configuration that the training was begun with"
            )
            raise TrainingError(msg)
        with torch.no_grad():
            for name, parameter in parameters.items():
                parameter.copy_(shared_like(live[name], parameter))
        if self._average is not None:
            average = {f"{_NETWORK}{name}": stored.get(f"average.{name}", live[name]) for name in parameters}
            self._average.load(average)

    def _save_rng_state(self, output_dir: str) -> None:
        """Nothing to save: every step seeds what is random in it."""

    def _load_rng_state(self, checkpoint: str | None) -> None:
        """Nothing to load: every step seeds what is random in it."""

    def _bare_network(self) -> TrainedNetwork:
        network: TrainedNetwork = self.accelerator.unwrap_model(self.model)
        return network

    def _wrapped(self) -> nn.Module:
        assert self.model is not None
        return self.model

    def _averaged(self) -> _Swapped:
        return _Swapped(self._bare_network(), self._average)


class _Swapped:
    """The averaged weights take the place of the live ones for a while."""

    def __init__(self, network: TrainedNetwork, average: WeightAverage | None) -> None:
        self._network = network
        self._average = average
        self._live: dict[str, Tensor] = {}

    @torch.no_grad()
    def __enter__(self) -> None:
        if self._average is None:
            return
        for name, parameter in self._network.named_parameters():
            if name in self._average.values:
                self._live[name] = parameter.detach().clone()
                parameter.copy_(self._average.values[name])

    @torch.no_grad()
    def __exit__(self, *_: object) -> None:
        for name, parameter in self._network.named_parameters():
            if name in self._live:
                parameter.copy_(self._live[name])
