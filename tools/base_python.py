"""What the Python that an environment is made from already has: a ROS distribution, a torch, a cv_bridge.

Standard library only, and no newer syntax than Python 3.7's, so that an unsuitable Python still gets its message.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import sys
from dataclasses import dataclass, field
from typing import Mapping

ROS_MODULES = ("rclpy", "cv_bridge", "launch_pytest")
SHARED_MODULES = ("torch", "cv2")


@dataclass(frozen=True)
class BasePython:
    """A Python and what it can import.

    Attributes:
        executable: Path of the interpreter.
        version: Major and minor version.
        machine: Architecture as ``uname -m`` says it.
        ros_distro: Name of the sourced ROS distribution, or None.
        modules: Which of the modules that matter can be found.
        distributions: Installed distributions, lower-case name to version.

    """

    executable: str
    version: tuple[int, int]
    machine: str
    ros_distro: str | None = None
    modules: frozenset[str] = frozenset()
    distributions: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Such as ``python3.12``."""
        return "python{}.{}".format(*self.version)


def this_python(*, with_distributions: bool) -> BasePython:
    """Look at the running interpreter; listing its distributions takes a moment and is left out on request."""
    modules = frozenset(name for name in ROS_MODULES + SHARED_MODULES if importlib.util.find_spec(name) is not None)
    distributions = {}
    if with_distributions:
        from importlib import metadata  # not in Python 3.7

        for found in metadata.distributions():
            name = found.metadata["Name"]
            if name:
                distributions.setdefault(canonical(name), found.version)
    return BasePython(
        executable=sys.executable,
        version=(sys.version_info[0], sys.version_info[1]),
        machine=platform.machine(),
        ros_distro=os.environ.get("ROS_DISTRO") or None,
        modules=modules,
        distributions=distributions,
    )


def canonical(name: str) -> str:
    """A distribution's name as pip compares it."""
    return name.lower().replace("_", "-").replace(".", "-")


def leave_virtual_environment() -> None:
    """Start the running script again with the Python below an active virtual environment: only what that has counts."""
    if sys.prefix != sys.base_prefix:
        base = os.path.join(sys.base_prefix, "bin", "python{}.{}".format(*sys.version_info[:2]))
        os.execve(base, [base, *sys.argv], clean_environment(os.environ))


def clean_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment without what ROS's wheels and a virtual environment leave to their children."""
    cleaned = {name: value for name, value in environment.items() if name not in ("VIRTUAL_ENV", "PYTHONHOME")}
    if cleaned.pop("_ROS_WHEELS_BOOTSTRAP_COMPLETE", None) is not None:
        cleaned.pop("LD_LIBRARY_PATH", None)
    return cleaned
