"""Many stamped streams to one observation at a time, or the reason why not."""

from groot_ros.alignment.aligner import Aligner
from groot_ros.alignment.buffers import TurningBuffers
from groot_ros.alignment.not_ready import NotReady, Reason
from groot_ros.alignment.stream import StreamHealth

__all__ = ["Aligner", "NotReady", "Reason", "StreamHealth", "TurningBuffers"]
