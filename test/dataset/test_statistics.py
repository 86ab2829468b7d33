"""Statistics of a dataset equal a plain numpy computation on all of its rows, and GR00T takes them as they are."""

import hashlib
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import datasets
from support.datasets import HORIZON, make_spec, write_dataset

from groot_ros.dataset.image_statistics import MOST_PIXELS, ImageHistogram
from groot_ros.dataset.modality import Modality
from groot_ros.dataset.reader import open_dataset
from groot_ros.dataset.spec import RelativeAction
from groot_ros.dataset.statistics import dataset_statistics
from groot_ros.errors import DatasetError
from groot_ros.numerics.relative import RelativeKind, to_relative

QUANTILES = {"q01": 0.01, "q10": 0.10, "q50": 0.50, "q90": 0.90, "q99": 0.99}


def assert_equals_numpy(entry, values):
    values = values.astype(np.float64).reshape(len(values), -1)
    np.testing.assert_array_equal(entry["min"], values.min(axis=0))
    np.testing.assert_array_equal(entry["max"], values.max(axis=0))
    np.testing.assert_allclose(entry["mean"], values.mean(axis=0), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(entry["std"], values.std(axis=0), rtol=1e-9, atol=1e-12)
    for name, quantile in QUANTILES.items():
        np.testing.assert_array_equal(entry[name], np.quantile(values, quantile, axis=0))
    assert entry["count"] == [len(values)]


def test_the_files_of_statistics_equal_numpy_on_all_rows(dataset_root):
    dataset = open_dataset(dataset_root)
    entries = json.loads((dataset_root / "meta/stats.json").read_text())
    for name in ("observation.state", "action", "timestamp", "frame_index", "episode_index", "index", "task_index"):
        assert_equals_numpy(entries[name], np.concatenate([dataset.column(episode, name) for episode in range(3)]))
    assert all(isinstance(value, int) for value in entries["index"]["max"])


def test_statistics_of_a_camera_are_those_of_its_pixels(dataset_root):
    entries = json.loads((dataset_root / "meta/stats.json").read_text())
    pixels = np.concatenate(
        [datasets.frame("wrist", episode, row) for episode, rows in enumerate((30, 25, 28)) for row in range(rows)]
    ).reshape(-1, 3)
    entry = entries["observation.images.wrist"]
    assert entry["count"] == [83]
    np.testing.assert_allclose(np.ravel(entry["mean"]), pixels.mean(axis=0) / 255, rtol=1e-12)
    np.testing.assert_allclose(np.ravel(entry["std"]), pixels.std(axis=0) / 255, rtol=1e-9)
    for name, quantile in QUANTILES.items():
        np.testing.assert_allclose(np.ravel(entry[name]), np.quantile(pixels, quantile, axis=0) / 255, rtol=1e-12)


def test_groot_finds_the_statistics_of_every_float_column_with_the_fingerprint_of_its_schema(dataset_root):
    view = json.loads((dataset_root / "groot/meta/stats.json").read_text())
    info = json.loads((dataset_root / "groot/meta/info.json").read_text())
    floats = {name for name, feature in info["features"].items() if "float" in feature["dtype"]}
    assert view.keys() - {"__fingerprints__"} == floats == {"observation.state", "action", "timestamp"}
    text = '{"dtype":"float32","feature":"action","shape":[4]}'
    assert view["__fingerprints__"]["action"] == "sha256:" + hashlib.sha256(text.encode()).hexdigest()
    full = json.loads((dataset_root / "meta/stats.json").read_text())
    assert view["action"] == {key: full["action"][key] for key in ("mean", "std", "min", "max", "q01", "q99")}


def test_relative_statistics_are_those_of_every_chunk_against_its_own_state(dataset_root):
    dataset = open_dataset(dataset_root)
    chunks = []
    for episode in range(3):
        states, actions = dataset.state(episode, "single_arm"), dataset.action(episode, "single_arm")
        states, actions = states.astype(np.float64), actions.astype(np.float64)
        chunks += [actions[row : row + HORIZON] - states[row] for row in range(len(states) - HORIZON + 1)]
    entry = json.loads((dataset_root / "groot/meta/relative_stats.json").read_text())["single_arm"]
    assert np.shape(entry["min"]) == (HORIZON, 3)
    np.testing.assert_array_equal(entry["min"], np.min(chunks, axis=0))
    np.testing.assert_array_equal(entry["max"], np.max(chunks, axis=0))
    np.testing.assert_array_equal(entry["q01"], np.quantile(chunks, 0.01, axis=0))
    np.testing.assert_array_equal(entry["q99"], np.quantile(chunks, 0.99, axis=0))
    np.testing.assert_allclose(entry["mean"], np.mean(chunks, axis=0), atol=1e-12)
    np.testing.assert_allclose(entry["std"], np.std(chunks, axis=0), atol=1e-12)


def test_end_effector_poses_have_relative_statistics_too():
    generator = np.random.default_rng(0)
    poses = np.concatenate([generator.normal(size=(40, 3)), generator.normal(size=(40, 3))], axis=1)
    commands = poses + 0.01
    relative = RelativeAction(
        action_key="ee", state_key="ee", delta_indices=(0, 1, 2), kind=RelativeKind.XYZ_ROTVEC, embodiment_tag="tag"
    )
    feature = {"dtype": "float64", "shape": [6]}
    statistics = dataset_statistics(
        [{"observation.state": poses, "action": commands}],
        features={"observation.state": feature, "action": feature},
        modality=Modality.from_groups({"ee": 6}, {"ee": 6}, ()),
        total_frames=40,
        relative_actions=[relative],
    )
    chunks = [to_relative(commands[row : row + 3], poses[row], RelativeKind.XYZ_ROTVEC) for row in range(38)]
    np.testing.assert_allclose(statistics.relative[relative].mean, np.mean(chunks, axis=0), atol=1e-12)


def test_where_no_episode_is_as_long_as_a_chunk_there_is_no_file_of_relative_statistics(tmp_path):
    root = write_dataset(tmp_path / "short", lengths=(HORIZON - 1,))
    assert not (root / "groot/meta/relative_stats.json").exists()


def test_a_value_that_is_not_finite_is_named_with_its_episode():
    features = {"action": {"dtype": "float32", "shape": [2]}}
    good, bad = np.zeros((3, 2)), np.zeros((3, 2))
    bad[1, 0] = np.inf
    with pytest.raises(DatasetError, match=r"episode 1: .*row 1, dimension \(0,\) is inf"):
        dataset_statistics(
            [{"action": good}, {"action": bad}],
            features=features,
            modality=Modality.from_groups({}, {}, ()),
            total_frames=6,
        )


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), frames=st.integers(1, 4), levels=st.integers(1, 256))
def test_a_histogram_knows_every_quantile_that_numpy_finds_in_the_pixels(seed, frames, levels):
    pictures = np.random.default_rng(seed).integers(0, levels, (frames, 9, 7, 3)).astype(np.uint8)
    histogram, second = ImageHistogram(), ImageHistogram()
    for number, picture in enumerate(pictures):
        (histogram if number % 2 else second).add(picture)
    histogram.merge(ImageHistogram.from_json(second.to_json()))
    entry = histogram.statistics()
    pixels = pictures.reshape(-1, 3) / 255
    assert entry["count"] == [frames]
    np.testing.assert_allclose(np.ravel(entry["mean"]), pixels.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(np.ravel(entry["std"]), pixels.std(axis=0), atol=1e-9)
    for name, quantile in {"min": 0.0, "max": 1.0, **QUANTILES}.items():
        np.testing.assert_allclose(np.ravel(entry[name]), np.quantile(pixels, quantile, axis=0), atol=1e-12)


def test_large_pictures_are_counted_on_a_grid():
    histogram = ImageHistogram()
    histogram.add(np.zeros((1080, 1920, 3), dtype=np.uint8))
    assert MOST_PIXELS / 2 < histogram.counts[0].sum() <= MOST_PIXELS


def test_a_relative_action_needs_a_reference_of_its_own_size():
    relative = make_spec().relative_actions[0]
    with pytest.raises(DatasetError, match="'single_arm' has 3 dimensions, but its reference 'single_arm' has 1"):
        make_spec(state={"single_arm": ("a",)}, relative_actions=(relative,))
