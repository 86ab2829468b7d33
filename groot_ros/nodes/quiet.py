"""Publishers without event handlers: each handler is one more thing that every turn of the executor looks at."""

from __future__ import annotations

from rclpy.node import PublisherEventCallbacks  # from here in every distribution

QUIET = PublisherEventCallbacks(use_default_callbacks=False)
"""A subscriber whose quality of service does not fit still hears of it on its own side."""
