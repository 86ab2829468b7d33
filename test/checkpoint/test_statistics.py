"""statistics.json: finite, complete, and of one length."""

import json

import numpy as np
import pytest
from support.golden import TINY_SINGLE

from groot_ros.checkpoint import parse_statistics
from groot_ros.checkpoint.writing import statistics_json
from groot_ros.errors import CheckpointError

FILE = json.loads((TINY_SINGLE / "statistics.json").read_text())
ENTRY = {"min": [0.0, 1.0], "max": [1.0, 2.0], "mean": [0.5, 1.5], "std": [0.1, 0.1]}


def parse(modality="state", **changes):
    entry = {key: value for key, value in {**ENTRY, **changes}.items() if value is not ...}
    return parse_statistics({"tag": {modality: {"arm": entry}}}, "statistics.json")["tag"]


def test_every_number_of_the_file_is_kept_in_float64():
    statistics = parse_statistics(FILE, "statistics.json")
    for tag, modalities in FILE.items():
        for modality, keys in modalities.items():
            for key, entry in keys.items():
                found = getattr(statistics[tag], modality)[key]
                for name, values in entry.items():
                    assert getattr(found, name).tolist() == values
                    assert getattr(found, name).dtype == np.float64
    assert statistics_json(statistics) == {
        tag: {name: modalities.get(name, {}) for name in ("state", "action", "relative_action")}
        for tag, modalities in FILE.items()
    }


def test_a_file_may_be_empty_and_percentiles_may_be_absent():
    assert parse_statistics({}, "statistics.json") == {}
    assert parse().state["arm"].q01 is None


def test_statistics_cannot_be_changed_by_accident():
    with pytest.raises(ValueError, match="read-only"):
        parse().state["arm"].min[0] = 3.0


def test_relative_statistics_have_a_row_for_each_step_or_one_for_all():
    steps = {name: [values, values, values] for name, values in ENTRY.items()}
    assert parse("relative_action", **steps).relative_action["arm"].min.shape == (3, 2)
    assert parse("relative_action", **steps).relative_action["arm"].dimension == 2
    assert parse("relative_action").relative_action["arm"].min.shape == (2,)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"std": ...}, r"statistics\.json: tag: state: arm: std is missing"),
        ({"min": "low"}, r"arm: min is \"low\", but must be a list of numbers"),
        ({"max": [1.0, None]}, r"arm: max is \[1\.0, null\], but must be a list of"),
        ({"max": [1.0, float("nan")]}, r"arm: max is \[1\.0, NaN\], but must be a list of finite numbers"),
        (
            {"max": [1.0, float("inf")]},
            r"must be a list of finite numbers: these statistics were taken from damaged data",
        ),
        ({"mean": [0.5]}, r"arm: mean has the shape \(1,\), but min has \(2,\)"),
        ({"min": [[0.0, 1.0]]}, r"arm: min is \[\[0\.0, 1\.0\]\], but must be a list of numbers"),
        ({"min": [[0.0], [0.0, 1.0]]}, r"but must be a list of numbers"),
    ],
)
def test_damaged_statistics_are_refused(changes, message):
    with pytest.raises(CheckpointError, match=message):
        parse(**changes)


def test_an_unknown_modality_is_refused():
    with pytest.raises(CheckpointError, match=r"tag: unknown key touch"):
        parse_statistics({"tag": {"state": {}, "touch": {}}}, "statistics.json")
