"""What every part of the schema is built from: the base model, faults in plain words, and checked scalars."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, Strict

Number = Annotated[float, Strict(), Field(allow_inf_nan=False)]
"""A finite number; words and booleans are refused rather than converted."""

PositiveNumber = Annotated[Number, Field(gt=0)]
NonNegativeNumber = Annotated[Number, Field(ge=0)]
Count = Annotated[int, Strict(), Field(ge=1)]
Name = Annotated[str, Field(min_length=1)]


class FaultyKeyError(ValueError):
    """One thing that is wrong in a contract, with the key it belongs to (relative to the part that is checked)."""

    def __init__(self, key: str, found: str, allowed: str) -> None:
        self.key = key
        self.found = found
        self.allowed = allowed
        super().__init__(f"{key}: {found}; {allowed}")


class Part(BaseModel):
    """A mapping in the contract: its keys are known, and it never changes once it is read."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


def _none_is_a_word(value: Any) -> Any:  # noqa: ANN401 - whatever stands in the file
    if value is None:
        raise FaultyKeyError("", "found nothing", "write a value, or the word none")
    return None if value == "none" else value


T = TypeVar("T")
OrNone = Annotated[T | None, BeforeValidator(_none_is_a_word)]
"""A value that may be left out only by writing the word ``none``."""
