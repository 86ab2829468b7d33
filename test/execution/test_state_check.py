"""A forgotten unit shows before anything moves."""

from __future__ import annotations

import numpy as np
import pytest

from groot_ros.checkpoint.statistics import KeyStatistics
from groot_ros.execution.state_check import StateFit, check_state

LOW, HIGH = np.array([-100.0, 20.0]), np.array([100.0, 90.0])
STATISTICS = {"arm": KeyStatistics(min=LOW, max=HIGH, mean=(LOW + HIGH) / 2, std=HIGH - LOW)}
NAMES = {"arm": ["pan", "lift"]}


@pytest.mark.parametrize(
    ("values", "fit", "words"),
    [
        ([0.0, 50.0], StateFit.INSIDE, ""),
        ([0.0, 15.0], StateFit.INSIDE, ""),
        ([0.0, 120.0], StateFit.UNUSUAL, "state arm/lift is 120, but was 20 to 90 in training"),
        ([2000.0, 50.0], StateFit.IMPOSSIBLE, "arm/pan is 2000"),
        ([0.0, 0.9], StateFit.UNUSUAL, "it would fit as degrees"),
        ([5000.0, 50.0], StateFit.IMPOSSIBLE, "it would fit as radians"),
        ([0.0, -50.0], StateFit.UNUSUAL, "it would fit with the other sign"),
    ],
)
def test_a_state_outside_the_training_range_is_named_with_a_likely_cause(values, fit, words):
    found, sentences = check_state({"arm": np.array([values])}, STATISTICS, NAMES)
    assert found is fit
    assert words in " ".join(sentences)
    assert bool(sentences) == (fit is not StateFit.INSIDE)
