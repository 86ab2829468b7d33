"""The N1.7 network: backbone, category-specific layers, diffusion transformer, action head, sampler."""

from groot_ros.model.action_head import FlowMatchingLoss
from groot_ros.model.backbone import VisionLanguageFeatures
from groot_ros.model.loading import load_model
from groot_ros.model.model import GrootN17
from groot_ros.model.sampler import RealTimeChunking

__all__ = ["FlowMatchingLoss", "GrootN17", "RealTimeChunking", "VisionLanguageFeatures", "load_model"]
