"""What travels between the rooms: an observation in, an action chunk out. Plain typed values, no robot's behaviour."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

import numpy as np
from numpy.typing import NDArray

NANOSECONDS_PER_SECOND = 1_000_000_000


class ImageInputFormat(Enum):
    """What a policy class wants to be handed as images: a class attribute, never written into a checkpoint."""

    UINT8_0_255 = "uint8_0_255"
    FLOAT32_0_1 = "float32_0_1"


@dataclass(frozen=True)
class Observation:
    """What the policy sees at one instant.

    Attributes:
        images: Modality key to RGB frames, uint8 ``(T, H, W, 3)``, oldest first; T is the tag's video history.
        state: Modality key to values in the policy's physical units, float32 ``(T, D)``, oldest first.
        instruction: The task in words.
        stamp_ns: Capture time in nanoseconds of the oldest among the current frames (row 0 of the chunk belongs to it).
        image_stamps_ns: Capture time of every frame, per camera, oldest first; empty where the source has none.

    """

    images: dict[str, NDArray[np.uint8]]
    state: dict[str, NDArray[np.float32]]
    instruction: str
    stamp_ns: int
    image_stamps_ns: dict[str, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class ActionChunk:
    """What the policy wants to do: rows of actions, row i for ``stamp_ns + i * period_s``.

    Attributes:
        stamp_ns: The stamp of the observation that produced the chunk, nanoseconds.
        period_s: Time between two rows, seconds.
        groups: Modality key to values in the policy's physical units, float64 ``(H, D)``, as decoded: without the
            rollout transform of the tag.
        names: Modality key to the D dimension names.

    """

    stamp_ns: int
    period_s: float
    groups: dict[str, NDArray[np.float64]]
    names: dict[str, list[str]]

    @property
    def horizon(self) -> int:
        """Number of rows H."""
        rows: int = next(iter(self.groups.values())).shape[0]
        return rows

    def row_stamp_ns(self, row: int) -> int:
        """Time of row ``row`` in nanoseconds."""
        return self.stamp_ns + round(row * self.period_s * NANOSECONDS_PER_SECOND)
