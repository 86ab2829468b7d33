"""Run nodes until they are told to stop, and take them down in the order that rclpy needs."""

from __future__ import annotations

import signal
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions

from groot_ros.nodes.memory import keep_freed_memory

LONGEST_WAIT_S = 0.1

NodeType = TypeVar("NodeType", bound=Node)
LastWord = Callable[[NodeType], None]
"""Called with the node while it can still publish, also where a callback raised: the place for a last command."""


def run_node(
    make_node: Callable[[], NodeType],
    args: Sequence[str] | None = None,
    *,
    before_shutdown: LastWord[NodeType] | None = None,
) -> None:
    """Spin the node that ``make_node`` makes, in this thread, until SIGINT or SIGTERM.

    Args:
        make_node: Makes the node once ROS is initialised.
        args: Command-line arguments with the ROS ones (``--ros-args ...``); default ``sys.argv``.
        before_shutdown: The last word.

    """
    with _until_told(args) as stopping:
        _spin(make_node(), stopping, before_shutdown)


def run_nodes(
    make_nodes: Callable[[], Sequence[NodeType]],
    args: Sequence[str] | None = None,
    *,
    before_shutdown: LastWord[NodeType] | None = None,
) -> bool:
    """Spin nodes, each in a thread of its own, until SIGINT or SIGTERM: none waits for another.

    A node whose callback raises ends alone, which is said; the others go on.

    Args:
        make_nodes: Makes the nodes once ROS is initialised.
        args: As in `run_node`.
        before_shutdown: The last word of each node, in its thread.

    Returns:
        Whether all nodes ended because they were told to.

    """
    broken: list[str] = []

    def spin(node: NodeType) -> None:
        logger, name = node.get_logger(), node.get_fully_qualified_name()
        try:
            _spin(node, stopping, before_shutdown)
        except Exception:  # noqa: BLE001 - said aloud, and the other nodes go on
            broken.append(name)
            logger.fatal(f"{name} has ended by a fault that nobody foresaw\n{traceback.format_exc()}")

    with _until_told(args) as stopping:
        threads = [threading.Thread(target=spin, args=(node,), name=node.get_namespace()) for node in make_nodes()]
        for thread in threads:
            thread.start()
        while not stopping.wait(LONGEST_WAIT_S) and any(thread.is_alive() for thread in threads):
            pass
        for thread in threads:
            thread.join()
    return not broken


@contextmanager
def _until_told(args: Sequence[str] | None) -> Iterator[threading.Event]:
    """ROS, initialised; the event is set by SIGINT and SIGTERM."""
    keep_freed_memory()
    stopping = threading.Event()

    def stop(_number: int, _frame: FrameType | None) -> None:
        stopping.set()

    # Our own handlers, not rclpy's: those shut the context down at once, and no last command could be sent.
    rclpy.init(args=None if args is None else list(args), signal_handler_options=SignalHandlerOptions.NO)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    try:
        yield stopping
    finally:
        rclpy.try_shutdown()


def _spin(node: NodeType, stopping: threading.Event, before_shutdown: LastWord[NodeType] | None) -> None:
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    try:
        try:
            while not stopping.is_set():
                executor.spin_once(timeout_sec=LONGEST_WAIT_S)
        finally:
            if before_shutdown is not None:
                before_shutdown(node)
    finally:
        executor.shutdown()
        node.destroy_node()
