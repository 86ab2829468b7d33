"""What the ranks of a training have in common, and weights that are sharded over them (FSDP)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule
from torch.distributed.tensor import DTensor, distribute_tensor


@contextmanager
def whole(network: nn.Module) -> Iterator[None]:
    """Sharded weights come together for a while: validation calls more than the forward pass."""
    parts = [module for module in network.modules() if isinstance(module, FSDPModule)]
    for part in parts:
        part.unshard()
    yield
    for part in parts:
        part.reshard()


def shared_like(value: Tensor, parameter: Tensor) -> Tensor:
    """The own share of a value where the parameter is sharded."""
    if isinstance(parameter, DTensor):
        return distribute_tensor(value.to(parameter.device), parameter.device_mesh, parameter.placements)
    return value


def own_share(parameter: Tensor) -> Tensor:
    """What this rank holds of a parameter."""
    return parameter.to_local() if isinstance(parameter, DTensor) else parameter


def largest(value: Tensor) -> int:
    """The largest of the ranks' whole numbers; every rank must ask."""
    common = value.detach().clone()
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.all_reduce(common, op=torch.distributed.ReduceOp.MAX)
    return int(common)
