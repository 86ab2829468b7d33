"""Files that come with the package: in ``share/groot_ros`` after colcon, in the source folder before."""

from __future__ import annotations

from pathlib import Path


def shared_file(name: str) -> Path:
    """Path of a file such as ``config/robots/demo.yaml``."""
    try:
        from ament_index_python.packages import PackageNotFoundError, get_package_share_directory
    except ImportError:
        return _source() / name
    try:
        return Path(get_package_share_directory("groot_ros")) / name
    except (PackageNotFoundError, LookupError):
        return _source() / name


def _source() -> Path:
    return Path(__file__).parents[2]
