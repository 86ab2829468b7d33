"""What a user may choose for a policy: device, number type and rate; what cannot be is refused, never replaced."""

from __future__ import annotations

import math

import torch

from groot_ros.checkpoint import Checkpoint
from groot_ros.errors import CheckpointError, DeviceError

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def select_device(name: str) -> torch.device:
    """The device that a user named; an absent one is an error, never a quiet CPU.

    Raises:
        DeviceError: The device is not there or its name is unknown.

    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    kind = name.split(":", maxsplit=1)[0]
    if kind not in {"cpu", "cuda"}:
        msg = f"device: found {name!r}; allowed are auto, cpu, cuda and cuda:N"
        raise DeviceError(msg)
    if kind == "cuda" and not torch.cuda.is_available():
        built = torch.version.cuda
        cause = (
            f"torch was built for CUDA {built} but finds no GPU; check `nvidia-smi`"
            if built
            else ("this torch is a CPU build; install a CUDA build of torch")
        )
        msg = f"device: {name!r} was asked for, but {cause}, or choose device:=cpu"
        raise DeviceError(msg)
    try:
        device = torch.device(name)
    except RuntimeError as error:
        msg = f"device: found {name!r}; allowed are auto, cpu, cuda and cuda:N"
        raise DeviceError(msg) from error
    if device.type == "cuda" and device.index is not None and device.index >= torch.cuda.device_count():
        msg = f"device: {name!r} was asked for, but this machine has {torch.cuda.device_count()} CUDA device(s)"
        raise DeviceError(msg)
    return device


def select_dtype(name: str | None, device: torch.device) -> torch.dtype:
    """The number type of the weights: as named, else bfloat16 on CUDA and float32 on the CPU.

    Raises:
        DeviceError: The name is unknown.

    """
    if name is None:
        return torch.bfloat16 if device.type == "cuda" else torch.float32
    if name not in DTYPES:
        msg = f"dtype: found {name!r}; allowed are {', '.join(DTYPES)}"
        raise DeviceError(msg)
    return DTYPES[name]


def agreed_rate(checkpoint: Checkpoint, rate_hz: float | None) -> float:
    """The rate of the rows, on which the checkpoint and the caller must agree.

    Raises:
        CheckpointError: They name different rates, or neither names one.

    """
    recorded = checkpoint.fps
    if rate_hz is None and recorded is None:
        msg = (
            f"{checkpoint.path}: it does not record the rate that it was trained at, so rate_hz must be given: "
            "the frames a second of the training data"
        )
        raise CheckpointError(msg)
    if rate_hz is not None and recorded is not None and not math.isclose(rate_hz, recorded):
        msg = (
            f"{checkpoint.path}: it was trained at {recorded:g} Hz, but {rate_hz:g} Hz was asked for; a chunk would be "
            f"executed {rate_hz / recorded:.2f} times as fast as it was learned: set rate_hz to {recorded:g}"
        )
        raise CheckpointError(msg)
    rate = recorded if rate_hz is None else rate_hz
    assert rate is not None
    return float(rate)
