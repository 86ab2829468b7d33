"""``record --recover``: make a readable bag out of one that was broken off or damaged."""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from groot_ros.errors import RecordingError
from groot_ros.recording.bag_metadata import METADATA_FILE, TopicCount, read_notes, sync_folder, write_metadata
from groot_ros.recording.disk import give_reserve_back
from groot_ros.recording.mcap_scan import McapScan
from groot_ros.recording.mcap_seal import seal

UNFINISHED_SUFFIX = ".recording"


@dataclass(frozen=True)
class Recovery:
    """What became of one broken bag.

    Attributes:
        bag: Where it lies now.
        messages: Messages in it.
        duration_s: From its first message to its last.
        cut_bytes: What was cut off at its end.
        bad_chunks: Chunks whose checksum was wrong, and whose messages are lost.
        fault: Why nothing could be recovered; None where something was.

    """

    bag: Path
    messages: int = 0
    duration_s: float = 0.0
    cut_bytes: int = 0
    bad_chunks: int = 0
    fault: str | None = None


def recover(folder: Path) -> list[Recovery]:
    """Recover a broken bag, or all broken bags in a folder of recordings.

    Raises:
        RecordingError: There is no such folder, or nothing in it is a bag.

    """
    if not folder.is_dir():
        msg = f"{folder} is no folder: give a bag, or the folder with the recordings"
        raise RecordingError(msg)
    if any(folder.glob("*.mcap")):
        return [_recover(folder)]
    bags = sorted(path for path in folder.iterdir() if path.is_dir() and any(path.glob("*.mcap")))
    if not bags:
        if any(folder.glob("*.db3*")):
            msg = f"{folder} is an sqlite3 bag, which is recovered by sqlite's own tools (sqlite3 FILE .recover)"
            raise RecordingError(msg)
        msg = f"{folder} holds no MCAP bag: nothing to recover"
        raise RecordingError(msg)
    return [_recover(bag) for bag in bags if bag != finished_name(bag) or not (bag / METADATA_FILE).exists()]


def _recover(bag: Path) -> Recovery:
    files = sorted(bag.glob("*.mcap"))
    if len(files) > 1:
        return Recovery(bag, fault=f"{bag} is split into {len(files)} files: recover each in a folder of its own")
    try:
        with _not_being_recorded(bag, files[0]):
            found = _finish(bag, files[0])
    except RecordingError as error:
        return Recovery(bag, fault=str(error))
    except OSError as error:
        return Recovery(bag, fault=f"{bag} cannot be written: {error.strerror}; free space and run it again")
    times = _span_ns(found)
    return Recovery(
        bag=finished_name(bag),
        messages=sum(found.messages.values()),
        duration_s=(times[1] - times[0]) / 1e9,
        cut_bytes=_cut(found),
        bad_chunks=len(found.bad_chunks),
    )


@contextlib.contextmanager
def _not_being_recorded(bag: Path, file: Path) -> Iterator[None]:
    """Refuse a bag whose recorder still runs; it locks the file that it writes."""
    with file.open("rb") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError as error:
            msg = f"{bag} is being recorded: end the episode first"
            raise RecordingError(msg) from error
        except OSError:  # a disk that knows no locks: nobody can say
            pass
        yield


def _finish(bag: Path, file: Path) -> McapScan:
    give_reserve_back(bag)
    found = seal(file)
    if found.finished and not found.bad_chunks and (bag / METADATA_FILE).exists():
        give_final_name(bag)  # all else is whole: it is not touched
        return found
    note = {"groot_ros.recovered": f"{len(found.bad_chunks)} damaged chunks, {_cut(found)} bytes cut off"}
    finish_bag(bag, file, found, custom={**read_notes(bag), **note})
    return found


def finish_bag(bag: Path, file: Path, found: McapScan, *, custom: Mapping[str, str]) -> Path:
    """Write the metadata of a sealed file and give its folder the final name.

    Raises:
        OSError: The system refused to write.

    """
    counts = found.messages
    topics = [
        TopicCount(
            topic=channel.topic,
            type_name=found.schemas[channel.schema_id].name if channel.schema_id in found.schemas else "",
            type_hash=channel.metadata.get("topic_type_hash", ""),
            qos=channel.metadata.get("offered_qos_profiles", ""),
            messages=counts[number],
        )
        for number, channel in found.channels.items()
    ]
    first_ns, last_ns = _span_ns(found)
    write_metadata(bag, file.name, topics, first_ns=first_ns, last_ns=last_ns, custom=custom)
    return give_final_name(bag)


def give_final_name(bag: Path) -> Path:
    """Rename an episode that is complete; until then its name says that it is not.

    Raises:
        OSError: The system refused.

    """
    final = finished_name(bag)
    if final != bag:
        bag.rename(final)
        sync_folder(final.parent)
    return final


def finished_name(bag: Path) -> Path:
    """The name of a bag when it is complete."""
    return bag.with_name(bag.name.removesuffix(UNFINISHED_SUFFIX))


def _span_ns(found: McapScan) -> tuple[int, int]:
    times = [time for chunk in found.chunks for time in chunk.times_ns]
    return (min(times), max(times)) if times else (0, 0)


def _cut(found: McapScan) -> int:
    return 0 if found.finished else found.size - found.end
