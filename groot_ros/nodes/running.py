"""Run one node until it is told to stop, and take it down in the order that rclpy needs."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from types import FrameType
from typing import TypeVar

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions

from groot_ros.nodes.memory import keep_freed_memory

LONGEST_WAIT_S = 0.1

NodeType = TypeVar("NodeType", bound=Node)


def run_node(
    make_node: Callable[[], NodeType],
    args: Sequence[str] | None = None,
    *,
    before_shutdown: Callable[[NodeType], None] | None = None,
) -> None:
    """Spin the node that ``make_node`` makes, in this thread, until SIGINT or SIGTERM.

    Args:
        make_node: Makes the node once ROS is initialised.
        args: Command-line arguments with the ROS ones (``--ros-args ...``); default ``sys.argv``.
        before_shutdown: Called with the node while it can still publish, also where a callback raised: the place for
            a last command.

    """
    keep_freed_memory()
    stopping = False

    def stop(_number: int, _frame: FrameType | None) -> None:
        nonlocal stopping
        stopping = True

    # Our own handlers, not rclpy's: those shut the context down at once, and no last command could be sent.
    rclpy.init(args=None if args is None else list(args), signal_handler_options=SignalHandlerOptions.NO)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    executor = SingleThreadedExecutor()
    node = None
    try:
        node = make_node()
        executor.add_node(node)
        try:
            while not stopping:
                executor.spin_once(timeout_sec=LONGEST_WAIT_S)
        finally:
            if before_shutdown is not None:
                before_shutdown(node)
    finally:
        executor.shutdown()
        if node is not None:
            node.destroy_node()
        rclpy.try_shutdown()
