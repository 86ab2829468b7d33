"""A stage of the network as a CUDA graph: one launch instead of thousands, and no word from the host in between."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

WARM_UP_RUNS = 3
"""Kernels are chosen and memory is taken in the first runs, which a graph must not contain."""


class CapturedStage:
    """A function of tensors that stay at their addresses.

    On a GPU it is captured once and replayed; on a CPU it is called each time. The result is at one address in both.

    Args:
        function: Reads tensors at fixed addresses, waits for nothing, and depends on no value from the device.
        device: Where its tensors are.

    """

    def __init__(self, function: Callable[[], Tensor], device: torch.device) -> None:
        self._function = function
        self._graph: torch.cuda.CUDAGraph | None = None
        if device.type != "cuda":
            self.output = function().clone()
            return
        side = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(side):
            for _ in range(WARM_UP_RUNS):
                function()
        torch.cuda.current_stream(device).wait_stream(side)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self.output = function()

    def __call__(self) -> Tensor:
        """Run it on what now lies at the addresses; the result is valid until the next call."""
        if self._graph is not None:
            self._graph.replay()
        else:
            self.output.copy_(self._function())
        return self.output
