"""What the parts of a policy session share: clock, counters, log, and whether it runs and the robot may move."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

from rclpy.clock import Clock
from rclpy.node import Node

from groot_ros.nodes.edge_log import EdgeLog
from groot_ros.nodes.policy_ledger import Ledger


@dataclass
class SessionState:
    """Guarded by its lock, which every callback holds, and every public method of the session while it looks.

    Attributes:
        logger: The node's logger.
        clock: The node's clock.
        log: Where changes are said.
        ledger: Where all that happens is counted.
        lock: The lock.
        is_active: Whether the node is active.
        is_enabled: Whether commands are sent.
        has_news: Whether there is something to tell before the next diagnostics are due.
        fault: What keeps the session from working at all, empty where nothing does.

    """

    logger: Any
    clock: Clock
    log: EdgeLog
    ledger: Ledger = field(default_factory=Ledger)
    lock: threading.RLock = field(default_factory=threading.RLock)
    is_active: bool = False
    is_enabled: bool = False
    has_news: bool = False
    fault: str = ""

    @classmethod
    def of(cls, node: Node) -> SessionState:
        """A session of a node that has just begun."""
        return cls(node.get_logger(), node.get_clock(), EdgeLog(node.get_logger()))

    @property
    def is_working(self) -> bool:
        """Whether observations become chunks."""
        return self.is_active and not self.fault

    def now_ns(self) -> int:
        """The time by the node's clock."""
        return int(self.clock.now().nanoseconds)
