"""Which GR00T a configuration belongs to: N1.7 is read, every other version is refused with the way out."""

from __future__ import annotations

import re
from enum import Enum
from typing import Any

from groot_ros.errors import CheckpointError


class CheckpointOrigin(Enum):
    """Who wrote the checkpoint: the two differ in the geometry of images."""

    NVIDIA = "nvidia"
    LEROBOT = "lerobot"


N1_7_BASE_MODEL = "nvidia/GR00T-N1.7-3B"

# gr00t_n1_5, GR00T_N1_5, Gr00tN1d5, gr00t-n1.5, GR00TN15, n1p5, n1.5, n15 and a bare 1.5: the version is what is left.
_VERSION = re.compile(r"(?:gr[0o]{2}t)?[\s_-]*n?[\s_-]*(?P<major>\d)(?:[\s._dp-]*(?P<minor>\d))?", re.IGNORECASE)
_VERSION_IN_PATH = re.compile(r"gr[0o]{2}t[\s_-]*n(?P<major>\d)(?:[._dp]?(?P<minor>\d))?(?![0-9])", re.IGNORECASE)

_N1_5_ADVICE = (
    f"GR00T N1.5 is not supported: fine-tune GR00T N1.7 ({N1_7_BASE_MODEL}) on your data, "
    "or keep to the last release of LeRobot that runs it: pip install 'lerobot==0.5.1'."
)


def version_of_name(name: str) -> str | None:
    """Return the version that a model type or class name spells, for instance ``"1.7"`` for ``Gr00tN1d7``."""
    match = _VERSION.match(name.strip())
    return _version(match) if match else None


def version_in_path(path: str) -> str | None:
    """Return the version that a path or hub id names, for instance ``"1.5"`` for ``nvidia/GR00T-N1.5-3B``."""
    match = _VERSION_IN_PATH.search(path)
    return _version(match) if match else None


def _version(match: re.Match[str]) -> str:
    minor = match.group("minor")
    return match.group("major") if minor is None else f"{match.group('major')}.{minor}"


def refuse_other_versions(data: dict[str, Any], where: str) -> None:
    """Refuse the ``config.json`` of anything but GR00T N1.7, whichever way it spells its version.

    Raises:
        CheckpointError: The configuration is of another version, or of no GR00T at all.

    """
    backbone = data.get("backbone_cfg")
    if isinstance(backbone, dict) and "eagle_path" in backbone:
        raise _refusal(where, "1.5", "backbone_cfg holds an eagle_path")
    if data.get("tokenizer_assets_repo"):
        raise _refusal(where, "1.5", f"tokenizer_assets_repo is {data['tokenizer_assets_repo']!r}")
    named = False
    for key, name in _names(data):
        version = version_of_name(name)
        if version is not None and version != "1.7":
            raise _refusal(where, version, f"{key} is {name!r}")
        named = named or version == "1.7"
    if not named:
        found = data.get("model_type", data.get("architectures"))
        msg = (
            f"{where}: model_type is {found!r}, but must be 'Gr00tN1d7': "
            "this is not a GR00T N1.7 checkpoint (for a training run, give its checkpoint folder)."
        )
        raise CheckpointError(msg)


def refuse_other_version_in_path(path: str, where: str) -> None:
    """Refuse a hub id or path that names another GR00T version, for instance as the base model of a fine-tuning.

    Raises:
        CheckpointError: The path names another version.

    """
    version = version_in_path(path)
    if version is not None and version != "1.7":
        raise _refusal(where, version, f"the model is {path!r}")


def _names(data: dict[str, Any]) -> list[tuple[str, str]]:
    """Collect every place where a version may be spelled."""
    architectures = data.get("architectures")
    candidates = [
        ("model_version", data.get("model_version")),
        ("model_type", data.get("model_type")),
        *(("architectures", name) for name in (architectures if isinstance(architectures, list) else [])),
    ]
    return [(key, str(name)) for key, name in candidates if isinstance(name, str | int | float)]


def n1_5_refusal(where: str, evidence: str) -> CheckpointError:
    """Make the error for a checkpoint of N1.5, with the ways out."""
    return CheckpointError(f"{where}: this is a GR00T N1.5 checkpoint ({evidence}). {_N1_5_ADVICE}")


def _refusal(where: str, version: str, evidence: str) -> CheckpointError:
    if version == "1.5":
        return n1_5_refusal(where, evidence)
    return CheckpointError(
        f"{where}: this is a GR00T N{version} checkpoint ({evidence}). Only GR00T N1.7 is supported: "
        f"fine-tune {N1_7_BASE_MODEL} on your data."
    )
