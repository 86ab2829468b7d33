"""The network prepared for one robot: the same results as the plain one, without what is constant or unread."""

from groot_ros.model.fast.loading import load_fast
from groot_ros.model.fast.network import FastNetwork

__all__ = ["FastNetwork", "load_fast"]
