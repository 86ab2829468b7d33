"""Makes .venv and installs what a target of ``make`` needs, beside a sourced ROS distribution or without one.

What the machine has comes first: never the ROS wheels beside a ROS distribution, never a second torch over one that
imports (JetPack's), never a numpy that the distribution's cv_bridge cannot load. Standard library only.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from base_python import BasePython, canonical, clean_environment, leave_virtual_environment, this_python

ROOT = Path(__file__).resolve().parent.parent
RUNTIME_FILES = ("requirements.txt", "requirements/rosdep.txt", "requirements/build.txt")
WHEELS_FILE = "requirements/ros_wheels.txt"
TEST_FILE = "requirements/test.txt"
TRAIN_FILE = "requirements/train.txt"
TESTED_FILE = "requirements/tested.txt"
ENVIRONMENT = ROOT / ".venv"
STAMP = "groot_ros.stamp"
# These are built against numpy's binary interface: the tested versions need numpy 2.
NUMPY_FAMILY = ("numpy", "scipy", "opencv-python-headless", "matplotlib")


class SetupError(Exception):
    """One sentence for the person at the terminal."""


@dataclass(frozen=True)
class Plan:
    """How an environment is made.

    Attributes:
        system_site_packages: The environment sees the packages of the machine's Python.
        requirements: Lines for pip.
        constraints: Lines for pip's ``-c``.
        imports: Modules that must import at the end.
        notes: Sentences about what is taken from the machine.

    """

    system_site_packages: bool
    requirements: tuple[str, ...]
    constraints: tuple[str, ...]
    imports: tuple[str, ...]
    notes: tuple[str, ...]


def read_lines(*files: str) -> list[str]:
    """Requirement lines without comments."""
    lines = [line.strip() for name in files for line in (ROOT / name).read_text().splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


def requirement_name(line: str) -> str:
    """The distribution that a requirement line is about."""
    end = next((index for index, sign in enumerate(line) if sign in "[<>=!~; "), len(line))
    return canonical(line[:end])


def make_plan(base: BasePython, *, tests: bool) -> Plan:
    """Decide what to install and what to take from the machine.

    Args:
        base: The machine's Python.
        tests: Install what the tests need, too.

    """
    ros = base.ros_distro is not None
    torch = "torch" in base.modules
    overlay = ros or torch
    files = [*RUNTIME_FILES, *(() if ros else (WHEELS_FILE,)), *((TRAIN_FILE, TEST_FILE) if tests else ())]
    requirements, constraints = read_lines(*files), read_lines(TESTED_FILE)
    notes, imports = [], ["rclpy", "torch", "transformers", "cv2", "scipy"]

    if overlay:
        constraints = [line for line in constraints if requirement_name(line) not in base.distributions]
    if ros:
        notes.append(f"ROS {base.ros_distro} is used; its wheels are not installed.")
    if torch:
        version = base.distributions.get("torch")
        if version is None:
            raise SetupError(
                f"{base.executable} finds a torch without a version: reinstall it, or hide it from this Python"
            )
        requirements = [line for line in requirements if requirement_name(line) != "torch"]
        constraints = [line for line in constraints if requirement_name(line) != "torch"] + [f"torch=={version}"]
        notes.append(f"torch {version} of this machine is used; no other is installed over it.")
    if ros and "cv2" in base.modules:
        requirements = [line for line in requirements if requirement_name(line) != "opencv-python-headless"]
        notes.append("OpenCV of this machine is used.")
    if ros and "cv_bridge" in base.modules and "numpy" in base.distributions:
        major = int(base.distributions["numpy"].split(".")[0])
        constraints = [line for line in constraints if requirement_name(line) not in NUMPY_FAMILY] + [
            f"numpy<{major + 1}"
        ]
        imports.append("cv_bridge")
        notes.append(f"numpy stays below {major + 1}, which cv_bridge of ROS {base.ros_distro} needs.")
    if ros and "launch_pytest" in base.modules:
        # launch_pytest of 2024 and older breaks every run of a newer pytest in its environment.
        constraints = [line for line in constraints if requirement_name(line) != "pytest"] + ["pytest<8.4"]

    return Plan(overlay, tuple(requirements), tuple(constraints), tuple(imports), tuple(notes))


def stamp_of(plan: Plan, base: BasePython) -> str:
    """Changes whenever the environment must be brought up to date."""
    return hashlib.sha256(repr((plan, base.executable, base.version)).encode()).hexdigest()


def fits(folder: Path, plan: Plan, base: BasePython) -> bool:
    """An environment of that Python and kind is there."""
    try:
        settings = dict(
            (part.strip() for part in line.split("=", 1)) for line in (folder / "pyvenv.cfg").read_text().splitlines()
        )
    except (OSError, ValueError):
        return False
    version = tuple(int(part) for part in settings.get("version", "0.0").split(".")[:2])
    sees_system = settings.get("include-system-site-packages") == "true"
    return version == base.version and sees_system == plan.system_site_packages


def install(folder: Path, plan: Plan, base: BasePython) -> None:
    """Make or bring up to date the environment in ``folder``; nothing is done where it is up to date."""
    stamp = folder / STAMP
    wanted = stamp_of(plan, base)
    if stamp.exists() and stamp.read_text() == wanted:
        return
    for note in plan.notes:
        print(note, flush=True)
    if not fits(folder, plan, base):
        flags = ["--system-site-packages"] if plan.system_site_packages else []
        run([base.executable, "-m", "venv", "--clear", *flags, str(folder)], "the environment cannot be made")
    stamp.unlink(missing_ok=True)
    for name, lines in (("requirements.txt", plan.requirements), ("constraints.txt", plan.constraints)):
        (folder / name).write_text("\n".join(lines) + "\n")
    python = str(folder / "bin" / "python")
    quiet = [] if sys.stdout.isatty() else ["--quiet"]
    files = ["-r", str(folder / "requirements.txt"), "-c", str(folder / "constraints.txt")]
    run([python, "-m", "pip", "install", "--disable-pip-version-check", *quiet, *files], "pip could not install")
    for module in plan.imports:
        run([python, "-c", f"import {module}"], f"{module} is installed but cannot be imported by {python}")
    stamp.write_text(wanted)


def run(command: list[str], failure: str) -> None:
    """Run a command; its own output tells the details of a failure."""
    if subprocess.run(command, env=clean_environment(os.environ), check=False).returncode != 0:
        raise SetupError(f"{failure}; what failed was: {' '.join(command)}")


def main() -> int:
    """Install; see ``--help``."""
    leave_virtual_environment()
    parser = argparse.ArgumentParser(description="Make .venv and install what a target of make needs.")
    parser.add_argument("--tests", action="store_true", help="install what the tests need, too")
    options = parser.parse_args()
    base = this_python(with_distributions=True)
    try:
        # An environment with the tests' packages serves the demo as well.
        for tests in (True, False):
            plan = make_plan(base, tests=tests)
            stamp = ENVIRONMENT / STAMP
            if tests and not options.tests and not (stamp.exists() and stamp.read_text() == stamp_of(plan, base)):
                continue
            install(ENVIRONMENT, plan, base)
            break
    except SetupError as error:
        print(f"setup: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
