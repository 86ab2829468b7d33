"""A GR00T N1.7 checkpoint directory, as typed metadata and tensors."""

from groot_ros.checkpoint.backbone import Backbone, find_backbone, open_backbone
from groot_ros.checkpoint.bundle import bundle
from groot_ros.checkpoint.checkpoint import Checkpoint, open_checkpoint
from groot_ros.checkpoint.config import DiTConfig, ModelConfig, VLSelfAttentionConfig, parse_model_config
from groot_ros.checkpoint.embodiments import Embodiment, action_config, is_relative, state_width
from groot_ros.checkpoint.processor_config import (
    ActionConfig,
    ActionFormat,
    ActionRepresentation,
    ActionType,
    EmbodimentModalities,
    ModalityConfig,
    ProcessorConfig,
    parse_processor_config,
)
from groot_ros.checkpoint.statistics import KeyStatistics, TagStatistics, parse_statistics
from groot_ros.checkpoint.tiny import write_tiny_checkpoint
from groot_ros.checkpoint.versions import CheckpointOrigin
from groot_ros.checkpoint.weights import WeightFiles
from groot_ros.checkpoint.writing import write_metadata

__all__ = [
    "ActionConfig",
    "ActionFormat",
    "ActionRepresentation",
    "ActionType",
    "Backbone",
    "Checkpoint",
    "CheckpointOrigin",
    "DiTConfig",
    "Embodiment",
    "EmbodimentModalities",
    "KeyStatistics",
    "ModalityConfig",
    "ModelConfig",
    "ProcessorConfig",
    "TagStatistics",
    "VLSelfAttentionConfig",
    "WeightFiles",
    "action_config",
    "bundle",
    "find_backbone",
    "is_relative",
    "open_backbone",
    "open_checkpoint",
    "parse_model_config",
    "parse_processor_config",
    "parse_statistics",
    "state_width",
    "write_metadata",
    "write_tiny_checkpoint",
]
