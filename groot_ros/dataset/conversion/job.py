"""One part of one bag on its way into a dataset: planned, then encoded, in any process."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from groot_ros.alignment import NotReady
from groot_ros.dataset.bag import Bag
from groot_ros.dataset.conversion.cuts import Cut
from groot_ros.dataset.conversion.known import PartNames
from groot_ros.dataset.conversion.plan import Plan, PlannedRow, cut_span, plan_episodes
from groot_ros.dataset.conversion.playback import Playback, Progress
from groot_ros.dataset.conversion.settings import ConversionSettings
from groot_ros.dataset.spec import DatasetSpec
from groot_ros.dataset.stage import EpisodeStage
from groot_ros.errors import DatasetError, GrootError

PLANNING_SHARE = 0.2
"""Of the progress of a job."""


@dataclass(frozen=True)
class JobReport:
    """What became of a part of a bag.

    Attributes:
        cut: The part.
        names: Its episodes, as they are staged; empty where it failed or was left out.
        rows: Rows of all its episodes.
        gaps: How often a camera was silent for too long.
        notes: What a person should know.
        fault: Why it failed.
        known: Whether it was there already.

    """

    cut: Cut
    names: tuple[str, ...] = ()
    rows: int = 0
    gaps: int = 0
    notes: tuple[str, ...] = ()
    fault: str | None = None
    known: bool = False


def run_job(
    cut: Cut, root: Path, spec: DatasetSpec, settings: ConversionSettings, *, progress: Progress, threads: int
) -> JobReport:
    """Plan and stage the episodes of a part of a bag; whatever is wrong with it is in the report."""
    try:
        return _run(cut, root, spec, settings, progress=progress, threads=threads)
    except GrootError as error:
        return JobReport(cut, fault=str(error))
    except (MemoryError, RecursionError):
        raise
    except Exception as error:  # noqa: BLE001 - one bad bag must not stop the others, whatever is wrong with it
        return JobReport(cut, fault=f"{cut.bag}: {type(error).__name__}: {error}")


def _run(
    cut: Cut, root: Path, spec: DatasetSpec, settings: ConversionSettings, *, progress: Progress, threads: int
) -> JobReport:
    if settings.successes_only and cut.success is False:
        return JobReport(cut, notes=("left out: labelled as a failure",))
    with Bag(cut.bag) as bag:
        plan = plan_episodes(bag, cut, settings, lambda share: progress(PLANNING_SHARE * share))
        names = PartNames.of(bag, cut, settings).episodes(len(plan.episodes))

        def encoded(share: float) -> None:
            progress(PLANNING_SHARE + (1 - PLANNING_SHARE) * share)

        with ExitStack() as stages:
            opened = [
                stages.enter_context(EpisodeStage(root, spec, name, labels=_labels(cut, plan, rows), threads=threads))
                for name, rows in zip(names, plan.episodes, strict=True)
            ]
            _encode(bag, cut, settings, list(zip(opened, plan.episodes, strict=True)), encoded)
    progress(1.0)
    return JobReport(
        cut=cut,
        names=names,
        rows=sum(map(len, plan.episodes)),
        gaps=len(plan.gaps),
        notes=tuple(plan.notes),
    )


def _labels(cut: Cut, plan: Plan, rows: list[PlannedRow]) -> dict[str, Any]:
    first_ns, last_ns = rows[0].stamp_ns, rows[-1].stamp_ns
    labels: dict[str, Any] = {
        "bag": cut.bag.name,
        "gaps": [
            {"stream": f"video.{gap.camera}", "seconds": gap.length_s, "start_ns": gap.start_ns}
            for gap in plan.gaps
            if first_ns <= gap.end_ns and gap.start_ns <= last_ns
        ],
    }
    return labels if cut.success is None else {**labels, "success": cut.success}


def _encode(
    bag: Bag,
    cut: Cut,
    settings: ConversionSettings,
    episodes: list[tuple[EpisodeStage, list[PlannedRow]]],
    progress: Progress,
) -> None:
    """Second passage: the pictures of the planned rows, as the alignment gives them."""
    due = [(stage, row) for stage, rows in episodes for row in rows]
    due.reverse()
    playback = Playback(bag, settings.contract, *cut_span(bag, cut))
    for now_ns in playback.play(progress):
        while due and now_ns >= due[-1][1].stamp_ns + playback.settled_ns:
            _add_row(playback, *due.pop())
        if not due:
            break
    while due:
        _add_row(playback, *due.pop())


def _add_row(playback: Playback, stage: EpisodeStage, row: PlannedRow) -> None:
    observation = playback.aligner.observation_at(row.stamp_ns, row.instruction)
    if isinstance(observation, NotReady):
        raise DatasetError(observation.sentence)
    stage.add(
        task=observation.instruction,
        state={group: values[-1] for group, values in observation.state.items() if values.shape[1]},
        action=row.action,
        images={camera: pictures[-1] for camera, pictures in observation.images.items()},
        stamp_ns=row.stamp_ns,
        image_stamps_ns={camera: stamps[-1] for camera, stamps in observation.image_stamps_ns.items()},
    )
