"""The planar arm, its motors, its expert and its cameras."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groot_ros.demo.arm import PlanarArm, demo_arm
from groot_ros.demo.episode import draw_episode, home
from groot_ros.demo.expert import ScriptedExpert
from groot_ros.demo.scene import TARGET_RGB, VIEWS, Scene
from groot_ros.demo.simulation import ArmSimulation
from groot_ros.errors import GrootError

ARM = demo_arm()
LONGER_ARM = demo_arm(("shoulder", "elbow", "wrist"), (0.4, 0.3, 0.3))


def test_a_stretched_arm_reaches_as_far_as_its_links():
    np.testing.assert_allclose(ARM.tip(np.zeros(3)), [1.0, 0.0])
    np.testing.assert_allclose(ARM.tip(np.array([np.pi / 2, np.pi / 2, 0.3])), [-0.5, 0.5], atol=1e-15)


def test_one_link_length_a_joint_is_needed():
    with pytest.raises(GrootError, match="give one link length a joint"):
        PlanarArm(("shoulder", "elbow"), (0.5,), "gripper", ARM.limits)


@pytest.mark.parametrize("arm", [ARM, LONGER_ARM], ids=["two joints", "three joints"])
@pytest.mark.parametrize("seed", range(0, 200, 7))
def test_the_expert_reaches_every_target_within_the_limits_and_grips(arm, seed):
    episode = draw_episode(arm, seed)
    expert = ScriptedExpert.for_episode(arm, episode)
    for _ in range(30):
        command = expert.step(0.1)
        assert np.all((arm.lower <= command) & (command <= arm.upper))
    assert np.hypot(*(arm.tip(command) - episode.target)) < 0.01 * arm.reach_m
    assert command[-1] < 0.01


def test_the_expert_is_as_fast_at_any_rate():
    slow, fast = (ScriptedExpert.for_episode(ARM, draw_episode(ARM, 4)) for _ in range(2))
    slow_path = np.stack([slow.step(0.1) for _ in range(10)])
    fast_path = np.stack([[fast.step(0.01) for _ in range(10)][-1] for _ in range(10)])
    np.testing.assert_allclose(slow_path[:, :2], fast_path[:, :2], atol=0.06)


def test_an_episode_is_its_seed():
    first, again, other = draw_episode(ARM, 5), draw_episode(ARM, 5), draw_episode(ARM, 6)
    np.testing.assert_array_equal(first.target, again.target)
    np.testing.assert_array_equal(first.start, again.start)
    assert np.any(first.target != other.target)


@given(st.floats(0.001, 0.04), st.lists(st.floats(-5, 5), min_size=3, max_size=3))
def test_the_motors_keep_their_limits_whatever_is_commanded(elapsed_s, command):
    simulation = ArmSimulation(ARM, home(ARM))
    for _ in range(50):
        before = simulation.positions
        simulation.step(np.array(command), elapsed_s)
        assert np.all(np.abs(simulation.positions - before) <= ARM.velocity * elapsed_s + 1e-12)
        assert np.all((ARM.lower - 1e-12 <= simulation.positions) & (simulation.positions <= ARM.upper + 1e-12))


def test_the_motors_follow_with_a_first_order_lag():
    simulation = ArmSimulation(ARM, home(ARM), lag_s=0.05)
    goal = home(ARM) - 0.01
    for _ in range(10):
        simulation.step(goal, 0.005)
    np.testing.assert_allclose(simulation.positions - goal, 0.01 * np.exp(-1), rtol=1e-9)


@pytest.mark.parametrize("name", VIEWS)
def test_the_cameras_show_where_the_target_is(name):
    scene = Scene(ARM, VIEWS[name], 640, 480)
    positions, frames = np.array([0.2, 1.4, 0.8]), []
    for offset in (0.0, 0.1):
        frame = np.zeros((480, 640, 3), np.uint8)
        scene.draw(positions, ARM.tip(positions) + np.array([0.12 + offset, 0.05]), frame)
        rows, columns = np.nonzero(np.all(frame == TARGET_RGB, axis=-1))
        frames.append(np.array([columns.mean(), rows.mean()]))
    shift_m = np.hypot(*(frames[1] - frames[0])) / scene.pixels_per_m
    assert shift_m == pytest.approx(0.1, abs=0.02)


def test_the_wrist_camera_moves_with_the_gripper():
    scene, frame, again = Scene(ARM, VIEWS["wrist"], 640, 480), *np.zeros((2, 480, 640, 3), np.uint8)
    first, turned = np.array([0.2, 1.4, 0.8]), np.array([0.9, 1.4, 0.8])
    scene.draw(first, np.array([3.0, 3.0]), frame)
    scene.draw(turned, np.array([3.0, 3.0]), again)
    np.testing.assert_array_equal(frame[200:240], again[200:240])


def test_every_pixel_is_drawn_again():
    scene, blank, used = Scene(ARM, VIEWS["front"], 640, 480), *np.full((2, 480, 640, 3), 7, np.uint8)
    target = np.array([0.3, 0.6])
    scene.draw(np.array([2.0, -1.0, 0.0]), -target, used)
    scene.draw(np.array([0.2, 1.4, 0.8]), target, used)
    scene.draw(np.array([0.2, 1.4, 0.8]), target, blank)
    np.testing.assert_array_equal(used, blank)
