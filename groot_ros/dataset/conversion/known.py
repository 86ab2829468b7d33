"""What a dataset has already: it is not made again, nor, with other settings, a second time."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from groot_ros.dataset.bag import Bag
from groot_ros.dataset.conversion.cuts import Cut
from groot_ros.dataset.conversion.plan import cut_span
from groot_ros.dataset.conversion.settings import ConversionSettings
from groot_ros.errors import DatasetError

_EPISODE = re.compile(r"(.+)\.(\d+)of(\d+)")


@dataclass(frozen=True)
class PartNames:
    """How the episodes of a part of a bag are called: the same for the same data and settings, wherever the bag lies.

    Attributes:
        bag: The name of the bag.
        data: Tells the data of the part.
        settings: Tells what was made of it.
        old: The beginning of its episodes' names before data and settings were told apart.

    """

    bag: str
    data: str
    settings: str
    old: str

    @classmethod
    def of(cls, bag: Bag, cut: Cut, settings: ConversionSettings) -> PartNames:
        """The names of a part.

        Raises:
            DatasetError: The bag is empty, or the part lies behind its end.

        """
        start_ns, end_ns = cut_span(bag, cut)
        data = (bag.start_ns, bag.end_ns, bag.message_count, start_ns, end_ns)
        labels = (cut.instruction, cut.success)
        name = (cut.bag.stem if cut.bag.is_file() else cut.bag.name).lstrip(".")
        return cls(
            bag=name,
            data=_digest(f"{data}", 10),
            settings=_digest(f"{labels} {settings.digest()}", 8),
            old=f"{name}-{_digest(f'{(*data, *labels)} {settings.old_digest()}', 10)}",
        )

    @property
    def prefix(self) -> str:
        """The beginning of the names of its episodes."""
        return f"{self.bag}-{self.data}-{self.settings}"

    def episodes(self, count: int) -> tuple[str, ...]:
        """The names of so many episodes."""
        return tuple(f"{self.prefix}.{number}of{count}" for number in range(1, count + 1))


class KnownEpisodes:
    """The episodes that a dataset has, or that wait to be taken in.

    Args:
        names: Their names.
        cuts: All parts of this conversion.
        settings: How bags become episodes.

    """

    def __init__(self, names: Iterable[str], cuts: Sequence[Cut], settings: ConversionSettings) -> None:
        self._cuts = cuts
        self._settings = settings
        self._episodes: dict[str, dict[int, dict[int, str]]] = {}  # by prefix, by count
        for name in names:
            match = _EPISODE.fullmatch(name)
            if match:
                self._episodes.setdefault(match[1], {}).setdefault(int(match[3]), {})[int(match[2])] = name

    def of(self, cut: Cut) -> tuple[str, ...]:
        """The episodes of a part; none where it must be made.

        Raises:
            DatasetError: They are there, but made with other settings: they would be in the dataset twice.

        """
        part = self._part(cut) if self._episodes else None
        if part is None:
            return ()
        episodes = self._complete(part.prefix) or self._complete(part.old)
        if not episodes:
            self._refuse_twice(cut, part)
        return episodes

    def _complete(self, prefix: str) -> tuple[str, ...]:
        for count, episodes in self._episodes.get(prefix, {}).items():
            if len(episodes) == count:
                return tuple(episodes[number] for number in sorted(episodes))
        return ()

    def _refuse_twice(self, cut: Cut, part: PartNames) -> None:
        bag = re.escape(part.bag)
        same_data = _matching(f"{bag}-{part.data}-[0-9a-f]{{8}}", self._episodes) - {part.prefix}
        if same_data and same_data - self._wanted:
            msg = (
                f"{cut.bag} is in the dataset already, made with other settings (contract, options or episodes.csv): "
                f"convert into another directory"
            )
            raise DatasetError(msg)
        same_name = _matching(f"{bag}-[0-9a-f]{{10}}", self._episodes)
        if same_name and (part.old in same_name or same_name - self._wanted):
            msg = (
                f"{cut.bag}: an earlier version has put a bag of this name into the dataset, and its episodes do not "
                f"tell whether it was this one, with other settings: convert into another directory"
            )
            raise DatasetError(msg)

    @cached_property
    def _wanted(self) -> set[str]:
        """The prefixes of all parts of this conversion: the same span may be given twice, with two instructions."""
        parts = [part for part in map(self._part, self._cuts) if part is not None]
        return {prefix for part in parts for prefix in (part.prefix, part.old)}

    def _part(self, cut: Cut) -> PartNames | None:
        try:
            with Bag(cut.bag) as bag:
                return PartNames.of(bag, cut, self._settings)
        except DatasetError:
            return None  # the job itself says what is wrong


def _matching(pattern: str, names: Iterable[str]) -> set[str]:
    return {name for name in names if re.fullmatch(pattern, name)}


def _digest(text: str, length: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:length]
