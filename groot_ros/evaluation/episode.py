"""One recording that is played: a bag or an episode of a dataset, in its own time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from groot_ros.alignment import NotReady
from groot_ros.alignment.buffers import Allocate
from groot_ros.observation import Observation

Array = NDArray[np.float64]
Times = NDArray[np.int64]


@dataclass(frozen=True)
class Demonstration:
    """What was commanded at some times.

    Attributes:
        values: Action group to values ``(N, D)`` in the policy's units; NaN where nothing is known.
        known: Where something is known ``(N,)``.

    """

    values: dict[str, Array]
    known: NDArray[np.bool_]


class Episode(ABC):
    """A recording. While it is played it answers as the alignment of a live robot would at that time.

    Attributes:
        name: Its name in reports; those of one evaluation differ.
        duration_s: How long it lasts.
        is_demonstrated: Whether it holds actions to compare with.

    """

    name: str
    duration_s: float
    is_demonstrated: bool

    @abstractmethod
    def play(self) -> Iterator[int]:
        """Play it from the start.

        Yields:
            Now, in nanoseconds: once whenever the time has moved on, and again after each message at that time.

        Raises:
            DatasetError: It is damaged.

        """

    @abstractmethod
    def reference(self, now_ns: int) -> int | NotReady:
        """The stamp of the newest observation."""

    @abstractmethod
    def state_at(self, reference_ns: int) -> dict[str, NDArray[np.float32]] | NotReady:
        """The states of the observation with this stamp, ``(T, D)`` by group."""

    @abstractmethod
    def stamp_at(self, reference_ns: int) -> int | NotReady:
        """The stamp of the observation with this reference stamp, without decoding a picture."""

    @abstractmethod
    def observation_at(self, reference_ns: int, instruction: str, allocate: Allocate) -> Observation | NotReady:
        """The observation with this stamp."""

    @abstractmethod
    def demonstration(self, times_ns: Times) -> Demonstration:
        """What was commanded at times that are no further from the present than a chunk is long."""

    @abstractmethod
    def instruction(self, default: str) -> str:
        """The task at the present time in words: the recording's own, or the default."""

    @abstractmethod
    def messages(self) -> dict[str, int]:
        """How many messages (or rows) came, by stream."""
