"""What colcon installed: run by ``colcon test``, with the install folder in the environment."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2]
EXECUTABLES = sorted(path.stem for path in (SOURCE / "groot_ros" / "cli").glob("*.py") if path.stem[0] != "_")


def prefix() -> Path:
    for folder in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep):
        if (Path(folder) / "share" / "groot_ros" / "package.xml").exists():
            return Path(folder)
    pytest.fail("groot_ros is not in AMENT_PREFIX_PATH: run `make build`, then `. install/setup.sh`")


@pytest.mark.parametrize("name", EXECUTABLES)
def test_every_command_is_an_executable_that_finds_its_python_and_explains_itself(name):
    executable = prefix() / "lib" / "groot_ros" / name
    interpreter = executable.read_text().splitlines()[0]
    assert interpreter.startswith("#!")
    assert Path(interpreter[2:].split()[0]).exists()
    done = subprocess.run([executable, "--help"], cwd="/", capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "usage" in done.stdout.lower()


def test_the_package_is_registered_with_ament():
    assert (prefix() / "share" / "ament_index" / "resource_index" / "packages" / "groot_ros").exists()


@pytest.mark.parametrize(
    ("source", "installed"),
    [("launch/*.launch.py", "launch"), ("config/*.xml", "config"), ("config/robots/*.yaml", "config/robots")],
)
def test_launch_and_configuration_files_are_installed(source, installed):
    folder = prefix() / "share" / "groot_ros" / installed
    assert {path.name for path in SOURCE.glob(source)} == {path.name for path in folder.iterdir() if path.is_file()}
