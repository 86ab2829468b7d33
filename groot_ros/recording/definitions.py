"""The text of a message type as a bag keeps it: from this machine's ROS, or from the known distributions."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from groot_ros.errors import RecordingError

HEADER = "std_msgs/msg/Header"
_SEPARATOR = "=" * 80


@dataclass(frozen=True)
class TypeDefinition:
    """A message type.

    Attributes:
        name: Its full name, as ``sensor_msgs/msg/Image``.
        text: Its definition and those of all types within, as the MCAP encoding ``ros2msg`` wants it.
        hash: Its RIHS01 hash, by which ROS knows that two definitions are the same.
        begins_with_header: Whether its first field is a Header, whose stamp lies at the start of the bytes.

    """

    name: str
    text: str
    hash: str
    begins_with_header: bool


@lru_cache(maxsize=256)
def find_definition(name: str) -> TypeDefinition:
    """The definition of a type: the one installed here, else the one of the standard packages.

    Raises:
        RecordingError: It is found nowhere.

    """
    known = get_typestore(Stores.LATEST)
    texts: dict[str, str] = {}
    store = get_typestore(Stores.EMPTY)
    if _gather(name, texts):
        parts = [texts[name], *(f"{_SEPARATOR}\nMSG: {_short(one)}\n{texts[one]}" for one in texts if one != name)]
        text = "\n".join(part.rstrip("\n") for part in parts) + "\n"
        store.register(get_types_from_msg(text, name))
    elif name in known.fielddefs:
        store, text = known, known.generate_msgdef(name, ros_version=2)[0]
    else:
        msg = f"{name}: its definition is not on this machine; install the package {name.split('/', maxsplit=1)[0]}"
        raise RecordingError(msg)
    fields = store.fielddefs[name][1]
    return TypeDefinition(name, text, store.hash_rihs01(name), bool(fields) and fields[0][1][1] == HEADER)


def _gather(name: str, texts: dict[str, str]) -> bool:
    """Read a type and all types within it; whether everything was found."""
    if name in texts or name in get_typestore(Stores.EMPTY).fielddefs:
        return True
    path = _installed(name)
    if path is None:
        return False
    texts[name] = path.read_text(encoding="utf-8")
    inner = get_types_from_msg(texts[name], name)[name][1]
    return all(_gather(one, texts) for one in _names_in(inner))


def _names_in(fields: object) -> list[str]:
    """All type names within rosbags' description of fields: nested pairs of kind and detail."""
    if isinstance(fields, str):
        return [fields] if fields.count("/") == 2 and "/msg/" in fields else []
    if isinstance(fields, list | tuple):
        return [name for field in fields for name in _names_in(field)]
    return []


def _installed(name: str) -> Path | None:
    package, kind, short = name.split("/")
    prefixes = [*os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep), sys.prefix]
    for prefix in filter(None, prefixes):
        path = Path(prefix) / "share" / package / kind / f"{short}.msg"
        if path.is_file():
            return path
    return None


def _short(name: str) -> str:
    return name.replace("/msg/", "/")
