"""One evaluation: every episode played before the policy and the two baselines, and everything that was learnt."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groot_ros.checkpoint import Embodiment
from groot_ros.contract import Contract
from groot_ros.evaluation.actions_file import ActionsFile
from groot_ros.evaluation.baseline import Baseline
from groot_ros.evaluation.chunk_block import ChunkBlock
from groot_ros.evaluation.columns import ActionColumns
from groot_ros.evaluation.episode import Episode, Times
from groot_ros.evaluation.latency import Latency
from groot_ros.evaluation.logbook import Logbook
from groot_ros.evaluation.pilot import PREDICTION_FAILED, Pilot, Prediction
from groot_ros.evaluation.policies import DebugPolicy, HoldStill, RepeatLastAction, ReplayablePolicy
from groot_ros.evaluation.replay import Moment, Played, Replay
from groot_ros.evaluation.row_table import RowTable
from groot_ros.evaluation.sensitivity import Sensitivity
from groot_ros.evaluation.timing import row_times_ns
from groot_ros.evaluation.view import EpisodeView
from groot_ros.execution.urdf import UrdfLimits
from groot_ros.observation import NANOSECONDS_PER_SECOND, Observation
from groot_ros.policy import GrootPolicy

Array = NDArray[np.float64]
POLICY, HOLD_STILL, REPEAT_LAST = "policy", "hold_still", "repeat_last"
MOST_SHOWN = 600
FEWEST_SHOWN = 12
MOST_SHOWN_AN_EPISODE = 150
MakePilot = Callable[..., Pilot]


@dataclass(frozen=True)
class Settings:
    """How to replay.

    Attributes:
        seed: Seed of every prediction.
        latency: How long a prediction takes by the recording's clock.
        instruction: The task for all recordings; None takes each one's own.
        other_instruction: Another task, for the sensitivity; None where there is none.
        probes: Observations of each episode at which the sensitivity is measured; 0 for none.

    """

    seed: int = 0
    latency: Latency = field(default_factory=Latency)
    instruction: str | None = None
    other_instruction: str | None = None
    probes: int = 4


@dataclass(frozen=True)
class EpisodeResult:
    """What came out of one episode.

    Attributes:
        name: Its name.
        played: Times, observations and refusals.
        logs: ``policy``, ``hold_still`` and ``repeat_last`` to their logbooks.
        view: What the report shows.

    """

    name: str
    played: Played
    logs: Mapping[str, Logbook]
    view: dict[str, Any]


@dataclass(frozen=True)
class Evaluation:
    """What came out of all episodes.

    Attributes:
        contract: The robot.
        columns: The action dimensions.
        scale: Half the trained range of each column ``(width,)``; NaN where it is not known.
        episodes: The episodes, in the order given.
        sensitivity: See `Sensitivity.results`; empty where it was not measured.
        horizon: Rows of a chunk.

    """

    contract: Contract
    columns: ActionColumns
    scale: Array
    episodes: Sequence[EpisodeResult]
    sensitivity: dict[str, Any]
    horizon: int

    def logs(self, player: str) -> list[Logbook]:
        """The logbooks of the policy or of a baseline."""
        return [episode.logs[player] for episode in self.episodes]


def evaluate(
    episodes: Sequence[Episode],
    contract: Contract,
    policy: ReplayablePolicy,
    settings: Settings,
    *,
    actions_path: Path,
    embodiment: Embodiment | None = None,
    urdf: UrdfLimits | None = None,
    make_pilot: MakePilot = Pilot,
    progress: Callable[[str], None] | None = None,
) -> Evaluation:
    """Play all episodes.

    Args:
        episodes: The recordings.
        contract: The robot.
        policy: The policy.
        settings: How.
        actions_path: Where ``actions.parquet`` goes.
        embodiment: The checkpoint's, whose ranges normalise the errors; None for a policy without weights.
        urdf: The robot's description, where the contract takes limits from it.
        make_pilot: Makes the policy's pilot; another one for chunks that were recorded live.
        progress: Called with the name of each episode that begins.

    Raises:
        GrootError: A recording is damaged, or something does not fit.

    """
    columns = ActionColumns.from_contract(contract)
    scale, levels = _trained_ranges(columns, embodiment)
    sensitivity = None
    if settings.probes and not isinstance(policy, DebugPolicy) and make_pilot is Pilot:
        processor = policy.processor if isinstance(policy, GrootPolicy) else None
        sensitivity = Sensitivity(policy, columns, settings.seed, settings.other_instruction, processor)
    shown = min(MOST_SHOWN_AN_EPISODE, max(FEWEST_SHOWN, MOST_SHOWN // max(len(episodes), 1)))
    results = []
    with ActionsFile(actions_path, columns) as actions:
        for episode in episodes:
            if progress is not None:
                progress(episode.name)
            run = _EpisodeRun(episode, contract, columns, levels, settings, EpisodeView(shown), actions, sensitivity)
            results.append(run.play(policy, urdf, make_pilot))
    return Evaluation(
        contract=contract,
        columns=columns,
        scale=scale,
        episodes=results,
        sensitivity=sensitivity.results(scale) if sensitivity is not None else {},
        horizon=policy.horizon,
    )


@dataclass
class _EpisodeRun:
    """One episode while it is played."""

    episode: Episode
    contract: Contract
    columns: ActionColumns
    levels: Array
    settings: Settings
    view: EpisodeView
    actions: ActionsFile
    sensitivity: Sensitivity | None
    _moments: list[Moment] = field(default_factory=list)
    _next_probe_ns: int | None = None

    def play(self, policy: ReplayablePolicy, urdf: UrdfLimits | None, make_pilot: MakePilot) -> EpisodeResult:
        """Play it before the policy and the baselines."""
        settings, contract = self.settings, self.contract
        if self.sensitivity is not None:
            self.sensitivity.begin()
        demonstration = RowTable(self.columns.width)
        start_rows = math.ceil((contract.motion.start_ramp_s or 0.0) / contract.period_s) + 2
        players: dict[str, ReplayablePolicy] = {
            POLICY: policy,
            HOLD_STILL: HoldStill(contract, policy.horizon),
            REPEAT_LAST: RepeatLastAction(contract, policy.horizon),
        }
        logs: dict[str, Logbook] = {}
        for name, player in players.items():
            if isinstance(player, DebugPolicy):
                player.begin(self.episode)
            on_block = self._save_chunks if name == POLICY else None
            logs[name] = Logbook(
                self.columns, policy.horizon, self.levels, demonstration, start_rows=start_rows, on_block=on_block
            )
        baselines = [
            Baseline(player, logs[name])
            for name, player in players.items()
            if name != POLICY and isinstance(player, DebugPolicy)
        ]

        def note_prediction(prediction: Prediction) -> None:
            self._show(prediction)
            times_ns = row_times_ns(prediction.chunk)
            recorded = self._demonstrated(times_ns)
            logs[POLICY].note_prediction(prediction, times_ns, recorded)
            for baseline in baselines:
                baseline.note_prediction(prediction, times_ns, recorded)

        def note_rows(stamps_ns: Times, values: dict[str, Array]) -> None:
            demonstration.add(stamps_ns, self._demonstrated(stamps_ns))
            logs[POLICY].note_rows(stamps_ns, self.columns.join(values, len(stamps_ns)))
            for baseline in baselines:
                baseline.note_rows(stamps_ns)

        pilot = make_pilot(
            contract,
            policy,
            settings.latency,
            seed=settings.seed,
            urdf=urdf,
            on_observation=self._note_observation,
            on_prediction=note_prediction,
            on_failure=self._note_failure,
            on_rows=note_rows,
        )
        played = Replay(
            self.episode,
            pilot,
            instruction=settings.instruction,
            default_instruction=contract.instruction,
            wants_pictures=self.view.wants_pictures,
        ).run()
        for log in logs.values():
            log.close()
        played.moments = sorted([*played.moments, *self._moments], key=lambda moment: moment.time_ns)
        log = logs[POLICY]
        log.status, log.refusals = pilot.executor.status(played.end_ns), dict(pilot.refusals)
        log.rows_executed = pilot.rows_executed
        self.actions.add_executed(self.episode.name, log)
        return EpisodeResult(self.episode.name, played, logs, self.view.content(played, logs[POLICY]))

    def _note_observation(self, observation: Observation) -> None:
        self.view.note_observation(observation)
        if self.sensitivity is None:
            return
        spacing_ns = round(self.episode.duration_s * NANOSECONDS_PER_SECOND / self.settings.probes)
        is_due = self._next_probe_ns is None or observation.stamp_ns >= self._next_probe_ns
        # What the policy refuses is counted where the pilot asks about it; the probe waits for the next one.
        if is_due and self.sensitivity.probe(observation):
            self._next_probe_ns = observation.stamp_ns + spacing_ns

    def _note_failure(self, observation: Observation, now_ns: int, sentence: str) -> None:
        self.view.note_failure(observation)
        self._moments.append(Moment(now_ns, "chunk", PREDICTION_FAILED, sentence))

    def _show(self, prediction: Prediction) -> None:
        self.view.note_prediction(prediction, self.columns)
        if prediction.refusal:
            self._moments.append(Moment(prediction.arrived_ns, "chunk", prediction.refusal, prediction.sentence))

    def _save_chunks(self, block: ChunkBlock) -> None:
        self.actions.add_chunks(self.episode.name, block)

    def _demonstrated(self, times_ns: Times) -> Array:
        """What was demonstrated ``(N, width)``; NaN where it is not known."""
        return self.columns.join(self.episode.demonstration(times_ns).values, len(times_ns))


def _trained_ranges(columns: ActionColumns, embodiment: Embodiment | None) -> tuple[Array, Array]:
    """Half the trained range of each column, and the value between open and closed of each gripper."""
    scale, middle = np.full(columns.width, np.nan), np.full(columns.width, np.nan)
    if embodiment is not None:
        for group, part in columns.slices.items():
            statistics = embodiment.statistics.action.get(group)
            if statistics is not None and statistics.min.shape == (part.stop - part.start,):
                half = (statistics.max - statistics.min) / 2.0
                scale[part] = np.where(half > 0.0, half, np.nan)
                middle[part] = (statistics.max + statistics.min) / 2.0
    levels = np.full(columns.width, np.nan)
    for column, level in columns.levels.items():
        levels[column] = middle[column] if np.isnan(level) else level
    return scale, levels
