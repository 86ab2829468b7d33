"""How make's environment treats what a machine already has: a ROS distribution, its cv_bridge, a torch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import preflight  # noqa: E402
from base_python import BasePython  # noqa: E402
from preflight import check_disk, check_machine, check_path, check_python, check_registry, check_ros, check_venv  # noqa: E402
from setup_environment import SetupError, fits, make_plan, requirement_name  # noqa: E402

BARE = BasePython("/usr/bin/python3", (3, 12), "x86_64")
HUMBLE = BasePython(
    "/usr/bin/python3",
    (3, 10),
    "x86_64",
    ros_distro="humble",
    modules=frozenset({"rclpy", "cv_bridge", "cv2", "launch_pytest"}),
    distributions={"numpy": "1.21.5", "pyyaml": "5.4.1", "pytest": "6.2.5"},
)
JETPACK = BasePython(
    "/usr/bin/python3",
    (3, 10),
    "aarch64",
    ros_distro="humble",
    modules=frozenset({"rclpy", "torch"}),
    distributions={"torch": "2.5.0a0+872d972e41.nv24.8", "numpy": "1.26.4"},
)


def names(lines):
    return {requirement_name(line) for line in lines}


def test_a_bare_machine_gets_everything_in_the_tested_versions():
    plan = make_plan(BARE, tests=True)
    assert not plan.system_site_packages
    assert {"torch", "transformers", "numpy", "ros-kilted-rclpy", "colcon-common-extensions", "pytest"} <= names(
        plan.requirements
    )
    assert names(plan.requirements) - {"wheel"} <= names(plan.constraints)
    assert "pytest" not in names(make_plan(BARE, tests=False).requirements)


def test_beside_a_ros_distribution_its_wheels_are_not_installed_and_its_packages_are_seen():
    plan = make_plan(HUMBLE, tests=True)
    assert plan.system_site_packages
    assert not any(name.startswith("ros-") for name in names(plan.requirements))
    assert any("humble is used" in note for note in plan.notes)


def test_numpy_stays_what_cv_bridge_can_load_and_what_the_machine_has_is_not_replaced():
    plan = make_plan(HUMBLE, tests=True)
    assert "numpy<2" in plan.constraints
    assert names(plan.constraints).isdisjoint({"pyyaml", "scipy", "matplotlib", "opencv-python-headless"})
    assert "opencv-python-headless" not in names(plan.requirements)
    assert "cv_bridge" in plan.imports


def test_a_numpy_2_distribution_keeps_numpy_2():
    newer = BasePython(
        "/usr/bin/python3", (3, 13), "x86_64", "newest", frozenset({"rclpy", "cv_bridge"}), {"numpy": "2.3.1"}
    )
    assert "numpy<3" in make_plan(newer, tests=False).constraints


def test_pytest_stays_what_launch_pytest_can_load():
    assert "pytest<8.4" in make_plan(HUMBLE, tests=True).constraints


def test_a_torch_that_imports_is_never_replaced():
    plan = make_plan(JETPACK, tests=False)
    assert "torch" not in names(plan.requirements)
    assert "torch==2.5.0a0+872d972e41.nv24.8" in plan.constraints
    assert "torch==2.13.0" not in plan.constraints


def test_a_torch_without_a_version_is_refused():
    broken = BasePython("/usr/bin/python3", (3, 10), "x86_64", modules=frozenset({"torch"}))
    with pytest.raises(SetupError, match="torch without a version"):
        make_plan(broken, tests=False)


def test_an_environment_of_another_python_or_kind_is_made_anew(tmp_path):
    plan = make_plan(BARE, tests=False)
    assert not fits(tmp_path, plan, BARE)
    (tmp_path / "pyvenv.cfg").write_text("include-system-site-packages = false\nversion = 3.12.1\n")
    assert fits(tmp_path, plan, BARE)
    assert not fits(tmp_path, make_plan(HUMBLE, tests=False), HUMBLE)


def fake_ros(folder: Path) -> dict[str, str]:
    """A folder that looks like a sourced distribution: an rclpy and a cv_bridge that import, on PYTHONPATH."""
    for module in ("rclpy", "cv_bridge"):
        (folder / module).mkdir(parents=True)
        (folder / module / "__init__.py").write_text("")
    information = folder / "numpy-1.26.4.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: numpy\nVersion: 1.26.4\n")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("_ROS", "LD_", "VIRTUAL"))}
    return {**clean, "ROS_DISTRO": "jazzy", "PYTHONPATH": str(folder)}


def test_a_sourced_distribution_is_found_by_looking(tmp_path):
    code = (
        "import json, base_python, setup_environment; base = base_python.this_python(with_distributions=True);"
        "plan = setup_environment.make_plan(base, tests=False);"
        "print(json.dumps([base.ros_distro, sorted(base.modules), plan.constraints, plan.system_site_packages]))"
    )
    base = Path(sys.base_prefix) / "bin" / f"python{sys.version_info[0]}.{sys.version_info[1]}"
    found = subprocess.run(
        [base, "-c", code], cwd=ROOT / "tools", env=fake_ros(tmp_path), capture_output=True, text=True, check=True
    )
    distribution, modules, constraints, overlay = json.loads(found.stdout)
    assert distribution == "jazzy"
    assert {"rclpy", "cv_bridge"} <= set(modules)
    assert "numpy<2" in constraints
    assert overlay


def test_the_preflight_names_the_fix_for_each_problem():
    old = BasePython("/usr/bin/python3", (3, 9), "x86_64")
    assert check_python(old, ["python3.12"], "test").fix == "make test PYTHON=python3.12"
    assert "apt install" in check_python(old, [], "demo").fix
    assert check_venv(BARE, ["ensurepip"]).fix == "sudo apt install python3.12-venv"
    assert "source /opt/ros" in check_machine(BasePython("python3", (3, 12), "aarch64"), "linux").fix
    assert check_machine(JETPACK, "linux") is None
    foreign = BasePython("/opt/python3.12", (3, 12), "x86_64", ros_distro="humble")
    assert "PYTHON=/usr/bin/python3" in check_ros(foreign, "demo").fix
    assert "free 2.0 GB" in check_disk(1.0, 3.0, ROOT).fix
    assert "another folder" in check_path(Path("/home/a b/groot_ros")).fix
    assert "PIP_INDEX_URL" in check_registry("https://registry", "Name or service not known").fix


def test_the_preflight_takes_less_than_a_second_and_prints_what_is_wrong(tmp_path):
    environment = {**fake_ros(tmp_path), "ROS_DISTRO": "rolling", "PYTHONPATH": ""}
    base = Path(sys.base_prefix) / "bin" / f"python{sys.version_info[0]}.{sys.version_info[1]}"
    done = subprocess.run(
        [base, ROOT / "tools" / "preflight.py", "demo"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=5,
        check=False,
    )
    assert done.returncode == 1
    assert "ROS rolling is sourced" in done.stderr
    assert "fix: make demo PYTHON=/usr/bin/python3" in done.stderr


def test_the_size_is_that_of_the_torch_that_will_come(monkeypatch, tmp_path):
    for name in ("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(preflight, "has_nvidia", lambda: False)
    assert "6 GB" in preflight.announcement(BARE)
    assert f"export PIP_EXTRA_INDEX_URL={preflight.CPU_INDEX}" in preflight.announcement(BARE)
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", preflight.CPU_INDEX)
    assert "2.3 GB" in preflight.announcement(BARE)
    monkeypatch.delenv("PIP_EXTRA_INDEX_URL")
    (tmp_path / "torch-2.13.0+cpu-cp312-cp312-manylinux_2_28_x86_64.whl").touch()
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    assert "2.3 GB" in preflight.announcement(BARE)
    assert "6 GB" in preflight.announcement(BasePython("python3", (3, 13), "x86_64"))
    assert "2.3 GB" in preflight.announcement(JETPACK)
