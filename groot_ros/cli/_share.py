"""Files that come with the package: in the source folder, or in ``share/groot_ros`` after colcon."""

from __future__ import annotations

from pathlib import Path


def shared_file(name: str) -> Path:
    """Path of a file such as ``config/robots/demo.yaml``, of the same version as the running code."""
    source = Path(__file__).parents[2] / name
    if source.exists():
        return source
    # colcon's layout: <prefix>/lib/python3.X/site-packages/groot_ros/cli/_share.py and <prefix>/share/groot_ros.
    return Path(__file__).parents[5] / "share" / "groot_ros" / name
