"""How bags become episodes; what of it is noted in the dataset."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from enum import Enum
from typing import Any

from groot_ros.contract import Contract

_ROW_KEYS = ("rate_hz", "cameras", "state", "actions", "record", "alignment")
"""What of a contract decides on the rows, beside the horizon and the instruction."""


class OnGap(Enum):
    """What becomes of an episode in which frames or values are missing."""

    SPLIT = "split"
    REFUSE = "refuse"


@dataclass(frozen=True, kw_only=True)
class ConversionSettings:
    """Settings of a conversion that change what is in the dataset.

    Attributes:
        contract: The robot.
        instruction: The task in words for bags that do not say it; None takes the contract's.
        on_gap: What becomes of an episode with a gap.
        trim_idle_s: Head and tail in which nothing is commanded are cut off but for so many seconds; None keeps them.
        least_rows: Shorter episodes are left out.
        successes_only: Whether episodes that were labelled as failures are left out.

    """

    contract: Contract
    instruction: str | None = None
    on_gap: OnGap = OnGap.SPLIT
    trim_idle_s: float | None = None
    least_rows: int = 2
    successes_only: bool = False

    def notes(self) -> dict[str, Any]:
        """What ``info.json`` says of the making of the dataset."""
        shift = self.contract.record.action_from_state
        return {
            "contract": json.loads(self.contract.model_dump_json(exclude_defaults=True)),
            "on_gap": self.on_gap.value,
            "trim_idle_s": self.trim_idle_s,
            "least_rows": self.least_rows,
            **({"action_from_state": {"shift_rows": shift.shift_rows}} if shift else {}),
        }

    def digest(self) -> str:
        """Tells settings apart that give other episodes."""
        notes = self.notes()
        contract = notes.pop("contract")
        return _digest(
            [
                {key: contract.get(key) for key in _ROW_KEYS},
                self.contract.policy.horizon,
                self.instruction or self.contract.instruction,
                self.successes_only,
                notes,
            ]
        )

    def old_digest(self) -> str:
        """The digest by which datasets were made that are continued: of the whole contract, limits and motion too."""
        return _digest([self.notes(), self.instruction, self.successes_only])


def _digest(content: list[Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
