"""A whole fine-tuning: look at the data, train, and leave a checkpoint that a robot can run."""

from __future__ import annotations

import logging
import math
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from rich.console import Console
from transformers import TrainingArguments
from transformers.trainer_utils import IntervalStrategy

from groot_ros.checkpoint import open_checkpoint
from groot_ros.checkpoint.writing import write_json
from groot_ros.contract import Contract, load_contract
from groot_ros.dataset.quality.html import write_html
from groot_ros.dataset.quality.report import check_dataset
from groot_ros.dataset.quality.text import print_report, verdict
from groot_ros.dataset.reader import Dataset, open_dataset
from groot_ros.dataset.windows import TrainingWindows
from groot_ros.errors import TrainingError
from groot_ros.policy import select_device
from groot_ros.processing.processor import Processor
from groot_ros.training.batches import BatchMaker
from groot_ros.training.checkpoints import make_best_the_result
from groot_ros.training.config import FinetuneConfig
from groot_ros.training.draws import DrawOptions
from groot_ros.training.embodiment import Target, training_target, window_spec
from groot_ros.training.failures import plain_failures
from groot_ros.training.memory import estimate_memory
from groot_ros.training.network import TrainedNetwork
from groot_ros.training.packing import image_input_format
from groot_ros.training.pictures import write_camera_pictures, write_curves
from groot_ros.training.resuming import checkpoint_to_resume, write_config
from groot_ros.training.step_hooks import StepHooks
from groot_ros.training.trainer import FinetuneTrainer
from groot_ros.training.tuning import add_adapters, set_tuned
from groot_ros.training.validation import held_out_episodes, spread_windows
from groot_ros.training.weights import initial_network, scratch_checkpoint

HISTORY_FILE = "training_log.json"


@dataclass(frozen=True)
class Outcome:
    """How a training ended.

    Attributes:
        output: Folder of the checkpoint.
        steps: Optimiser steps that were done, those before a resume included.
        history: What was logged.
        interrupted: Whether it was stopped by hand before its end.

    """

    output: Path
    steps: int
    history: list[dict[str, float]]
    interrupted: bool


def finetune(config: FinetuneConfig, *, resume: bool = False, console: Console | None = None) -> Outcome:
    """Fine-tune.

    Args:
        config: The configuration.
        resume: Go on from the newest complete checkpoint of the output folder.
        console: Where reports go; by default the terminal.

    Raises:
        GrootError: Something does not fit, or the training cannot go on; one sentence that says how to mend it.

    """
    arguments = training_arguments(config)
    console = console or Console(quiet=arguments.process_index != 0)
    if arguments.device.type == "cpu":
        _leave_cores_to_workers(config.workers)
    if _is_alone_by_mistake():
        console.print(
            "one process trains: on a CPU accelerate starts several only through mpirun (--mpirun_hostfile); "
            "torchrun --nproc_per_node N starts them"
        )
    resumed = checkpoint_to_resume(config, resume=resume)
    contract = load_contract(config.contract) if config.contract else None
    dataset = open_dataset(config.dataset)
    base = open_checkpoint(config.base_model, backbone=config.backbone, allow_download=config.allow_download)
    target = training_target(scratch_checkpoint(base, config.from_scratch), dataset, contract, config)
    with plain_failures(config.output), arguments.main_process_first(desc="reports"):
        if arguments.process_index == 0:
            config.output.mkdir(parents=True, exist_ok=True)
            write_config(config)
            if resumed is None:
                _report_on(dataset, config, target, console)
    with plain_failures(config.output):
        trainer, hooks = _trainer(
            dataset, config, target, contract=contract, arguments=arguments, console=console, resumed=resumed
        )
        with _stopped_by_ctrl_c(hooks, console):
            trainer.train(resume_from_checkpoint=str(resumed) if resumed else None)
            trainer.refuse_bad_loss()
            if not trainer.has_best:
                trainer.save_model()
            elif arguments.process_index == 0:
                make_best_the_result(config.output)
    interrupted = hooks.interrupted and not trainer.out_of_patience
    outcome = Outcome(config.output, trainer.state.global_step, list(trainer.state.log_history), interrupted)
    if arguments.process_index == 0:
        _finish(outcome, config, target, contract, console)
    return outcome


