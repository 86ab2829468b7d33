"""Normalisation: the way there and back, and what happens where a range is nothing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groot_ros.numerics.normalization import (
    denormalize_mean_std,
    denormalize_min_max,
    normalize_mean_std,
    normalize_min_max,
)

value = st.floats(-100.0, 100.0)


@given(low=value, span=st.floats(0.01, 200.0), fraction=st.floats(0.0, 1.0))
def test_a_value_inside_its_range_comes_back(low, span, fraction):
    inside = low + fraction * span
    normalized = normalize_min_max(inside, low, low + span)
    assert -1.0 - 1e-9 <= normalized <= 1.0 + 1e-9
    assert denormalize_min_max(normalized, low, low + span) == pytest.approx(inside, abs=1e-9)


def test_the_ends_of_the_range_become_minus_one_and_one():
    np.testing.assert_array_equal(normalize_min_max([2.0, 3.0, 4.0], 2.0, 4.0), [-1.0, 0.0, 1.0])


def test_normalising_does_not_clip_and_denormalising_does():
    assert normalize_min_max(6.0, 2.0, 4.0) == 3.0
    np.testing.assert_array_equal(denormalize_min_max([-3.0, 3.0, np.inf], 2.0, 4.0), [2.0, 4.0, 4.0])


def test_a_range_that_is_as_good_as_zero_becomes_zero_but_is_spanned_on_the_way_back():
    low, high = np.array([5.0, 100.0, 0.0]), np.array([5.0, 100.0005, 1e-9])
    np.testing.assert_array_equal(normalize_min_max([7.0, 100.0004, 1.0], low, high), [0.0, 0.0, 0.0])
    np.testing.assert_array_equal(denormalize_min_max([1.0, 1.0, 1.0], low, high), high)


def test_a_range_just_above_that_is_used():
    assert normalize_min_max(100.002, 100.0, 100.002) == 1.0


@given(mean=value, std=st.floats(0.01, 100.0), raw=value)
def test_mean_and_standard_deviation_come_back_and_clip_nothing(mean, std, raw):
    assert denormalize_mean_std(normalize_mean_std(raw, mean, std), mean, std) == pytest.approx(raw, abs=1e-9)


def test_a_standard_deviation_of_zero_lets_the_value_pass_both_ways():
    assert normalize_mean_std(7.0, 3.0, 0.0) == 7.0
    assert denormalize_mean_std(7.0, 3.0, 0.0) == 7.0


def test_nan_passes_through_so_that_a_check_can_see_it():
    assert np.isnan(normalize_min_max(np.nan, 0.0, 1.0))
    assert np.isnan(denormalize_min_max(np.nan, 0.0, 1.0))
    assert np.isnan(normalize_mean_std(np.nan, 0.0, 1.0))


def test_statistics_by_time_step_apply_row_by_row():
    low, high = np.array([[0.0], [10.0]]), np.array([[1.0], [20.0]])
    chunk = np.array([[[1.0], [10.0]], [[0.0], [20.0]]])
    np.testing.assert_array_equal(normalize_min_max(chunk, low, high)[..., 0], [[1.0, -1.0], [-1.0, 1.0]])


def test_the_number_type_of_a_prediction_decides_its_rounding_and_the_result_is_float64():
    third = np.array([1.0 / 3.0], dtype=np.float32)
    single = denormalize_min_max(third, 0.0, 3.0)
    assert single.dtype == np.float64
    assert single == ((third + np.float32(1)) / np.float32(2)).astype(np.float64) * 3.0
    assert denormalize_min_max(third.astype(np.float64), 0.0, 3.0) != single
