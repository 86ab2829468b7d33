"""YAML to a contract, with every fault said in a sentence: file, key, what was found, what is allowed."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from groot_ros.contract.contract import Contract
from groot_ros.contract.outputs import OUTPUT_TAGS, OUTPUT_TYPES
from groot_ros.contract.schema import FaultyKeyError
from groot_ros.contract.sources import SOURCE_TAGS
from groot_ros.errors import ContractError

Key = tuple[str | int, ...]
TAGS = {*OUTPUT_TAGS, *SOURCE_TAGS}
"""Names that pydantic puts into a location beside the file's keys: which member of a union was read."""


def load_contract(path: str | Path) -> Contract:
    """Read a contract file.

    Raises:
        ContractError: The file is missing or is not YAML, or a key is unknown, missing or wrong; one sentence a fault.

    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        msg = f"{path}: the contract cannot be read ({error}); give the path of a YAML file"
        raise ContractError(msg) from error
    return parse_contract(text, str(path), path=path)


def parse_contract(text: str, where: str, *, path: Path | None = None) -> Contract:
    """Read a contract from YAML text; ``where`` names it in errors.

    Raises:
        ContractError: As `load_contract`.

    """
    try:
        content = yaml.load(text, Loader=_ContractLoader)  # a SafeLoader
    except yaml.YAMLError as error:
        msg = f"{where}: this is not YAML: {' '.join(str(error).split())}"
        raise ContractError(msg) from error
    if not isinstance(content, dict):
        msg = f"{where}: found {_written(content)}, wanted a mapping that begins with contract_version: 1"
        raise ContractError(msg)
    try:
        return Contract.model_validate(content, context={"path": path})
    except ValidationError as error:
        raise ContractError("\n".join(_sentences(where, error, content))) from error


class _ContractLoader(yaml.SafeLoader):
    """YAML 1.2's scalars (``on`` and ``no`` are words, ``1e-3`` is a number), and no key twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Refuse a key that stands twice, which YAML would let overwrite the first."""
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                problem = f"the key {key!r} stands twice"
                raise yaml.constructor.ConstructorError(None, None, problem, key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep=deep)


_ContractLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith((":bool", ":float", ":timestamp", ":int"))]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_SCALARS = (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?[0-9]+", "-+0123456789"),
    (
        "float",
        r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        "-+.0123456789",
    ),
)
for _name, _pattern, _starts in _SCALARS:
    _ContractLoader.add_implicit_resolver(f"tag:yaml.org,2002:{_name}", re.compile(f"^(?:{_pattern})$"), list(_starts))


def _sentences(where: str, error: ValidationError, content: object) -> list[str]:
    """One sentence a key: where a key may be written in several ways, the first way speaks."""
    sentences: dict[Key, str] = {}
    for details in error.errors(include_url=False):
        sentences.setdefault(_file_key(details["loc"], content), _sentence(where, details, content))
    return list(sentences.values())


def _sentence(where: str, details: ErrorDetails, content: object) -> str:
    """One pydantic error as a sentence for the person who wrote the file."""
    location, kind, context = details["loc"], details["type"], details.get("ctx", {})
    key = _file_key(location, content)
    fault = context.get("error")
    if isinstance(fault, FaultyKeyError):
        return f"{where}: {_dotted((*key, *([fault.key] if fault.key else [])))}: {fault.found}; {fault.allowed}"
    if kind == "extra_forbidden":
        return f"{where}: {_dotted(key)}: {_unknown_key(location, key)}"
    if kind in {"union_tag_invalid", "union_tag_not_found"}:  # only outputs say by a key which kind they are
        found = _written(details["input"].get("type") if isinstance(details["input"], dict) else details["input"])
        return f"{where}: {_dotted((*key, 'type'))}: found {found}; allowed are {', '.join(OUTPUT_TYPES)}"
    if kind == "missing":
        return f"{where}: {_dotted(key)}: found nothing; this key must be written"
    allowed = details["msg"].replace("Input should be", "allowed is").replace("Tuple should have", "wanted")
    return f"{where}: {_dotted(key)}: found {_written(details['input'])}; {allowed[0].lower()}{allowed[1:]}"


def _file_key(location: Sequence[str | int], content: object) -> Key:
    """The part of pydantic's location that stands in the file: without union tags and without what we wrapped."""
    key: list[str | int] = []
    for position, step in enumerate(location):
        if isinstance(content, dict):
            if step not in content and (isinstance(step, int) or step in TAGS or position < len(location) - 1):
                continue
            content = content.get(step)
        elif isinstance(content, list) and isinstance(step, int):
            content = content[step] if step < len(content) else None
        else:
            continue
        key.append(step)
    return tuple(key)


def _unknown_key(location: Sequence[str | int], key: Key) -> str:
    known = _known_keys(location)
    if key[-1] in known:
        return "found a key that does not go with the others; without joints, fields, names or tf this is a pose"
    nearest = difflib.get_close_matches(str(key[-1]), known, n=1, cutoff=0.5)
    hint = f"did you mean {nearest[0]}? " if nearest else ""
    return f"found an unknown key; {hint}allowed are {', '.join(known)}"


def _known_keys(location: Sequence[str | int]) -> list[str]:
    """The keys that the schema has where ``location`` ends."""
    models = _models_at([Contract], [step for step in location[:-1] if isinstance(step, str)])
    names = [field.alias or name for model in models for name, field in model.model_fields.items()]
    return list(dict.fromkeys(names))


def _models_at(models: list[type[BaseModel]], steps: list[str]) -> list[type[BaseModel]]:
    for step in steps:
        named = [model for model in models if _tag(model) == step]
        fields = [
            field.annotation
            for model in models
            for name, field in model.model_fields.items()
            if step in {name, field.alias}
        ]
        if fields:
            models = [model for annotation in fields for model in _models_in(annotation)]
        elif named:
            models = named
    return models


def _tag(model: type[BaseModel]) -> str | None:
    kind = model.model_fields.get("type")
    values = get_args(kind.annotation) if kind is not None else ()
    return values[0] if values and isinstance(values[0], str) else None


def _models_in(annotation: Any) -> list[type[BaseModel]]:  # noqa: ANN401 - any annotation
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for argument in get_args(annotation) for model in _models_in(argument)]


def _dotted(key: Sequence[str | int]) -> str:
    text = ""
    for step in key:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else str(step)
    return text or "the whole file"


def _written(value: object) -> str:
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
