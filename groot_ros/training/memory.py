"""What a training will need of the device's memory, before it is tried, and what it takes of the device then."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import torch
from torch import nn

GIB = 2**30
_MASTER_AND_ADAM = 3 * 4  # gradient and both moments of AdamW, float32


@dataclass(frozen=True)
class MemoryEstimate:
    """Bytes of device memory.

    Attributes:
        weights: All weights, in the types that they have.
        optimiser: Gradients and the optimiser's moments of what learns.
        average: The averaged weights.
        available: What the device has; None where it is not known.

    """

    weights: int
    optimiser: int
    average: int
    available: int | None

    @property
    def fixed(self) -> int:
        """What is needed whatever the batch size."""
        return self.weights + self.optimiser + self.average

    def sentence(self) -> str:
        """The estimate in words."""
        parts = f"{_gib(self.weights)} weights, {_gib(self.optimiser)} gradients and optimiser"
        if self.average:
            parts += f", {_gib(self.average)} average"
        text = f"memory: {_gib(self.fixed)} GiB before activations ({parts})"
        if self.available is None:
            return text
        text += f"; the device has {_gib(self.available)} GiB"
        if self.fixed > self.available:
            return text + ": it will not fit; tune fewer parts, use lora, or shard with FSDP"
        if self.fixed > 0.8 * self.available:
            return text + ": little is left for activations; a small batch_size or gradient_checkpointing helps"
        return text


def estimate_memory(network: nn.Module, device: torch.device, *, averaged: bool) -> MemoryEstimate:
    """Estimate what one device holds without sharding."""
    learning = sum(p.numel() for p in network.parameters() if p.requires_grad)
    available = torch.cuda.get_device_properties(device).total_memory if device.type == "cuda" else _free_ram()
    return MemoryEstimate(
        weights=sum(p.numel() * p.element_size() for p in network.parameters()),
        optimiser=learning * _MASTER_AND_ADAM,
        average=learning * 4 if averaged else 0,
        available=available,
    )


def device_costs(device: torch.device) -> dict[str, float]:
    """What a training takes of a CUDA device, for the log; what cannot be asked is left out."""
    if device.type != "cuda":
        return {}
    costs = {"gpu_memory_gib": round(torch.cuda.max_memory_allocated(device) / GIB, 2)}
    # The driver's Python bindings are not everywhere, and where they are (MIG, Jetson) they raise errors of their own.
    with suppress(Exception):
        costs["gpu_use_percent"] = float(torch.cuda.utilization(device))
    return costs


def _free_ram() -> int | None:
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:  # noqa: PTH123 - not a file of ours
            entries = dict(line.split(":", 1) for line in lines)
        return int(entries["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return None


def _gib(size: int) -> str:
    return f"{size / GIB:.2f}"
