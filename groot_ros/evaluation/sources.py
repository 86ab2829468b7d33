"""The recordings of an evaluation: bags and datasets, as the command line names them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from groot_ros.contract import Contract
from groot_ros.dataset.bag import is_bag
from groot_ros.dataset.reader import Dataset, open_dataset
from groot_ros.errors import EvaluationError
from groot_ros.evaluation.bag_episode import BagEpisode
from groot_ros.evaluation.dataset_episode import DatasetEpisode
from groot_ros.evaluation.episode import Episode


def open_episodes(
    paths: Sequence[Path],
    contract: Contract,
    *,
    video_history: tuple[int, ...],
    state_history: tuple[int, ...],
    horizon: int,
    chosen: Sequence[int] = (),
) -> tuple[list[Episode], list[str]]:
    """Open all recordings.

    Args:
        paths: Bags and datasets.
        contract: The robot.
        video_history: Rows before the present at which frames are taken.
        state_history: The same for states.
        horizon: Rows of a chunk.
        chosen: Episodes of the datasets; all by default.

    Returns:
        The episodes, and every task that the datasets know.

    Raises:
        GrootError: A path is neither, or does not fit the contract.

    """
    episodes: list[Episode] = []
    tasks: list[str] = []
    folders = Counter(path.name for path in paths)
    for path in paths:
        name = path.name if folders[path.name] == 1 else str(path)
        if is_bag(path):
            episodes.append(
                BagEpisode(
                    path,
                    contract,
                    video_history=video_history,
                    state_history=state_history,
                    horizon=horizon,
                    name=name,
                )
            )
            continue
        dataset = _dataset(path)
        tasks += dataset.tasks.values()
        unknown = [number for number in chosen if not 0 <= number < len(dataset.episodes)]
        if unknown:
            msg = f"{path} has the episodes 0 to {len(dataset.episodes) - 1}, but episode {unknown[0]} is asked for"
            raise EvaluationError(msg)
        episodes += [
            DatasetEpisode(
                dataset,
                number,
                contract,
                video_history=video_history,
                state_history=state_history,
                name=f"{name}/episode_{number:03d}",
            )
            for number in chosen or range(len(dataset.episodes))
        ]
    return episodes, list(dict.fromkeys(tasks))


def _dataset(path: Path) -> Dataset:
    if not path.exists():
        msg = f"{path} is not there; wanted a bag (a directory with metadata.yaml, .mcap, .db3) or a LeRobot dataset"
        raise EvaluationError(msg)
    if not (path / "meta" / "info.json").is_file():
        msg = f"{path} is neither a bag (metadata.yaml, .mcap, .db3) nor a LeRobot dataset (meta/info.json)"
        raise EvaluationError(msg)
    return open_dataset(path)
