"""Checks, in under a second, that ``make`` can succeed on this machine, and says exactly how to mend what cannot.

Standard library only, and no newer syntax than Python 3.7's, so that an unsuitable Python still gets its message.
"""

from __future__ import annotations

import configparser
import importlib.util
import os
import shutil
import socket
import sys
import threading
import urllib.parse
from dataclasses import dataclass
from pathlib import Path

from base_python import BasePython, leave_virtual_environment, this_python

ROOT = Path(__file__).resolve().parent.parent
OLDEST, NEWEST = (3, 10), (3, 13)
SUPPORTED = "Python {}.{} to {}.{}".format(*OLDEST, *NEWEST)
GIGABYTE = 1e9
CPU_GB, CUDA_GB = 3.0, 10.0
SHARED_MEMORY_GB = 0.25
LONGEST_SHEBANG = 120
REGISTRY = "https://pypi.org/simple"
REGISTRY_WAIT_S = 0.6
CPU_INDEX = "https://download.pytorch.org/whl/cpu"


@dataclass(frozen=True)
class Problem:
    """What is wrong, and the command or action that mends it."""

    what: str
    fix: str


def check_python(base: BasePython, on_path: list[str], target: str) -> Problem | None:
    """The Python is one that the dependencies exist for."""
    if OLDEST <= base.version <= NEWEST:
        return None
    what = f"{base.executable} is Python {base.version[0]}.{base.version[1]}; {SUPPORTED} is needed"
    if on_path:
        return Problem(what, f"make {target} PYTHON={on_path[0]}")
    return Problem(what, "sudo apt install python3.12 python3.12-venv (or another of them), then give it as PYTHON=...")


def check_venv(base: BasePython, missing: list[str]) -> Problem | None:
    """Debian keeps venv and ensurepip in a package of their own."""
    if not missing:
        return None
    return Problem(f"{base.name} has no {' and no '.join(missing)}", f"sudo apt install {base.name}-venv")


def check_machine(base: BasePython, system: str) -> Problem | None:
    """Without a sourced ROS, its wheels are installed, and those are for one kind of machine."""
    if base.ros_distro or (system == "linux" and base.machine in ("x86_64", "AMD64")):
        return None
    return Problem(
        f"this is {system} on {base.machine}; without a ROS 2 distribution only Linux on x86-64 works (ROS's wheels)",
        "install ROS 2 (Humble or newer), then: source /opt/ros/<distribution>/setup.bash",
    )


def check_ros(base: BasePython, target: str) -> Problem | None:
    """A sourced ROS must belong to this Python."""
    if base.ros_distro is None or "rclpy" in base.modules:
        return None
    return Problem(
        f"ROS {base.ros_distro} is sourced, but {base.executable} cannot import its rclpy",
        f"make {target} PYTHON=/usr/bin/python3 (or unset ROS_DISTRO in a fresh shell to use ROS's wheels)",
    )


def check_path(root: Path) -> Problem | None:
    """The first line of every installed executable names the environment's Python, and a kernel reads only so much."""
    shebang = str(root / ".venv" / "bin" / "python")
    if " " not in shebang and len(shebang) <= LONGEST_SHEBANG:
        return None
    return Problem(
        f"the folder {root} has a space in its name or is too long for a shebang", "clone into another folder"
    )


def check_disk(free_gb: float, needed_gb: float, root: Path) -> Problem | None:
    """Room for the environment and the build."""
    if free_gb >= needed_gb:
        return None
    return Problem(
        f"{root} has {free_gb:.1f} GB free; {needed_gb:.0f} GB are needed",
        f"free {needed_gb - free_gb:.1f} GB, or clone to another disk",
    )


def check_shared_memory(free_gb: float) -> Problem | None:
    """Camera images travel through /dev/shm, which containers keep small."""
    if free_gb >= SHARED_MEMORY_GB:
        return None
    return Problem(
        f"/dev/shm has {free_gb * 1000:.0f} MB free; images between processes need {SHARED_MEMORY_GB * 1000:.0f} MB",
        "docker run --shm-size=1g ... (or: sudo mount -o remount,size=1g /dev/shm)",
    )


def check_registry(url: str, answer: str) -> Problem | None:
    """``answer`` is empty where the registry answered, or was merely slow."""
    if not answer:
        return None
    return Problem(
        f"the package registry {url} is not reached: {answer}", "export https_proxy=... or PIP_INDEX_URL=<mirror>"
    )


