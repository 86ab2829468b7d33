"""Logs on edges: a thing is said when it begins, changes or ends, and not once a frame."""

from __future__ import annotations

from typing import Any


class EdgeLog:
    """Remembers what was said last about each subject.

    Args:
        logger: The node's logger.

    """

    def __init__(self, logger: Any) -> None:  # noqa: ANN401 - rclpy's logger
        self._logger = logger
        self._said: dict[str, str] = {}

    def begin(self, subject: str, kind: str, sentence: str) -> bool:
        """Say a sentence unless the same kind of thing was said about the subject last; whether it was said."""
        if self._said.get(subject) == kind:
            return False
        self._said[subject] = kind
        self._logger.warning(sentence)
        return True

    def end(self, subject: str, sentence: str) -> bool:
        """Say that what was wrong with the subject is over; nothing where nothing was."""
        if self._said.pop(subject, None) is None:
            return False
        self._logger.info(sentence)
        return True
