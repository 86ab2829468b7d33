"""An episode on its way to the disk, in threads of its own, so that a slow disk never keeps a subscription waiting.

One thread gives messages to the system, all that have come at a time: woken for each, it would wait as often for
Python's lock, up to 5 ms each time, and fall behind. Another waits for the disk, so that the first never does.
"""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Event, Thread

from groot_ros.errors import RecordingError
from groot_ros.recording.bag_metadata import TopicCount, write_metadata
from groot_ros.recording.definitions import TypeDefinition
from groot_ros.recording.disk import give_reserve_back, take_reserve
from groot_ros.recording.episode_file import EpisodeFile
from groot_ros.recording.mcap_seal import seal
from groot_ros.recording.recovery import UNFINISHED_SUFFIX, finish_bag, give_final_name

WRITE_PERIOD_S = 0.05
SYNC_PERIOD_S = 1.0
LARGEST_BACKLOG = 1 << 30
"""Bytes that may wait for the disk, here or in the system."""


class EpisodeWriter:
    """Writes the bag of one episode. Until it is complete, its folder is called ``<name>.recording``.

    Args:
        folder: The final folder.

    Raises:
        RecordingError: It cannot be made, or the disk is full.

    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder.with_name(folder.name + UNFINISHED_SUFFIX)
        try:
            self.folder.mkdir(parents=True)
            take_reserve(self.folder)
        except OSError as error:
            with contextlib.suppress(OSError):
                give_reserve_back(self.folder)
                self.folder.rmdir()
            msg = f"{self.folder} cannot be made: {error.strerror}; free space, or record to another disk"
            raise RecordingError(msg) from error
        self._file = EpisodeFile(self.folder / f"{folder.name}_0.mcap")
        self._channels: dict[str, int] = {}
        self._queue: deque[tuple[int, int, bytes]] = deque()
        self._taken = 0
        self._flushed = 0
        self._synced = 0
        self.fault: str | None = None
        self._ending, self._to_sync = Event(), Event()
        self._threads = (
            Thread(target=self._work, args=(self._write,), name="episode_writer", daemon=True),
            Thread(target=self._work, args=(self._sync,), name="episode_sync", daemon=True),
        )
        for thread in self._threads:
            thread.start()

    @property
    def backlog_bytes(self) -> int:
        """Bytes that are not on the disk yet, here or in the system."""
        return self._taken - self._synced

    @property
    def bytes_taken(self) -> int:
        """Bytes of all messages so far."""
        return self._taken

    def add_topic(self, topic: str, definition: TypeDefinition, qos: str) -> None:
        """Make a topic known, before any message is put."""
        self._channels[topic] = self._file.add_channel(topic, definition, qos)

    def put(self, topic: str, received_ns: int, data: bytes) -> None:
        """Take a message; it never waits. After a fault nothing more is taken: see `fault`."""
        if self.fault is not None:
            return
        if self.backlog_bytes > LARGEST_BACKLOG:
            waiting = f"{self.backlog_bytes >> 20} MB wait to be written to {self.folder}"
            self.fault = f"the disk is too slow, or the machine too busy: {waiting}"
            return
        self._taken += len(data)
        self._queue.append((self._channels[topic], received_ns, data))

    def finish(self, custom: Mapping[str, str]) -> Path:
        """Write everything that was taken, index and metadata, and give the folder its final name.

        Also after a fault: then up to the last whole chunk.

        Args:
            custom: What is noted of the episode in ``metadata.yaml``.

        Returns:
            The finished bag.

        Raises:
            RecordingError: Even that cannot be written; what is whole stays in `folder`, for ``record --recover``.

        """
        self._end_threads()
        notes = dict(custom)
        if self.fault is not None:
            notes["groot_ros.stopped_by"] = self.fault
        try:
            return self._finish(notes)
        except OSError as error:
            msg = f"{self.folder} cannot be finished: {error.strerror}; free space and run record --recover"
            raise RecordingError(msg) from error
        finally:
            self._close()

    def abandon(self) -> None:
        """Close the file as it is."""
        self.fault = self.fault or "discarded"
        self._end_threads()
        self._close()
        with contextlib.suppress(OSError):  # whether the folder can be written is told where it is moved
            give_reserve_back(self.folder)

    def _finish(self, notes: Mapping[str, str]) -> Path:
        give_reserve_back(self.folder)
        if not self._file.failed:
            with contextlib.suppress(RecordingError):  # then it is sealed
                self._file.finish()
        if self._file.failed:
            return finish_bag(self.folder, self._file.path, seal(self._file.path), custom=notes)
        topics = [
            TopicCount(one.topic, one.definition.name, one.definition.hash, one.qos, one.messages)
            for one in self._file.channels.values()
        ]
        first_ns, last_ns = self._file.first_ns or 0, self._file.last_ns or 0
        write_metadata(self.folder, self._file.path.name, topics, first_ns=first_ns, last_ns=last_ns, custom=notes)
        return give_final_name(self.folder)

    def _close(self) -> None:
        with contextlib.suppress(OSError):  # what is whole is synced already
            self._file.close()

    def _end_threads(self) -> None:
        self._ending.set()
        self._to_sync.set()
        for thread in self._threads:
            thread.join()

    def _write(self) -> None:
        flush_s = time.monotonic() + SYNC_PERIOD_S
        written = 0
        ending = False
        while not ending:
            ending = self._ending.wait(WRITE_PERIOD_S)  # nothing is put any more once this is set
            for _ in range(len(self._queue)):
                channel, received_ns, data = self._queue.popleft()
                self._file.write(channel, received_ns, data)
                written += len(data)
            if time.monotonic() >= flush_s:
                flush_s = time.monotonic() + SYNC_PERIOD_S
                self._file.flush()
                self._flushed = written
                self._to_sync.set()

    def _sync(self) -> None:
        while True:
            self._to_sync.wait()
            self._to_sync.clear()
            if self._ending.is_set():
                return
            flushed = self._flushed
            self._file.sync()
            self._synced = flushed

    def _work(self, work: Callable[[], None]) -> None:
        try:
            work()
        except RecordingError as error:
            self.fault = self.fault or str(error)
        except Exception as error:  # a thread that dies in silence would lose everything from here on
            self.fault = f"the writer failed: {type(error).__name__}: {error}"
            raise