def registry_url() -> str | None:
    """Where pip will look, by its environment or its files; None where it is told to look nowhere."""
    if os.environ.get("PIP_NO_INDEX"):
        return None
    if os.environ.get("PIP_INDEX_URL"):
        return os.environ["PIP_INDEX_URL"]
    files = [os.environ.get("PIP_CONFIG_FILE", ""), "~/.pip/pip.conf", "~/.config/pip/pip.conf", "/etc/pip.conf"]
    for name in files:
        parser = configparser.ConfigParser(interpolation=None)
        try:
            parser.read(os.path.expanduser(name))
        except configparser.Error:
            continue
        for section in ("install", "global"):
            if parser.has_option(section, "index-url"):
                return parser.get(section, "index-url")
    return REGISTRY


def reach(url: str, wait_s: float = REGISTRY_WAIT_S) -> str:
    """Why a connection to ``url``, or to the proxy before it, fails at once; empty where it works or is only slow."""
    parts = urllib.parse.urlsplit(url)
    proxy = os.environ.get(f"{parts.scheme}_proxy") or os.environ.get(f"{parts.scheme}_proxy".upper())
    if proxy:
        parts = urllib.parse.urlsplit(proxy if "//" in proxy else f"//{proxy}")
    if parts.hostname is None:
        return ""
    failures: list[str] = []

    def connect() -> None:
        try:
            port = parts.port or (80 if parts.scheme == "http" else 443)
            socket.create_connection((parts.hostname, port), timeout=wait_s).close()
        except (ConnectionError, socket.gaierror) as error:
            failures.append(str(error))
        except OSError:
            pass  # slow is not unreachable: pip waits longer than a preflight does

    thread = threading.Thread(target=connect, daemon=True)
    thread.start()
    thread.join(wait_s)
    return failures[0] if failures else ""


def has_nvidia() -> bool:
    """An NVIDIA GPU with its driver."""
    return Path("/proc/driver/nvidia/version").exists() or Path("/etc/nv_tegra_release").exists()


def cuda_torch_comes(base: BasePython) -> bool:
    """Pip would bring PyPI's torch, which is a CUDA build: no index of CPU builds, or folder with one, is given."""
    if "torch" in base.modules or "/cpu" in os.environ.get("PIP_EXTRA_INDEX_URL", ""):
        return False
    tag = "cp{}{}".format(*base.version)
    folders = os.environ.get("PIP_FIND_LINKS", "").split()
    return not any(any(Path(folder).glob(f"torch-*+cpu-{tag}-*.whl")) for folder in folders if "://" not in folder)


def problems(base: BasePython, target: str, *, installs: bool) -> list[Problem]:
    """All that stands in the way of ``make target``; ``installs`` adds what only an installation needs."""
    found = [f"python{OLDEST[0]}.{minor}" for minor in range(NEWEST[1], OLDEST[1] - 1, -1)]
    missing = [name for name in ("venv", "ensurepip") if importlib.util.find_spec(name) is None]
    results = [
        check_python(base, [name for name in found if shutil.which(name)], target),
        check_ros(base, target),
        check_machine(base, sys.platform),
        check_path(ROOT),
    ]
    if os.path.isdir("/dev/shm"):
        results.append(check_shared_memory(shutil.disk_usage("/dev/shm").free / GIGABYTE))
    if installs:
        url = registry_url()
        results += [
            check_venv(base, missing),
            check_disk(shutil.disk_usage(ROOT).free / GIGABYTE, CUDA_GB if cuda_torch_comes(base) else CPU_GB, ROOT),
            check_registry(url or "", reach(url) if url else ""),
        ]
    return [problem for problem in results if problem is not None]


def announcement(base: BasePython) -> str:
    """Size and time of an installation, before it begins."""
    size, minutes = ("2.3 GB", "2 to 4 minutes") if not cuda_torch_comes(base) else ("6 GB", "5 to 15 minutes")
    lines = [f"Installing into .venv with {base.name}: about {size} on disk and {minutes}, once."]
    if cuda_torch_comes(base) and not has_nvidia():
        lines.append("PyPI's torch is a CUDA build, and no NVIDIA GPU was found here. For a smaller one, stop and run:")
        lines.append(f"  export PIP_EXTRA_INDEX_URL={CPU_INDEX}")
    return "\n".join(lines)


def main() -> int:
    """Check; print the problems and their fixes. The first argument is the target of make."""
    leave_virtual_environment()
    target = sys.argv[1] if len(sys.argv) > 1 else "demo"
    installs = not (ROOT / ".venv" / "groot_ros.stamp").exists()
    base = this_python(with_distributions=False)
    wrong = problems(base, target, installs=installs)
    for problem in wrong:
        print(f"preflight: {problem.what}.\n    fix: {problem.fix}", file=sys.stderr)
    if not wrong and installs:
        print(announcement(base), flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
