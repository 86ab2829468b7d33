"""The robot contract: which topics, joints and units a policy's modality keys mean on one robot."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PrivateAttr, model_validator
from typing_extensions import Self

from groot_ros.contract.actions import ActionGroup
from groot_ros.contract.embodiment_check import EmbodimentLike, check_against
from groot_ros.contract.groups import GroupMap, action_map, state_map
from groot_ros.contract.limits import CartesianLimits, JointLimits, Limits
from groot_ros.contract.outputs import AnyOutput
from groot_ros.contract.record import Record, one_or_more
from groot_ros.contract.routing import OutputRow, check_actions, check_limits, check_outputs, output_rows
from groot_ros.contract.schema import FaultyKeyError, Name, OrNone, Part, PositiveNumber
from groot_ros.contract.sources import AnyStateSource, CameraSource
from groot_ros.contract.timing import Alignment, Motion, PolicyTraining, StreamTiming, nanoseconds

Sources = Annotated[tuple[AnyStateSource, ...], BeforeValidator(one_or_more)]


class Contract(Part):
    """One robot and one policy, as the file says; see docs/contract.md for every key.

    Attributes:
        rate_hz: Row spacing of the policy; equals the frame rate that the checkpoint was trained at.
        cameras: Camera key to its source, in the order of the file (the policy's order is the checkpoint's).
        state: State group to its sources, whose dimensions follow one another; no source at all is a group of width 0.
        actions: Action group to its meaning.
        outputs: Output name to what is sent to the robot.
        limits: What no command may exceed; None where the file says ``none``.

    """

    contract_version: Literal[1]
    robot: Name
    embodiment_tag: Name
    rate_hz: PositiveNumber
    instruction: str = ""
    cameras: dict[Name, CameraSource] = Field(min_length=1)
    state: dict[Name, Sources]
    actions: dict[Name, ActionGroup] = Field(min_length=1)
    outputs: dict[Name, AnyOutput] = Field(default_factory=dict)
    limits: OrNone[Limits]
    record: Record = Record(groups={})
    alignment: Alignment = Alignment()
    motion: Motion = Motion()
    policy: PolicyTraining = PolicyTraining()

    _path: Path | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _check(self) -> Self:
        for group in self.state:
            dimensions = [name for source in self.state[group] for name in source.dimensions]
            twice = sorted({name for name in dimensions if dimensions.count(name) > 1})
            if twice:
                raise FaultyKeyError(
                    f"state.{group}", f"found dimension {', '.join(twice)} twice", "rename one by the key names"
                )
        check_actions(self.actions, self.state)
        check_outputs(self.outputs, self.actions, self.state, self.motion)
        check_limits(self.limits, self.outputs, self.actions, self.state)
        self._check_record()
        for stream in self.alignment.streams:
            self._check_stream(stream)
        for group in self.policy.representation:
            if group not in self.actions:
                raise FaultyKeyError(
                    f"policy.representation.{group}",
                    "found no such action group",
                    f"known are {', '.join(self.actions)}",
                )
        return self

    def _check_record(self) -> None:
        for group, sources in self.record.groups.items():
            if group not in self.actions:
                raise FaultyKeyError(
                    f"record.{group}",
                    "found no such action group",
                    f"known are {', '.join(self.actions)}, max_gap_s and action_from_state",
                )
            recorded = [name for source in sources for name in source.dimensions]
            wanted = self.action_dimensions(group)
            if len(recorded) != len(wanted):
                raise FaultyKeyError(
                    f"record.{group}",
                    f"found {len(recorded)} dimensions ({', '.join(recorded)})",
                    f"wanted {len(wanted)}, one for each of {', '.join(wanted)}",
                )
            if recorded != wanted and wanted:
                raise FaultyKeyError(
                    f"record.{group}",
                    f"found {', '.join(recorded)}",
                    f"wanted the action's order {', '.join(wanted)}, or its names by the key names",
                )

    def _check_stream(self, stream: str) -> None:
        known = self.streams
        matches = [full for full in known if stream in {full, full.split(".", 1)[1]}]
        if len(matches) != 1:
            raise FaultyKeyError(
                f"alignment.streams.{stream}",
                f"found {stream!r}, which names {len(matches)} streams",
                f"known are {', '.join(known)}, or without the prefix where that is one stream",
            )

    @property
    def path(self) -> Path | None:
        """The file that it was read from."""
        return self._path

    @property
    def period_s(self) -> float:
        """Time between two rows, seconds."""
        return 1.0 / self.rate_hz

    @property
    def period_ns(self) -> int:
        """Time between two rows, nanoseconds."""
        return nanoseconds(1.0 / self.rate_hz)

    @property
    def max_gap_s(self) -> float:
        """Camera interval beyond which a recorded episode is marked, seconds."""
        return self.record.max_gap_s or 1.5 / self.rate_hz

    @property
    def streams(self) -> tuple[str, ...]:
        """Every stream by its full name: ``video.<camera>``, ``state.<group>``, ``action.<group>``."""
        return (
            *(f"video.{camera}" for camera in self.cameras),
            *(f"state.{group}" for group in self.state),
            *(f"action.{group}" for group in self.record.groups),
        )

    def stream_timing(self, stream: str) -> StreamTiming:
        """How the stamps of a stream are read; ``stream`` is its full name, as ``video.front``."""
        streams = self.alignment.streams
        return streams.get(stream) or streams.get(stream.split(".", 1)[1]) or StreamTiming()

    def state_dimensions(self, group: str) -> list[str]:
        """The dimension names of a state group, in the policy's order."""
        return [name for source in self.state[group] for name in source.dimensions]

    def action_dimensions(self, group: str) -> list[str]:
        """The dimension names of an action group, in the policy's order; none for an unused group without names."""
        return list(self.action_map(group).dimensions)

    def state_map(self, group: str) -> GroupMap:
        """What the topics carry, to the policy's values of a state group, and back where that is possible."""
        return state_map(self.state[group])

    def action_map(self, group: str) -> GroupMap:
        """The robot's values of an action group to the policy's, and back."""
        return action_map(group, self.actions, self.state)

    def output_rows(self, output: str) -> list[OutputRow]:
        """The values that an output sends, in its order: group, dimension, and the robot's name for it."""
        return output_rows(self.outputs[output], self.actions, self.state)

    def joint_limits(self, joint: str) -> JointLimits | None:
        """The limits that the file gives a robot joint; None where it gives none."""
        return self.limits.joints.get(joint) if self.limits else None

    def cartesian_limits(self, output: str) -> CartesianLimits | None:
        """The limits that the file gives a pose or twist output; None where it gives none."""
        return self.limits.poses.get(output) if self.limits else None

    def check_against(self, embodiment: EmbodimentLike) -> None:
        """Refuse an embodiment of a checkpoint that this contract does not fit.

        Raises:
            ContractError: The first thing that does not fit, in one sentence.

        """
        check_against(self, embodiment)

    def model_post_init(self, context: Any) -> None:  # noqa: ANN401 - pydantic's signature
        """Keep the file's path, which the loader hands over."""
        if isinstance(context, dict):
            self._path = context.get("path")
