"""The recorder in a terminal: what every stream does, why an episode cannot begin, and keys."""

from __future__ import annotations

import os
import select
import signal
import sys
import termios
import tty
from collections import deque
from collections.abc import Callable

from rclpy.clock import Clock, ClockType
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from groot_ros.errors import RecordingError
from groot_ros.nodes.recorder_node import RecorderNode
from groot_ros.recording.stream_watch import StreamWatch

DRAW_PERIOD_S = 0.5
KEY_PERIOD_S = 0.05
SENTENCES = 5
HELP = "space start/stop   d discard   r redo   n next instruction   q quit"


class RecorderView:
    """Draws a recorder and takes its keys, from `attach` to `detach`; `close` gives the terminal back."""

    def __init__(self, console: Console | None = None) -> None:
        self._sentences: deque[str] = deque(maxlen=SENTENCES)
        self._live = Live(console=console, auto_refresh=False)
        self._terminal = termios.tcgetattr(sys.stdin)
        self._node: RecorderNode | None = None

    def say(self, sentence: str) -> None:
        """Show a sentence."""
        self._sentences.append(sentence)

    def attach(self, node: RecorderNode) -> None:
        """Begin to draw this recorder, in its own executor."""
        self._node = node
        tty.setcbreak(sys.stdin)
        self._live.start()
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        node.create_timer(DRAW_PERIOD_S, self.draw, clock=steady)
        node.create_timer(KEY_PERIOD_S, self._read_keys, clock=steady)

    def detach(self) -> None:
        """Draw the recorder a last time, while it can still be asked."""
        self.draw()
        self._node = None

    def close(self) -> None:
        """Give the terminal back as it was."""
        self._live.stop()
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, self._terminal)

    def draw(self) -> None:
        """Draw the present."""
        if self._node is not None:
            self._live.update(screen(self._node, list(self._sentences)), refresh=True)

    def _read_keys(self) -> None:
        while select.select([sys.stdin], [], [], 0)[0]:
            key = os.read(sys.stdin.fileno(), 1).decode(errors="replace")
            if not key:
                return
            self.press(key)

    def press(self, key: str) -> None:
        """Do what a key says."""
        node = self._node
        if node is None:
            return
        if key == "q":
            signal.raise_signal(signal.SIGINT)
            return
        keys: dict[str, Callable[[], str]] = {
            " ": node.stop if node.session.is_recording else node.start,
            "d": node.discard,
            "r": node.redo,
            "n": node.next_instruction,
        }
        if key not in keys:
            self.say(f"the key {key!r} does nothing; {HELP}")
            return
        try:
            keys[key]()
        except RecordingError as error:
            self.say(str(error))
        self.draw()


def screen(node: RecorderNode, sentences: list[str]) -> Group:
    """Everything that is shown."""
    session, now_ns = node.session, node.now_ns()
    if session.is_recording:
        clock_s = (now_ns - session.started_ns) / 1e9
        head = Text(f"● {session.name}  {clock_s:6.1f} s  {session.bytes_taken / 1e9:.2f} GB", style="bold red")
    else:
        obstacle = session.obstacle(now_ns)
        head = (
            Text(f"ready for {session.name}", style="bold green")
            if obstacle is None
            else Text(f"cannot start: {obstacle}", style="bold yellow")
        )
    disk = (
        f"disk: {session.free_bytes / 1e9:.0f} GB free   coming: {session.bytes_per_s / 1e6:.0f} MB/s   "
        f"waiting: {session.backlog_bytes / 1e6:.0f} MB"
    )
    streams = Table(box=None, pad_edge=False)
    for column in ("stream", "topic", "Hz", "lag s", "age s", "gaps", "missing", "longest s", "reliable"):
        streams.add_column(column, justify="left" if column in ("stream", "topic") else "right")
    for name, watch in session.watches.items():
        style = "red" if watch.gaps or watch.missing or watch.out_of_order else ""
        streams.add_row(*_cells(node, name, watch, now_ns), style=style)
    return Group(
        head, f"instruction: {node.instruction}", disk, streams, Text(HELP, style="dim"), *map(Text, sentences)
    )


def _cells(node: RecorderNode, name: str, watch: StreamWatch, now_ns: int) -> tuple[str, ...]:
    newest_ns = watch.newest_received_ns
    publishers = node.topics.publishers(name)
    reliable = {None: "", True: "yes", False: "no"}[node.topics.is_reliable(name)]
    if newest_ns is None:
        silent = "no publisher" if not publishers else "silent"
        return (", ".join(node.session.topics[name].streams), name, silent, "", "", "", "", "", reliable)
    return (
        ", ".join(node.session.topics[name].streams),
        name if publishers <= 1 else f"{name} ({publishers} publishers)",
        f"{watch.rate_hz:.1f}",
        f"{watch.lag_ns / 1e9:.3f}",
        f"{(now_ns - newest_ns) / 1e9:.2f}",
        str(len(watch.gaps)),
        str(watch.missing + watch.out_of_order),
        f"{watch.longest_ns / 1e9:.3f}",
        reliable,
    )
