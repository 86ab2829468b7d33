"""Every contract that is shipped: it loads, and its maps lead from the policy to the robot and back."""

from __future__ import annotations

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation
from support.contracts import ROBOTS

from groot_ros.contract import Contract, load_contract
from groot_ros.contract.actions import Meaning
from groot_ros.contract.groups import BinaryMap
from groot_ros.contract.poses import POSE_DIMENSIONS, PoseMap
from groot_ros.execution.executor import Executor
from groot_ros.observation import ActionChunk

NAMES = sorted(path.stem for path in ROBOTS.glob("*.yaml"))
CONTRACTS = {name: load_contract(ROBOTS / f"{name}.yaml") for name in NAMES}
MAPS = {
    f"{name} {kind} {group}": getattr(contract, f"{kind}_map")(group)
    for name, contract in CONTRACTS.items()
    for kind, groups in (("state", contract.state), ("action", contract.actions))
    for group in groups
}


def robot_values(group_map, seed: int) -> np.ndarray:
    """Any values that the robot could have."""
    generator = np.random.default_rng(seed)
    pieces = []
    for part in group_map.parts:
        if isinstance(part, PoseMap):
            quaternion = Rotation.random(random_state=seed).as_quat()
            pieces.append([*generator.uniform(-1, 1, 3), *quaternion * np.sign(quaternion[3])])
        elif isinstance(part, BinaryMap):
            pieces.append(generator.choice(part.robot_levels, len(part.names)))
        else:
            pieces.append(generator.uniform(-3, 3, len(part.names)))
    return np.concatenate(pieces)


def test_the_five_robots_are_there():
    assert NAMES == ["demo", "droid_franka", "dual_arm", "libero_sim", "so101"]


@pytest.mark.parametrize("name", MAPS)
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=20, deadline=None)
def test_robot_to_policy_and_back_is_the_same_robot(name, seed):
    group_map = MAPS[name]
    if any(isinstance(part, PoseMap) and len(part.taken) != len(part.whole) for part in group_map.parts):
        return  # a part of a pose is seen, never commanded
    values = robot_values(group_map, seed)
    policy = group_map.to_policy(values)
    assert policy.shape == (len(group_map.dimensions),)
    back = group_map.to_robot(policy)
    np.testing.assert_allclose(back, values, rtol=0, atol=1e-12)
    np.testing.assert_allclose(group_map.to_policy(back), policy, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_every_used_dimension_is_sent_once_and_its_name_is_known(name):
    contract = CONTRACTS[name]
    sent = [(row.group, row.dimension) for output in contract.outputs for row in contract.output_rows(output)]
    wanted = [
        (group, dimension)
        for group, action in contract.actions.items()
        if action.meaning is not Meaning.UNUSED
        for dimension in contract.action_dimensions(group)
    ]
    assert sorted(sent) == sorted(wanted)


@pytest.mark.parametrize("name", NAMES)
def test_recorded_commands_have_the_units_of_the_actions(name):
    contract = CONTRACTS[name]
    for group, sources in contract.record.groups.items():
        assert [name for source in sources for name in source.dimensions] == contract.action_dimensions(group)


def test_so101_joints_are_degrees_for_the_policy_and_radians_for_the_robot():
    arm = CONTRACTS["so101"].action_map("single_arm")
    np.testing.assert_allclose(
        arm.to_robot(np.array([[90.0, 0, -180.0, 0, 1.0]])), [[np.pi / 2, 0, -np.pi, 0, np.pi / 180]]
    )


def test_droid_poses_are_the_rows_of_the_rotation_times_the_tool_frame():
    contract = CONTRACTS["droid_franka"]
    rotation = Rotation.from_euler("XYZ", [3.0, -0.2, 0.5])
    tool = np.array([[0, 0, -1], [-1, 0, 0], [0, 1, 0]])
    pose = np.concatenate([[0.4, 0.1, 0.3], rotation.as_quat()])
    wanted = np.concatenate([pose[:3], (rotation.as_matrix() @ tool)[:2].ravel()])
    np.testing.assert_allclose(contract.state_map("eef_9d").to_policy(pose), wanted, atol=1e-12)


def test_droid_gripper_is_0_open_and_1_closed():
    gripper = CONTRACTS["droid_franka"].state_map("gripper_position")
    np.testing.assert_allclose(gripper.to_policy(np.array([[0.04], [0.0]])), [[0.0], [1.0]])


def test_libero_state_is_position_and_axis_angle_of_one_pose():
    contract = CONTRACTS["libero_sim"]
    pose = np.concatenate([[0.1, 0.2, 0.3], Rotation.from_rotvec([0.4, 0.5, 0.6]).as_quat()])
    values = [contract.state_map(group).to_policy(pose)[0] for group in ("x", "y", "z", "roll", "pitch", "yaw")]
    np.testing.assert_allclose(values, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6])


def test_a_binary_gripper_is_always_one_of_two_levels():
    gripper = CONTRACTS["dual_arm"].action_map("left_gripper")
    assert set(gripper.to_robot(np.linspace(-1, 2, 50)[:, None]).ravel()) == {0.0, 0.04}


def test_a_pose_is_seven_numbers_for_the_robot():
    assert CONTRACTS["dual_arm"].action_map("left_eef").robot_names == POSE_DIMENSIONS


@pytest.mark.parametrize("name", NAMES)
def test_every_robot_can_begin_to_move(name):
    written = yaml.safe_load((ROBOTS / f"{name}.yaml").read_text())
    contract = Contract.model_validate(written | {"limits": "none"})  # random values keep to none
    executor = Executor(contract, horizon=16)
    state = {group: contract.state_map(group) for group in contract.state}
    now_ns = 1_000_000_000
    executor.observe(
        {group: one.to_policy(robot_values(one, 3))[None].astype(np.float32) for group, one in state.items()},
        now_ns,
        now_ns,
    )
    groups = {}
    for group, action in contract.actions.items():
        if action.meaning is Meaning.UNUSED:
            groups[group] = np.zeros((16, len(contract.action_dimensions(group))))
        else:
            one = contract.action_map(group)
            groups[group] = np.tile(one.to_policy(robot_values(one, 3)), (16, 1))
    names = {group: [str(number) for number in range(rows.shape[1])] for group, rows in groups.items()}
    inference = executor.begin_inference(now_ns, now_ns)
    accepted = executor.accept(ActionChunk(now_ns, contract.period_s, groups, names), inference, now_ns)
    assert accepted.accepted, accepted.sentence
