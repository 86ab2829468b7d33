"""docs/contract.md: every example is a contract that loads, and every key of the schema stands in it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest
import yaml
from pydantic import BaseModel
from support.contracts import SMALL

from groot_ros.contract import Contract, parse_contract

DOCS = (Path(__file__).parent.parent.parent / "docs" / "contract.md").read_text()
BLOCKS = re.findall(r"```yaml\n(.*?)```", DOCS, re.DOTALL)


def models(annotation) -> set[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return {annotation}.union(*(models(field.annotation) for field in annotation.model_fields.values()))
    return set().union(*(models(argument) for argument in get_args(annotation)))


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: " ".join(block.split()[:2]))
def test_every_example_is_part_of_a_contract_that_loads(block):
    contract = {**yaml.safe_load(SMALL), **yaml.safe_load(block)}
    parse_contract(yaml.safe_dump(contract, sort_keys=False), "docs/contract.md")


def test_there_is_an_example_for_every_top_level_key():
    shown = {key for block in BLOCKS for key in yaml.safe_load(block)}
    assert shown == set(Contract.model_fields)


def test_every_key_of_the_schema_is_explained():
    keys = {field.alias or name for model in models(Contract) for name, field in model.model_fields.items()}
    keys -= {"groups"}  # record's groups stand beside its other keys
    missing = sorted(key for key in keys if not re.search(rf"\b{key}\b", DOCS))
    assert not missing


def test_the_motion_example_shows_the_defaults():
    block = next(block for block in BLOCKS if block.startswith("motion:\n"))
    written = parse_contract(SMALL + block, "docs/contract.md").motion
    assert written == type(written)()
    assert set(yaml.safe_load(block)["motion"]) == set(type(written).model_fields)