def _trainer(
    dataset: Dataset,
    config: FinetuneConfig,
    target: Target,
    *,
    contract: Contract | None,
    arguments: TrainingArguments,
    console: Console,
    resumed: Path | None,
) -> tuple[FinetuneTrainer, StepHooks]:
    """Make what trains, and say what it will train on and cost."""
    maker, validation = _makers(dataset, config, target)
    if validation is None and config.validation.episodes:
        console.print(f"no episode is held out, for {dataset.root} has only one: nothing is validated")
    if validation is None:
        arguments.eval_strategy = IntervalStrategy.NO
    network = _network(config, target, arguments)
    if arguments.process_index == 0 and resumed is None:
        pictures = write_camera_pictures(maker, _without_augmentation(maker), config.output / "cameras")
        console.print(f"what training and policy see: {', '.join(map(str, pictures))}")
    console.print(estimate_memory(network, arguments.device, averaged=config.ema_decay is not None).sentence())
    learning = sum(p.numel() for p in network.parameters() if p.requires_grad)
    console.print(
        f"{len(maker)} windows; {learning:,} of {sum(p.numel() for p in network.parameters()):,} weights learn"
    )
    hooks = StepHooks()
    trainer = FinetuneTrainer(
        network,
        config,
        target,
        maker,
        validation=validation,
        contract=contract,
        arguments=arguments,
        callbacks=[hooks],
    )
    hooks.after_step = trainer.after_step
    return trainer, hooks


def _leave_cores_to_workers(workers: int) -> None:
    """Compute with the cores that the workers leave: threads that share a core wait for each other in every layer.

    A number of threads that was asked for (OMP_NUM_THREADS) is kept.
    """
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(max(1, min(torch.get_num_threads(), (os.cpu_count() or 1) - workers)))


def training_arguments(config: FinetuneConfig) -> TrainingArguments:
    """The configuration in transformers' words.

    Raises:
        TrainingError: The batch cannot be shared among the devices.
        DeviceError: The device is not there.

    """
    device = select_device(config.device)
    bfloat16 = config.precision == "bfloat16" or (config.precision == "auto" and device.type == "cuda")
    arguments = TrainingArguments(
        output_dir=str(config.output),
        max_steps=config.steps,
        gradient_accumulation_steps=config.accumulation,
        learning_rate=config.learning_rate,
        max_grad_norm=config.max_gradient_norm,
        bf16=bfloat16,
        tf32=True if device.type == "cuda" else None,
        use_cpu=device.type == "cpu",
        seed=config.seed,
        logging_steps=config.log_every,
        logging_nan_inf_filter=False,
        save_strategy="steps",
        save_steps=config.save_every,
        save_total_limit=config.keep,
        eval_strategy="steps" if config.validation.episodes else "no",
        eval_steps=config.validation.every,
        report_to=list(config.report_to),
        ignore_data_skip=True,
        remove_unused_columns=False,
        label_names=[],
        ddp_find_unused_parameters=False,
        disable_tqdm=not sys.stderr.isatty(),
        log_level="error",
    )
    shared, rest = divmod(config.batch_size, arguments.world_size)
    if rest or not shared:
        msg = (
            f"batch_size is {config.batch_size}, which cannot be shared among {arguments.world_size} processes; take a "
            "multiple of their number"
        )
        raise TrainingError(msg)
    arguments.per_device_train_batch_size = shared
    return arguments


def _is_alone_by_mistake() -> bool:
    """Whether `accelerate launch` was asked for several processes on a CPU: it starts one, and says nothing."""
    asked = os.environ.get("ACCELERATE_USE_CPU", "").lower() == "true" and "MASTER_PORT" in os.environ
    return asked and not {"RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK"} & os.environ.keys()


def _report_on(dataset: Dataset, config: FinetuneConfig, target: Target, console: Console) -> None:
    if config.check_dataset == "skip":
        return
    horizon = target.checkpoint.embodiment(target.tag).horizon
    report = check_dataset(dataset.root, horizon=horizon, quick=config.check_dataset == "quick")
    print_report(report, console)
    write_html(report, config.output / "dataset.html")
    if report.has_errors:
        page = config.output / "dataset.html"
        msg = f"{dataset.root}: {verdict(report)}, see {page}; or train on it as it is with check_dataset: skip"
        raise TrainingError(msg)


