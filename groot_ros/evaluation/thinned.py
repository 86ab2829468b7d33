"""A sample of a stream of unknown length: evenly spread, and never more than a few."""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class Thinned(Generic[T]):
    """Keeps every n-th item, with n doubled whenever too many have come.

    Args:
        most: Most items kept.

    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._every = 1
        self._seen = 0
        self.items: list[T] = []

    @property
    def wants_next(self) -> bool:
        """Whether the next item will be kept: others need not be made."""
        return self._seen % self._every == 0

    def add(self, item: T) -> None:
        """Offer an item."""
        if self.wants_next:
            if len(self.items) == self._most:
                self.items = self.items[::2]
                self._every *= 2
            if self.wants_next:
                self.items.append(item)
        self._seen += 1

    def skip(self) -> None:
        """Count an item that was not made."""
        self._seen += 1
