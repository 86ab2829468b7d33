"""Bags to one dataset: jobs in several processes, episodes taken in one by one in the order of the bags."""

from __future__ import annotations

import multiprocessing
import queue
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from groot_ros.dataset.conversion.action_sources import ActionSources
from groot_ros.dataset.conversion.cuts import Cut
from groot_ros.dataset.conversion.dataset_shape import dataset_spec, existing_sizes, find_sizes
from groot_ros.dataset.conversion.job import JobReport, run_job
from groot_ros.dataset.conversion.known import KnownEpisodes
from groot_ros.dataset.conversion.settings import ConversionSettings
from groot_ros.dataset.layout import LayoutVersion
from groot_ros.dataset.spec import DatasetSpec
from groot_ros.dataset.stage import whole_stages
from groot_ros.dataset.video_writer import VideoEncoding
from groot_ros.dataset.writer import DatasetWriter
from groot_ros.errors import DatasetError

JobProgress = Callable[[int, float], None]
"""Takes the number of a job and its share that is done."""
POLL_S = 0.1
SMALLEST_STEP = 0.01


@dataclass(frozen=True)
class Shard:
    """Job ``index`` of ``count`` of a job array: it takes every ``count``-th part."""

    index: int
    count: int


@dataclass
class Conversion:
    """What became of all parts.

    Attributes:
        reports: One a part, in their order.
        warnings: What holds for all.
        episodes: Episodes in the dataset now; None where a shard only prepared them.

    """

    reports: list[JobReport] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    episodes: int | None = None

    @property
    def failed(self) -> bool:
        """Whether a part failed."""
        return any(report.fault is not None for report in self.reports)


def convert(
    cuts: Sequence[Cut],
    root: Path,
    settings: ConversionSettings,
    *,
    encoding: VideoEncoding | None = None,
    version: LayoutVersion = LayoutVersion.V3_0,
    processes: int = 1,
    shard: Shard | None = None,
    progress: JobProgress = lambda _job, _share: None,
) -> Conversion:
    """Convert parts of bags into a dataset; what is in it already is not done again.

    A shard prepares its parts beside the dataset; the call without a shard takes all that is prepared in, and does
    what is missing.

    Args:
        cuts: The parts, in the order of their episodes.
        root: The dataset; made where it does not exist.
        settings: How bags become episodes.
        encoding: How videos are stored.
        version: The layout.
        processes: How many bags are converted at the same time.
        shard: Which part of a job array this is.
        progress: Told how far each job is.

    Raises:
        DatasetError: ``root`` holds something else, or the contract names no source of an action.

    """
    conversion = Conversion()
    warning = ActionSources.of(settings.contract).warning()
    conversion.warnings += [warning] if warning else []
    sizes = existing_sizes(root, settings.contract)
    if sizes is None:
        sizes, faults = find_sizes(cuts, settings.contract)
        if sizes is None:
            conversion.reports = [JobReport(cut, fault=faults[cut.bag]) for cut in cuts]
            return conversion
    spec = dataset_spec(settings.contract, sizes, encoding or VideoEncoding(), settings.notes())
    if shard is not None:
        todo = list(enumerate(cuts))[shard.index - 1 :: shard.count]
        known = KnownEpisodes(whole_stages(root, spec.cameras), cuts, settings)
        reports = _run_all(todo, root, spec, settings, known=known, processes=processes, progress=progress)
        conversion.reports = [report for _, report in reports]
        return conversion
    with DatasetWriter(root, spec, version=version) as writer:
        arrived: dict[int, JobReport] = {}
        known = KnownEpisodes([*writer.names, *whole_stages(root, spec.cameras)], cuts, settings)
        for number, report in _run_all(
            list(enumerate(cuts)), root, spec, settings, known=known, processes=processes, progress=progress
        ):
            arrived[number] = report
            while len(conversion.reports) in arrived:  # episodes keep the order of the bags
                conversion.reports.append(_take_in(writer, arrived.pop(len(conversion.reports))))
        conversion.episodes = writer.total_episodes
    return conversion


def _take_in(writer: DatasetWriter, report: JobReport) -> JobReport:
    try:
        for name in report.names:
            if name not in writer.names:
                writer.commit(name)
    except DatasetError as error:
        return replace(report, fault=str(error))
    return report


def _run_all(
    jobs: Sequence[tuple[int, Cut]],
    root: Path,
    spec: DatasetSpec,
    settings: ConversionSettings,
    *,
    known: KnownEpisodes,
    processes: int,
    progress: JobProgress,
) -> Iterator[tuple[int, JobReport]]:
    """Run jobs that are not done yet; each report as it comes."""
    todo = []
    for number, cut in jobs:
        try:
            episodes = known.of(cut)
        except DatasetError as error:
            yield number, JobReport(cut, fault=str(error))
            continue
        if episodes:
            progress(number, 1.0)
            yield number, JobReport(cut, names=episodes, known=True, notes=("was there already",))
        else:
            todo.append((number, cut))
    if processes <= 1 or len(todo) <= 1:
        for number, cut in todo:

            def told(share: float, number: int = number) -> None:
                progress(number, share)

            yield number, run_job(cut, root, spec, settings, progress=told, threads=0)
        return
    yield from _in_processes(todo, root, spec, settings, processes=processes, progress=progress)


def _in_processes(
    todo: Sequence[tuple[int, Cut]],
    root: Path,
    spec: DatasetSpec,
    settings: ConversionSettings,
    *,
    processes: int,
    progress: JobProgress,
) -> Iterator[tuple[int, JobReport]]:
    context = multiprocessing.get_context("spawn")  # a fork would inherit threads that OpenCV has started
    with context.Manager() as manager:
        news: queue.Queue[tuple[int, float]] = manager.Queue()
        with ProcessPoolExecutor(min(processes, len(todo)), mp_context=context) as pool:
            running: dict[Future[JobReport], int] = {
                pool.submit(_work, (number, cut), root, spec, settings, news): number for number, cut in todo
            }
            cut_of = dict(todo)
            while running:
                _hear(news, progress)
                for future in [one for one in running if one.done()]:
                    number = running.pop(future)
                    error = future.exception()
                    if error is None:
                        yield number, future.result()
                    else:
                        cut = cut_of[number]
                        yield number, JobReport(cut, fault=f"{cut.bag}: its process ended: {error or 'killed'}")


def _hear(news: queue.Queue[tuple[int, float]], progress: JobProgress) -> None:
    try:
        progress(*news.get(timeout=POLL_S))
        while True:
            progress(*news.get_nowait())
    except queue.Empty:
        return


def _work(job: tuple[int, Cut], root: Path, spec: DatasetSpec, settings: ConversionSettings, news: Any) -> JobReport:  # noqa: ANN401 - a queue's proxy
    """A job in a process of its own."""
    number, cut = job
    told = 0.0

    def progress(share: float) -> None:
        nonlocal told
        if share - told >= SMALLEST_STEP or share >= 1.0:
            told = share
            news.put((number, share))

    return run_job(cut, root, spec, settings, progress=progress, threads=1)
