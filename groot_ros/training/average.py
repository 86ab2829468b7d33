"""An exponential average of the weights, which wanders less than the weights themselves."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn


class WeightAverage:
    """The average of the parameters that learn.

    It follows fast at first, so that the random beginning is forgotten: the decay of step s is
    ``min(decay, (1 + s) / (10 + s))``.

    Args:
        network: The network.
        decay: Share of the old average that each step keeps.

    """

    def __init__(self, network: nn.Module, decay: float) -> None:
        self._decay = decay
        self.values = {
            name: parameter.detach().float().clone()
            for name, parameter in network.named_parameters()
            if parameter.requires_grad
        }

    @torch.no_grad()
    def update(self, network: nn.Module, step: int) -> None:
        """Take in the weights after optimiser step ``step``, counted from 1."""
        keep = min(self._decay, (1 + step) / (10 + step))
        for name, parameter in network.named_parameters():
            if name in self.values:
                self.values[name].lerp_(parameter.detach().float(), 1.0 - keep)

    def load(self, values: Mapping[str, Tensor]) -> None:
        """Go on from a saved average."""
        for name, value in self.values.items():
            value.copy_(values[name])
