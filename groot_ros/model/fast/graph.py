"""A stage of the network as a CUDA graph: one launch instead of thousands, and no word from the host in between."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

WARM_UP_RUNS = 3
"""Kernels are chosen and memory is taken in the first runs, which a graph must not contain."""
ROUNDING_STEPS = 4
"""Kernels may sum in another order from run to run: so many of the number type's steps, of the largest value."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Capture:
    """A captured function: what runs it again, and where its result lies."""

    replay: Callable[[], None]
    output: Tensor


def capture_graph(function: Callable[[], Tensor], device: torch.device) -> Capture:
    """Record what ``function`` launches on a CUDA device.

    Raises:
        RuntimeError: Something in it cannot be captured.

    """
    side = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    side.wait_stream(torch.cuda.current_stream(device))
    with torch.cuda.stream(side):
        for _ in range(WARM_UP_RUNS):
            function()
    torch.cuda.current_stream(device).wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        output = function()
    return Capture(graph.replay, output)


class CapturedStage:
    """A function of tensors that stay at their addresses.

    On a GPU it is captured once, and replayed if the replay gives what the function itself gives; on a CPU it is called
    each time. The result is at one address in both.

    Args:
        function: Reads tensors at fixed addresses, waits for nothing, and depends on no value from the device.
        device: Where its tensors are.

    """

    def __init__(self, function: Callable[[], Tensor], device: torch.device) -> None:
        self._function = function
        self._replay: Callable[[], None] | None = None
        self.output = function().clone()
        if device.type == "cuda":
            self._capture(device)

    def __call__(self) -> Tensor:
        """Run it on what now lies at the addresses; the result is valid until the next call."""
        if self._replay is not None:
            self._replay()
        else:
            self.output.copy_(self._function())
        return self.output

    def _capture(self, device: torch.device) -> None:
        cost = "this stage runs step by step instead, with the same result and a higher latency"
        try:
            capture = capture_graph(self._function, device)
        except RuntimeError as error:
            _log.warning("a stage of the network cannot be captured as a CUDA graph (%s); %s", error, cost)
            return
        capture.replay()
        difference = float((capture.output - self.output).abs().max())
        allowed = ROUNDING_STEPS * torch.finfo(self.output.dtype).eps * float(self.output.abs().max())
        if not difference <= allowed:
            _log.warning(
                "a CUDA graph of the network gives another result than the network itself (largest difference %.3g, "
                "allowed %.3g); %s",
                difference,
                allowed,
                cost,
            )
            return
        self._replay, self.output = capture.replay, capture.output