def _makers(
    dataset: Dataset, config: FinetuneConfig, target: Target
) -> tuple[BatchMaker, tuple[BatchMaker, list[int]] | None]:
    checkpoint, modalities = target.checkpoint, target.checkpoint.processor.modality_configs[target.tag]
    held_out = held_out_episodes(dataset, config.validation)
    kept = [episode for episode in range(len(dataset.episodes)) if episode not in held_out]
    spec = window_spec(modalities, config.annotation)
    processor = Processor(checkpoint, target.tag)
    options = DrawOptions.of(
        checkpoint.processor,
        checkpoint.config,
        seed=config.seed,
        frames=len(modalities.video.modality_keys) * len(modalities.video.delta_indices),
        noise_draws=config.noise_draws,
    )
    # The class is asked here, before Trainer and Accelerate wrap its instance.
    wanted = image_input_format(TrainedNetwork)
    maker = BatchMaker(
        TrainingWindows(dataset, spec, kept),
        processor,
        options,
        state_dropout=checkpoint.processor.state_dropout_prob,
        input_format=wanted,
    )
    if not held_out:
        return maker, None
    windows = TrainingWindows(dataset.independent(), spec, held_out)
    judge = BatchMaker(windows, processor, options, state_dropout=0.0, input_format=wanted, augment=False)
    return maker, (judge, spread_windows(windows, config.validation.windows))


def _without_augmentation(maker: BatchMaker) -> BatchMaker:
    return BatchMaker(
        maker.windows, maker.processor, maker.options, state_dropout=0.0, input_format=maker.input_format, augment=False
    )


def _network(config: FinetuneConfig, target: Target, arguments: TrainingArguments) -> TrainedNetwork:
    network = initial_network(target, torch.device("cpu"), torch.float32, config.from_scratch)
    set_tuned(network, config.tune, config.lora)
    if config.lora is not None:
        add_adapters(network, config.lora)
    frozen_backbone = not any(p.requires_grad for p in network.backbone.parameters())
    if arguments.bf16 and frozen_backbone:
        for parameter in network.backbone.parameters():  # what learns stays in float32
            parameter.data = parameter.data.to(torch.bfloat16)
    trained = TrainedNetwork(network)
    if config.gradient_checkpointing:
        trained.recompute_activations()
    return trained


@contextmanager
def _stopped_by_ctrl_c(hooks: StepHooks, console: Console) -> Iterator[None]:
    """The first Ctrl-C saves and stops after the step that is under way, the second stops at once."""

    def stop(_signal: int, _frame: object) -> None:
        if hooks.stop:
            raise KeyboardInterrupt
        hooks.stop = True
        console.print("stopping after this step, with a checkpoint; press Ctrl-C again to stop at once")

    previous: Callable[..., object] | int | None = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


def _finish(
    outcome: Outcome, config: FinetuneConfig, target: Target, contract: Contract | None, console: Console
) -> None:
    history = [
        {key: value if math.isfinite(value) else None for key, value in entry.items()} for entry in outcome.history
    ]
    write_json(config.output / HISTORY_FILE, history)
    write_curves(outcome.history, config.output / "curves.png")
    logging.getLogger(__name__).info("training ended after %d steps", outcome.steps)
    if outcome.interrupted:
        console.print(f"stopped after {outcome.steps} of {config.steps} steps; --resume goes on with it")
        return
    console.print(
        f"{outcome.output}: the checkpoint of {target.tag}, after {outcome.steps} steps; curves in curves.png"
    )
    if contract is not None:
        console.print("run it:", launch_line(config.output), sep="\n", soft_wrap=True)


def launch_line(output: Path) -> str:
    """The command that drives a robot with the result."""
    folder = output.resolve()
    return f"  ros2 launch groot_ros groot.launch.py checkpoint:={folder} contract:={folder / 'contract.yaml'}"
