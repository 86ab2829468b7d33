"""The key ``record``: where the commanded values of a recording come from."""

from __future__ import annotations

from typing import Any

from pydantic import model_validator

from groot_ros.contract.schema import Count, Name, Part, PositiveNumber
from groot_ros.contract.sources import AnyStateSource

INSTRUCTION_TOPIC = "/groot_recorder/instruction"
"""Where a recording holds its instructions, std_msgs/String: each holds from its time on."""


class ActionFromState(Part):
    """For recordings without commands: the action of a row is the state ``shift_rows`` later."""

    shift_rows: Count


class Record(Part):
    """What is recorded as action, per group: commanded values, not measured ones.

    In the file the groups stand beside the other keys. ``max_gap_s`` is the camera interval beyond which an episode is
    marked; by default 1.5 rows.
    """

    groups: dict[Name, tuple[AnyStateSource, ...]]
    max_gap_s: PositiveNumber | None = None
    action_from_state: ActionFromState | None = None

    @model_validator(mode="before")
    @classmethod
    def _gather(cls, value: Any) -> Any:  # noqa: ANN401 - whatever stands in the file
        if not isinstance(value, dict) or "groups" in value:
            return value
        own = {key: value[key] for key in ("max_gap_s", "action_from_state") if key in value}
        groups = {key: one_or_more(source) for key, source in value.items() if key not in own}
        return {**own, "groups": groups}


def one_or_more(value: Any) -> Any:  # noqa: ANN401 - whatever stands in the file
    """A group's sources: one mapping, or a list of them."""
    return [value] if isinstance(value, dict) else value
