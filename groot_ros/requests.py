"""What is asked of a policy for one robot, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from groot_ros.observation import ActionChunk, Observation


@dataclass(frozen=True)
class StageTimings:
    """Where the time of one prediction went, seconds; the columns of NVIDIA's own benchmark."""

    data_processing_s: float
    backbone_s: float
    action_head_s: float
    decode_s: float

    @property
    def total_s(self) -> float:
        """End to end, from the observation to physical actions."""
        return self.data_processing_s + self.backbone_s + self.action_head_s + self.decode_s


@dataclass(frozen=True)
class PrefixReport:
    """What became of the previous chunk in a prediction (real-time chunking).

    Attributes:
        rows: Rows of the previous chunk that were handed to the network; 0 when there was no prefix.
        clipped_entries: Entries of the prefix beyond the range that the checkpoint can express.
        dropped: True when a frozen row was among them, so that the prefix could not be kept and was left out.

    """

    rows: int = 0
    clipped_entries: int = 0
    dropped: bool = False


@dataclass(frozen=True)
class PredictionRequest:
    """One robot's part of a prediction.

    Attributes:
        observation: What the robot sees and is told.
        previous_chunk: The untransformed chunk that is being executed. Its rows from the observation's stamp on become
            the prefix of real-time chunking, expressed anew against this observation.
        seed: Seed of the noise that denoising starts from; None draws it from the policy's own generator.
        frozen_rows: Rows of the prefix that will have been executed before the new chunk can take over.
        ramp_rate: How fast the rows after the frozen ones become free.
        names: Names of the chunk's dimensions by action group, as this robot's contract has them; None: the policy's.

    """

    observation: Observation
    previous_chunk: ActionChunk | None = None
    seed: int | None = None
    frozen_rows: int = 0
    ramp_rate: float = 6.0
    names: Mapping[str, Sequence[str]] | None = None


@dataclass(frozen=True)
class Prediction:
    """One robot's part of the answer.

    Attributes:
        chunk: The decoded chunk in the policy's physical units, before the rollout transform.
        timings: Where the time went; robots that were predicted together share it.
        prefix: What became of the previous chunk.

    """

    chunk: ActionChunk
    timings: StageTimings
    prefix: PrefixReport
