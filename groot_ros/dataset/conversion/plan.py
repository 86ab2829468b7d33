"""First passage through a bag: which rows it gives, what they hold but for the pictures, and where it must be split."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from groot_ros.alignment import NotReady
from groot_ros.contract.timing import nanoseconds
from groot_ros.dataset.bag import Bag
from groot_ros.dataset.conversion.action_sources import ActionSources, Values
from groot_ros.dataset.conversion.cuts import Cut
from groot_ros.dataset.conversion.idle import idle_ends
from groot_ros.dataset.conversion.playback import Playback, Progress
from groot_ros.dataset.conversion.row_clock import RowClock
from groot_ros.dataset.conversion.settings import ConversionSettings, OnGap
from groot_ros.errors import DatasetError
from groot_ros.observation import NANOSECONDS_PER_SECOND

WRONG_RATE = 0.03
"""Largest deviation of the rows' real rate from the dataset's."""

LEAST_FOR_A_RATE = 20
"""Rows from which a rate can be told."""


@dataclass(frozen=True)
class PlannedRow:
    """A row without its pictures.

    Attributes:
        stamp_ns: Its reference stamp.
        instruction: The task.
        state: State groups, float32 ``(D,)``.
        action: Action groups, float64 ``(D,)``.

    """

    stamp_ns: int
    instruction: str
    state: dict[str, NDArray[np.float32]]
    action: Values


@dataclass(frozen=True)
class CameraGap:
    """A camera was silent for longer than the contract allows."""

    camera: str
    start_ns: int
    end_ns: int

    @property
    def length_s(self) -> float:
        """How long, seconds."""
        return (self.end_ns - self.start_ns) / NANOSECONDS_PER_SECOND

    @property
    def middle_ns(self) -> int:
        """Where it lies."""
        return (self.start_ns + self.end_ns) // 2


@dataclass
class Plan:
    """What a bag, or a part of it, becomes.

    Attributes:
        episodes: Rows of each episode.
        gaps: Where cameras were silent.
        notes: What a person should know, in sentences.

    """

    episodes: list[list[PlannedRow]] = field(default_factory=list)
    gaps: list[CameraGap] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Moment:
    """What the alignment says of one reference stamp."""

    stamp_ns: int
    fault: str | None = None
    state: dict[str, NDArray[np.float32]] = field(default_factory=dict)
    commands: Values = field(default_factory=dict)


def plan_episodes(bag: Bag, cut: Cut, settings: ConversionSettings, progress: Progress) -> Plan:
    """Find the episodes of a bag, or of a part of it.

    Raises:
        DatasetError: No row can be made, frames are missing and the settings refuse that, or the rate is another one.

    """
    start_ns, end_ns = cut_span(bag, cut)
    playback = Playback(bag, settings.contract, start_ns, end_ns)
    plan = Plan()
    moments = _moments(playback, settings, start_ns, end_ns, plan=plan, progress=progress)
    plan.notes += [
        f"camera {camera}: {count} video packets before the first key frame are no pictures"
        for camera, count in playback.skipped_packets().items()
    ]
    sources = ActionSources.of(settings.contract)
    parts = _parts(moments, plan.gaps)
    if not parts:
        first = next((moment.fault for moment in moments if moment.fault is not None), None)
        msg = f"{cut.bag} gives no row: {playback.why_not() or first or 'the first camera has no frame in it'}"
        raise DatasetError(msg)
    breaks = _breaks(moments, parts, plan.gaps)
    if breaks and settings.on_gap is OnGap.REFUSE:
        msg = f"{cut.bag} is refused, since it has {len(breaks)} gaps; the first: {breaks[0]}"
        raise DatasetError(msg)
    plan.notes += [f"split: {sentence}" for sentence in breaks]
    for part in parts:
        _check_rate(part, cut, settings)
        rows = _rows(part, sources, cut, settings, playback)
        kept = _without_idle(rows, settings, plan)
        if len(kept) < settings.least_rows:
            plan.notes.append(f"left out a part of {len(kept)} rows: shorter than {settings.least_rows}")
        else:
            plan.episodes.append(kept)
    return plan


def cut_span(bag: Bag, cut: Cut) -> tuple[int, int]:
    """When a part of a bag begins and ends, nanoseconds.

    Raises:
        DatasetError: The bag is empty, or the part lies behind its end.

    """
    if not bag.message_count:
        msg = f"{bag.path} holds no message"
        raise DatasetError(msg)
    start_ns = bag.start_ns + nanoseconds(cut.start_s)
    end_ns = bag.end_ns if cut.end_s is None else bag.start_ns + nanoseconds(cut.end_s)
    if start_ns > bag.end_ns:
        msg = (
            f"{bag.path} is {(bag.end_ns - bag.start_ns) / 1e9:.1f} s long, but the episode begins at {cut.start_s:g} s"
        )
        raise DatasetError(msg)
    return start_ns, end_ns


def _moments(
    playback: Playback, settings: ConversionSettings, start_ns: int, end_ns: int, *, plan: Plan, progress: Progress
) -> list[_Moment]:
    """Play the bag, choose the rows' stamps, and ask the alignment about each as soon as it is settled."""
    contract = settings.contract
    gap_ns = nanoseconds(contract.max_gap_s)
    clock = RowClock(contract.period_ns, gap_ns)
    reference = next(iter(contract.cameras))
    newest: dict[str, int] = {}
    due: list[int] = []
    moments: list[_Moment] = []
    for now_ns in playback.play(progress):
        for camera in contract.cameras:
            for stamp_ns in playback.frames.take(camera):
                if not start_ns <= stamp_ns <= end_ns:
                    continue
                if stamp_ns - newest.get(camera, stamp_ns) > gap_ns:
                    plan.gaps.append(CameraGap(camera, newest[camera], stamp_ns))
                newest[camera] = stamp_ns
                if camera == reference:
                    due += clock.add(stamp_ns)
        while due and now_ns >= due[0] + playback.settled_ns:
            moments.append(_ask(playback, due.pop(0)))
    moments += [_ask(playback, stamp_ns) for stamp_ns in (*due, *clock.finish())]
    return moments


