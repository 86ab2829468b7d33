"""Angles: the same direction in one turn, and the short way round."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groot_ros.numerics.angles import shortest_angle, wrap_to_pi

angles = st.floats(-1e4, 1e4)


@given(angle=angles)
def test_wrapping_keeps_the_direction_and_stays_in_one_turn(angle):
    wrapped = float(wrap_to_pi(angle))
    assert -np.pi <= wrapped < np.pi
    assert np.sin(wrapped) == pytest.approx(np.sin(angle), abs=1e-9)
    assert np.cos(wrapped) == pytest.approx(np.cos(angle), abs=1e-9)


@given(angle=st.floats(-3.14, 3.14))
def test_an_angle_that_needs_no_wrapping_keeps_every_bit(angle):
    assert float(wrap_to_pi(angle)) == angle


def test_half_a_turn_is_written_as_minus_pi():
    np.testing.assert_array_equal(wrap_to_pi([np.pi, -np.pi]), [-np.pi, -np.pi])


@given(start=angles, end=angles)
def test_the_short_way_leads_to_the_end_and_is_never_longer_than_half_a_turn(start, end):
    way = float(shortest_angle(start, end))
    assert abs(way) <= np.pi
    assert np.cos(start + way) == pytest.approx(np.cos(end), abs=1e-9)


def test_the_short_way_crosses_the_seam():
    assert float(shortest_angle(np.radians(170), np.radians(-170))) == pytest.approx(np.radians(20))
