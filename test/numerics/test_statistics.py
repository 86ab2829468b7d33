"""Statistics of a stream equal a plain numpy computation on all of it, however it is cut into blocks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groot_ros.numerics.relative import RelativeKind, to_relative
from groot_ros.numerics.statistics import RelativeStatistics, StreamingStatistics


def assert_equal_to_numpy(found, data):
    assert found.count == len(data)
    np.testing.assert_array_equal(found.min, data.min(axis=0))
    np.testing.assert_array_equal(found.max, data.max(axis=0))
    np.testing.assert_array_equal(found.q01, np.quantile(data, 0.01, axis=0))
    np.testing.assert_array_equal(found.q99, np.quantile(data, 0.99, axis=0))
    np.testing.assert_allclose(found.mean, data.mean(axis=0), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found.std, data.std(axis=0), rtol=1e-10, atol=1e-12)


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    rows=st.integers(1, 1500),
    surplus=st.integers(0, 2000),
    cuts=st.lists(st.integers(0, 1500), max_size=8),
)
def test_blocks_of_any_length_give_what_numpy_gives_on_all_rows(seed, rows, surplus, cuts):
    data = np.random.default_rng(seed).normal([0.0, 1e3, -5.0], [1.0, 1e-3, 20.0], (rows, 3))
    statistics = StreamingStatistics((3,), most_rows=rows + surplus)
    for block in np.split(data, sorted(min(cut, rows) for cut in cuts)):
        statistics.add(block)
    assert_equal_to_numpy(statistics.finish(), data)


@pytest.mark.parametrize("rows", [1, 2, 3, 99, 100, 101, 102, 200, 201])
def test_short_streams_and_those_where_a_quantile_falls_on_a_row(rows):
    data = np.random.default_rng(rows).permutation(rows).astype(np.float64)[:, None]
    statistics = StreamingStatistics((1,), most_rows=rows)
    for row in data:
        statistics.add(row[None])
    assert_equal_to_numpy(statistics.finish(), data)


def test_a_sorted_stream_in_either_direction_keeps_its_quantiles():
    rising = np.arange(5000, dtype=np.float64)[:, None]
    for data in (rising, rising[::-1]):
        statistics = StreamingStatistics((1,), most_rows=5000)
        for block in np.split(data, 50):
            statistics.add(block)
        assert_equal_to_numpy(statistics.finish(), data)


def test_a_buffer_that_is_used_again_does_not_change_what_was_taken():
    buffer = np.zeros((2, 1))
    statistics = StreamingStatistics((1,), most_rows=400)
    for value in range(200):
        buffer[:] = value
        statistics.add(buffer)
    assert_equal_to_numpy(statistics.finish(), np.repeat(np.arange(200.0), 2)[:, None])


def test_a_group_of_no_dimensions_has_statistics_of_no_dimensions():
    statistics = StreamingStatistics((0,), most_rows=10)
    statistics.add(np.zeros((10, 0)))
    assert statistics.finish().q99.shape == (0,)


@pytest.mark.parametrize(
    ("block", "message"),
    [
        (np.zeros((2, 4)), r"rows of shape \(3,\) cannot take a block of shape \(2, 4\)"),
        (np.zeros(3), r"cannot take a block of shape \(3,\)"),
        (np.array([[0, 0, 0], [0, np.nan, 0]]), r"row 1, dimension \(1,\) is nan"),
        (np.zeros((6, 3)), r"6 rows came, but only 5 were announced"),
    ],
)
def test_what_does_not_belong_is_refused(block, message):
    with pytest.raises(ValueError, match=message):
        StreamingStatistics((3,), most_rows=5).add(block)


def test_nothing_has_no_statistics():
    with pytest.raises(ValueError, match="not one row has come"):
        StreamingStatistics((3,), most_rows=5).finish()
    with pytest.raises(ValueError, match="most_rows is 0"):
        StreamingStatistics((3,), most_rows=0)


@pytest.mark.parametrize(
    ("kind", "dimension"),
    [(RelativeKind.JOINTS, 5), (RelativeKind.XYZ_ROTVEC, 6), (RelativeKind.XYZ_ROT6D, 9)],
)
def test_relative_statistics_equal_numpy_over_every_chunk_of_every_episode(kind, dimension):
    random = np.random.default_rng(1)
    horizon, lengths = 8, (40, 7, 8, 63)
    episodes = [(random.uniform(-1, 1, (n, dimension)), random.uniform(-1, 1, (n, dimension))) for n in lengths]
    statistics = RelativeStatistics(range(horizon), dimension=dimension, kind=kind, most_frames=sum(lengths))
    counts = [statistics.add_episode(actions, states) for actions, states in episodes]
    assert counts == [33, 0, 1, 56]
    chunks = [
        to_relative(actions[start : start + horizon], states[start], kind)
        for actions, states in episodes
        for start in range(len(actions) - horizon + 1)
    ]
    found = statistics.finish()
    assert found.min.shape == (horizon, dimension)
    for name, wanted in {
        "min": np.min(chunks, axis=0),
        "max": np.max(chunks, axis=0),
        "mean": np.mean(chunks, axis=0),
        "std": np.std(chunks, axis=0),
        "q01": np.quantile(chunks, 0.01, axis=0),
        "q99": np.quantile(chunks, 0.99, axis=0),
    }.items():
        np.testing.assert_allclose(getattr(found, name), wanted, rtol=0, atol=1e-12)


def test_a_chunk_that_does_not_begin_at_its_reference_is_refused():
    with pytest.raises(ValueError, match=r"state is taken at row 0 and the first action at row 1"):
        RelativeStatistics(range(1, 9), dimension=5, kind=RelativeKind.JOINTS, most_frames=10)


def test_an_episode_with_fewer_states_than_actions_is_refused():
    statistics = RelativeStatistics(range(4), dimension=2, kind=RelativeKind.JOINTS, most_frames=10)
    with pytest.raises(ValueError, match=r"there are 9 and 10"):
        statistics.add_episode(np.zeros((10, 2)), np.zeros((9, 2)))


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32 - 1), rows=st.integers(1, 400), surplus=st.integers(0, 300))
def test_the_quantiles_in_the_middle_that_lerobot_wants_are_exact_too(seed, rows, surplus):
    data = np.random.default_rng(seed).normal(size=(rows, 2))
    statistics = StreamingStatistics((2,), most_rows=rows + surplus, quantiles=(0.01, 0.10, 0.50, 0.90, 0.99))
    for block in np.array_split(data, 3):
        statistics.add(block)
    found = statistics.finish()
    assert_equal_to_numpy(found, data)
    for values, quantile in ((found.q10, 0.10), (found.q50, 0.50), (found.q90, 0.90)):
        np.testing.assert_array_equal(values, np.quantile(data, quantile, axis=0))
