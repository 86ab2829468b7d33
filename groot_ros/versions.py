"""The combinations of Python, ROS, torch and transformers that the tests have passed with, and a word outside them."""

from __future__ import annotations

import logging
import os
import platform
from dataclasses import dataclass
from functools import cache
from importlib import metadata


@dataclass(frozen=True)
class TestedPair:
    """One combination; ``ros`` is None for the ROS wheels (kilted) that ``make`` installs where no ROS is sourced."""

    python: str
    ros: str | None
    torch: str
    transformers: str


TESTED = (
    TestedPair("3.11", None, "2.13", "5.24"),
    TestedPair("3.11", None, "2.13", "4.57"),
)


def running_versions() -> TestedPair:
    """The combination that runs here; a package that is missing has the version ``none``."""
    return TestedPair(
        python=_minor(platform.python_version()),
        ros=os.environ.get("ROS_DISTRO") or None,
        torch=_minor(_installed("torch")),
        transformers=_minor(_installed("transformers")),
    )


def untested_sentence(running: TestedPair) -> str | None:
    """One sentence that says how ``running`` differs from every tested combination, or None where it does not."""
    if running in TESTED:
        return None
    tested = "; ".join(_words(pair) for pair in TESTED)
    return f"untested versions: {_words(running)}. It may well work; the tests have passed with {tested}."


@cache
def warn_where_untested() -> None:
    """Log the sentence, once in the life of a process, where an untested combination runs."""
    if sentence := untested_sentence(running_versions()):
        logging.getLogger("groot_ros").warning(sentence)


def _words(pair: TestedPair) -> str:
    ros = f"ROS {pair.ros}" if pair.ros else "ROS wheels"
    return f"Python {pair.python}, {ros}, torch {pair.torch}, transformers {pair.transformers}"


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


def _installed(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "none"