def _ask(playback: Playback, stamp_ns: int) -> _Moment:
    state = playback.aligner.state_at(stamp_ns)
    if isinstance(state, NotReady):
        return _Moment(stamp_ns, fault=state.sentence)
    commands = playback.aligner.commands_at(stamp_ns)
    if isinstance(commands, NotReady):
        return _Moment(stamp_ns, fault=commands.sentence)
    return _Moment(stamp_ns, state={group: rows[-1] for group, rows in state.items()}, commands=commands)


def _parts(moments: list[_Moment], gaps: list[CameraGap]) -> list[list[_Moment]]:
    """Rows that follow one another without a gap."""
    parts: list[list[_Moment]] = []
    before: _Moment | None = None
    for moment in moments:
        if moment.fault is not None:
            before = None
            continue
        is_broken = before is None or any(before.stamp_ns < gap.middle_ns <= moment.stamp_ns for gap in gaps)
        if is_broken:
            parts.append([])
        parts[-1].append(moment)
        before = moment
    return parts


def _breaks(moments: list[_Moment], parts: list[list[_Moment]], gaps: list[CameraGap]) -> list[str]:
    """Why one part does not go on with the next."""
    sentences = []
    for part, following in pairwise(parts):
        last_ns, next_ns = part[-1].stamp_ns, following[0].stamp_ns
        gap = next((gap for gap in gaps if last_ns < gap.middle_ns <= next_ns), None)
        fault = next((one.fault for one in moments if last_ns < one.stamp_ns < next_ns and one.fault), None)
        if gap is not None:
            sentences.append(f"camera {gap.camera} was silent for {gap.length_s:.3f} s")
        else:
            sentences.append(fault or f"no row for {(next_ns - last_ns) / 1e9:.3f} s")
    return sentences


def _check_rate(part: list[_Moment], cut: Cut, settings: ConversionSettings) -> None:
    if len(part) < LEAST_FOR_A_RATE:
        return
    rate_hz = (len(part) - 1) * NANOSECONDS_PER_SECOND / (part[-1].stamp_ns - part[0].stamp_ns)
    wanted_hz = settings.contract.rate_hz
    if abs(rate_hz / wanted_hz - 1) > WRONG_RATE:
        camera = next(iter(settings.contract.cameras))
        msg = (
            f"{cut.bag}: camera {camera} gives {rate_hz:.1f} rows a second, but the contract's rate_hz is "
            f"{wanted_hz:g}: the robot would move at another speed; write the real rate, or name a faster camera first"
        )
        raise DatasetError(msg)


def _rows(
    part: list[_Moment], sources: ActionSources, cut: Cut, settings: ConversionSettings, playback: Playback
) -> list[PlannedRow]:
    shift = sources.shift_rows
    rows = []
    for moment, later in zip(part, part[shift:], strict=False):
        instruction = (
            cut.instruction
            or playback.instruction_at(moment.stamp_ns)
            or settings.instruction
            or settings.contract.instruction
        )
        if not instruction.strip():
            msg = f"{cut.bag} says no instruction: give one with --instruction, in episodes.csv, or in the contract"
            raise DatasetError(msg)
        action = sources.actions(moment.commands, later.state)
        rows.append(PlannedRow(moment.stamp_ns, instruction, moment.state, action))
    return rows


def _without_idle(rows: list[PlannedRow], settings: ConversionSettings, plan: Plan) -> list[PlannedRow]:
    if settings.trim_idle_s is None or not rows:
        return rows
    actions = {group: np.stack([row.action[group] for row in rows]) for group in rows[0].action}
    first, last = idle_ends(actions, margin=round(settings.trim_idle_s * settings.contract.rate_hz))
    if (first, last) != (0, len(rows)):
        rate_hz = settings.contract.rate_hz
        plan.notes.append(
            f"idle: {first / rate_hz:.1f} s at the head, {(len(rows) - last) / rate_hz:.1f} s at the tail"
        )
    return rows[first:last]
