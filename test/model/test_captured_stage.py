"""A stage that is captured must prove itself before it is used."""

from __future__ import annotations

import logging

import pytest
import torch

from groot_ros.model.fast import graph
from groot_ros.model.fast.graph import Capture, CapturedStage

GPU = torch.device("cuda")  # a name only: the capturing itself is replaced here


class Stage:
    """Doubles what lies at an address, and counts how often it is called."""

    def __init__(self):
        self.source = torch.tensor([1.0, 2.0, 3.0])
        self.calls = 0

    def __call__(self):
        self.calls += 1
        return self.source * 2


def captured(error):
    """A capture whose replay is off by ``error``."""

    def capture(function, device):
        output = function()
        source = output.clone()
        return Capture(lambda: output.copy_(source + error), output)

    return capture


def test_a_capture_that_gives_the_same_is_replayed(monkeypatch):
    stage = Stage()
    monkeypatch.setattr(graph, "capture_graph", captured(0.0))
    run = CapturedStage(stage, GPU)
    calls = stage.calls
    assert torch.equal(run(), torch.tensor([2.0, 4.0, 6.0]))
    assert stage.calls == calls, "the function itself is not called any more"


@pytest.mark.parametrize("error", [1e-3, float("nan")])
def test_a_capture_that_gives_something_else_is_told_and_not_used(monkeypatch, caplog, error):
    stage = Stage()
    monkeypatch.setattr(graph, "capture_graph", captured(error))
    with caplog.at_level(logging.WARNING):
        run = CapturedStage(stage, GPU)
    assert "gives another result than the network itself" in caplog.text
    stage.source += 1
    assert torch.equal(run(), torch.tensor([4.0, 6.0, 8.0]))


def test_a_stage_that_cannot_be_captured_is_told_and_runs_step_by_step(monkeypatch, caplog):
    def capture(function, device):
        msg = "operation not permitted when stream is capturing"
        raise RuntimeError(msg)

    stage = Stage()
    monkeypatch.setattr(graph, "capture_graph", capture)
    with caplog.at_level(logging.WARNING):
        run = CapturedStage(stage, GPU)
    assert "cannot be captured as a CUDA graph (operation not permitted" in caplog.text
    address = run.output.data_ptr()
    stage.source += 1
    assert torch.equal(run(), torch.tensor([4.0, 6.0, 8.0]))
    assert run.output.data_ptr() == address
