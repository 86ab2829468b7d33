"""Bags to datasets: what a bag holds, which rows it gives, and their way into a LeRobot dataset."""

from groot_ros.dataset.conversion.convert import Conversion, convert
from groot_ros.dataset.conversion.cuts import Cut, read_cuts
from groot_ros.dataset.conversion.inspection import inspect_bag
from groot_ros.dataset.conversion.settings import ConversionSettings, OnGap

__all__ = ["Conversion", "ConversionSettings", "Cut", "OnGap", "convert", "inspect_bag", "read_cuts"]
